"""`python3 pip_install.py FILE`: install the packages of a requirements file in addition to the image's own.

This file is copied into the author's image and uses only the standard library. Packages that the image has are not
installed again; the others go into a folder that precedes the image's in the path. With a cache, the same packages are
installed once per interpreter and reused by later jobs. If `requirements_cache.py` left a note, the result is recorded.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS, CACHE = Path("/paceline"), Path("/paceline-cache")
MESSAGE = Path("/dev/termination-log")
LAST_LINES = 25
NOTHING_TO_INSTALL = "the image has all that is required"
# A package that uv would install: ` + name==1.0`, ` + name==1.0 (from https://…)` or ` + name @ https://…`.
SIGN = " + "
PACKAGE = re.compile(r"^ \+ (?P<name>[A-Za-z0-9._-]+)(?:==(?P<version>\S+)(?: \(from (?P<from>.+)\))?| @ (?P<at>.+))$")


def main() -> int:
    file = Path(sys.argv[1])
    uv, site = TOOLS / "uv", TOOLS / "site"
    if not uv.exists():
        return run("pip", [sys.executable, "-m", "pip", "install", "--target", str(site), "-r", str(file)])[0]
    code, output = run("uv", [*pip(uv), "--dry-run", "-r", str(file)])
    if code:
        return code
    requirements = sorted(requirement_of(line) for line in output if line.startswith(SIGN))
    if site.is_symlink():
        # Left by an earlier attempt.
        site.unlink()
    if not requirements:
        site.mkdir(exist_ok=True)
        return record("", NOTHING_TO_INSTALL, NOTHING_TO_INSTALL)
    if not CACHE.is_dir() or any(is_local(requirement) for requirement in requirements):
        code = install(uv, file, requirements, site)
        return code or conclude(f"installed {', '.join(requirements)}")
    folder = CACHE / f"packages-{cache_key(requirements)}"
    is_cached = folder.exists()
    if not is_cached and (code := install_into_cache(uv, file, requirements, folder)):
        return code
    site.symlink_to(folder)
    message = f"found {', '.join(requirements)} in the cache"
    return record(folder.name, message, message if is_cached else f"installed {', '.join(requirements)}")


def record(folder: str, later_message: str, message: str) -> int:
    """Report the result; if there is a note, record the folder and the message of later jobs that find it."""
    note = TOOLS / "note"
    if note.exists():
        target = Path(note.read_text(encoding="utf-8"))
        partial = target.with_name(f".{target.name}.{os.uname().nodename}")
        # The packages are installed, whether or not the result can be recorded.
        with contextlib.suppress(OSError):
            partial.write_text(f"{folder}\n{later_message}", encoding="utf-8")
            partial.replace(target)
    return conclude(message)


def install_into_cache(uv: Path, file: Path, requirements: list[str], folder: Path) -> int:
    """Install packages into a folder of the cache, which appears only when it is complete."""
    partial = CACHE / f".{folder.name}.{os.uname().nodename}"
    if code := install(uv, file, requirements, partial):
        return code
    if folder.exists():
        shutil.rmtree(partial)
    else:
        partial.rename(folder)
    return 0


def install(uv: Path, file: Path, requirements: list[str], folder: Path) -> int:
    """Install exactly these packages into a folder, from the indexes that the file names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    if "--hash" in text:
        return run("uv", [*pip(uv), "--require-hashes", "--target", str(folder), "-r", str(file)])[0]
    options = [
        line
        for line in text.splitlines()
        if re.match(r"\s*(--(extra-)?index-url|--no-index|--find-links|-[if])\b", line)
    ]
    # In the same folder: the author's options may contain relative paths.
    exact = file.with_name(".paceline-exact.txt")
    exact.write_text("\n".join([*options, *requirements, ""]), encoding="utf-8")
    try:
        return run("uv", [*pip(uv), "--no-deps", "--compile-bytecode", "--target", str(folder), "-r", str(exact)])[0]
    finally:
        exact.unlink()


def pip(uv: Path) -> list[str]:
    return [str(uv), "pip", "install", "--no-config", "--python", sys.executable, "--break-system-packages"]


def requirement_of(line: str) -> str:
    """Return a package that uv would install as a requirement; uv rejects lines that we do not understand."""
    package = PACKAGE.match(line)
    if package is None:
        return line.removeprefix(SIGN)
    url = package["from"] or package["at"]
    return f"{package['name']} @ {url}" if url else f"{package['name']}=={package['version']}"


def is_local(requirement: str) -> bool:
    """Return whether a package is part of the code: the next commit may change it without changing its version."""
    return " @ file:" in requirement


def cache_key(requirements: list[str]) -> str:
    """Return a hash of the packages and of everything that keeps interpreters from sharing them."""
    parts = [sys.version, sys.executable, os.uname().machine, requirements]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def run(name: str, command: list[str]) -> tuple[int, list[str]]:
    """Run a program and print its output; when it fails, its last lines become the termination message."""
    cache = CACHE / "uv" if CACHE.is_dir() else TOOLS / "uv-cache"
    env = {
        "UV_CACHE_DIR": str(cache),
        "UV_LINK_MODE": "copy",
        "HOME": str(TOOLS),
        **os.environ,
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "NO_COLOR": "1",
    }
    env = {**pip_settings(env), **env}
    process = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = process.stdout.decode(errors="replace").splitlines()
    print("\n".join(lines), flush=True)
    if process.returncode:
        conclude("\n".join([f"{name} could not install the requirements:", *lines[-LAST_LINES:]]))
    return process.returncode, lines


def pip_settings(env: dict[str, str]) -> dict[str, str]:
    """Return pip's settings as variables of uv: a mirror that is set for pip is meant for uv as well."""
    names = {"UV_DEFAULT_INDEX": "PIP_INDEX_URL", "UV_INDEX": "PIP_EXTRA_INDEX_URL", "UV_FIND_LINKS": "PIP_FIND_LINKS"}
    return {uv_name: env[pip_name] for uv_name, pip_name in names.items() if env.get(pip_name)}


def conclude(text: str) -> int:
    try:
        MESSAGE.write_text(text[-4000:], encoding="utf-8")
    except OSError:
        print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
