"""`python3 pip_install.py FILE`: install what a requirements file asks for beside the image's own packages.

It runs in the author's image, copied there: nothing but Python is to be had. What the image has already is not
installed again; the rest goes into a folder that the command finds first. With a cache, the same packages are installed
once for the same interpreter, and found there by later jobs; where `requirements_cache.py` asked for it, the result is
written down.
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
ALL_THERE = "the image has all that is required"
# ` + name==1.0`, ` + name==1.0 (from https://…)` or ` + name @ https://…`: what uv would install.
SIGN = " + "
WANTED = re.compile(r"^ \+ (?P<name>[A-Za-z0-9._-]+)(?:==(?P<version>\S+)(?: \(from (?P<from>.+)\))?| @ (?P<at>.+))$")


def main() -> int:
    file = Path(sys.argv[1])
    uv, site = TOOLS / "uv", TOOLS / "site"
    if not uv.exists():
        return run("pip", [sys.executable, "-m", "pip", "install", "--target", str(site), "-r", str(file)])[0]
    code, said = run("uv", [*pip(uv), "--dry-run", "-r", str(file)])
    if code:
        return code
    wanted = sorted(line_of(line) for line in said if line.startswith(SIGN))
    if site.is_symlink():
        # Of a try before this one.
        site.unlink()
    if not wanted:
        site.mkdir(exist_ok=True)
        return settled("", ALL_THERE, ALL_THERE)
    if not CACHE.is_dir() or any(is_local(each) for each in wanted):
        code = fill(uv, file, wanted, site)
        return code or conclude(f"installed {', '.join(wanted)}")
    place = CACHE / f"packages-{key_of(wanted)}"
    is_there = place.exists()
    if not is_there and (code := fill_cache(uv, file, wanted, place)):
        return code
    site.symlink_to(place)
    found = f"found {', '.join(wanted)} in the cache"
    return settled(place.name, found, found if is_there else f"installed {', '.join(wanted)}")


def settled(place: str, later: str, now: str) -> int:
    """Say what was done, and write down what a later job is to say that finds the same, if that was asked for."""
    asked = TOOLS / "note"
    if asked.exists():
        note = Path(asked.read_text(encoding="utf-8"))
        beside = note.with_name(f".{note.name}.{os.uname().nodename}")
        # The packages are there, whether or not the cache takes a note.
        with contextlib.suppress(OSError):
            beside.write_text(f"{place}\n{later}", encoding="utf-8")
            beside.replace(note)
    return conclude(now)


def fill_cache(uv: Path, file: Path, wanted: list[str], place: Path) -> int:
    """Install packages into the cache, where they are all or not at all."""
    beside = CACHE / f".{place.name}.{os.uname().nodename}"
    if code := fill(uv, file, wanted, beside):
        return code
    if place.exists():
        shutil.rmtree(beside)
    else:
        beside.rename(place)
    return 0


def fill(uv: Path, file: Path, wanted: list[str], folder: Path) -> int:
    """Install exactly these packages into a folder, from where the file says they are."""
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
    # Beside the author's: what its options name may lie relative to it.
    exact = file.with_name(".paceline-exact.txt")
    exact.write_text("\n".join([*options, *wanted, ""]), encoding="utf-8")
    try:
        return run("uv", [*pip(uv), "--no-deps", "--compile-bytecode", "--target", str(folder), "-r", str(exact)])[0]
    finally:
        exact.unlink()


def pip(uv: Path) -> list[str]:
    return [str(uv), "pip", "install", "--no-config", "--python", sys.executable, "--break-system-packages"]


def line_of(line: str) -> str:
    """Read one package that uv would install, as a requirement; what is not understood is left for uv to refuse."""
    found = WANTED.match(line)
    if found is None:
        return line.removeprefix(SIGN)
    place = found["from"] or found["at"]
    return f"{found['name']} @ {place}" if place else f"{found['name']}=={found['version']}"


def is_local(requirement: str) -> bool:
    """Tell whether a package is part of the code: the next commit has another one of the same name and version."""
    return " @ file:" in requirement


def key_of(wanted: list[str]) -> str:
    """Tell sets of packages apart, and interpreters that cannot share them."""
    facts = [sys.version, sys.executable, os.uname().machine, wanted]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def run(name: str, words: list[str]) -> tuple[int, list[str]]:
    """Run a program and show what it says; when it fails, its last lines are the message."""
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
    env = {**like_pip(env), **env}
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.decode(errors="replace").splitlines()
    print("\n".join(lines), flush=True)
    if done.returncode:
        conclude("\n".join([f"{name} could not install the requirements:", *lines[-LAST_LINES:]]))
    return done.returncode, lines


def like_pip(env: dict[str, str]) -> dict[str, str]:
    """Give uv pip's settings: whoever points pip to a mirror means uv as well."""
    same = {"UV_DEFAULT_INDEX": "PIP_INDEX_URL", "UV_INDEX": "PIP_EXTRA_INDEX_URL", "UV_FIND_LINKS": "PIP_FIND_LINKS"}
    return {theirs: env[ours] for theirs, ours in same.items() if env.get(ours)}


def conclude(text: str) -> int:
    try:
        MESSAGE.write_text(text[-4000:], encoding="utf-8")
    except OSError:
        print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
