"""`make release`: puts wheel, sdist, SBOM and checksums of HEAD into dist/.

The files are built from the commit, so nothing that was not committed gets into them, with the locked version of the
build tool and the commit's time, so the same commit gives the same bytes on another machine.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from paceline import __version__
from paceline.environments.cache import cache_folder, uv_variables

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
# A pinned package of requirements.lock, with its marker if it has one.
PIN = re.compile(r"(?m)^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s\\;]+)(?P<marker> ; [^\\\n]+?)?(?: \\)?$")


def main() -> int:
    """Build everything; 1 if a tracked file has changes that are not committed."""
    if changes := git("status", "--porcelain", "--untracked-files=no").decode():
        print(f"make release: commit these changes first, a release is built from HEAD:\n{changes}", file=sys.stderr)
        return 1
    seconds = int(git("log", "-1", "--format=%ct"))
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        subprocess.run(["tar", "-x", "-C", folder], input=git("archive", "HEAD"), check=True)  # noqa: S607
        build(source, seconds)
        bom = sbom(source)
    files = sorted(DIST.iterdir())
    stamp(bom, {file: digest(file) for file in files}, seconds)
    (DIST / f"paceline-{__version__}.cdx.json").write_text(json.dumps(bom, indent=2) + "\n")
    (DIST / "SHA256SUMS").write_text("".join(f"{digest(file)}  {file.name}\n" for file in sorted(DIST.iterdir())))
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")
    return 0


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout  # noqa: S607


def build(source: Path, seconds: int) -> None:
    """Build wheel and sdist with the hatchling of requirements.lock, not with the newest one."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(DIST)]
    subprocess.run(command, cwd=source, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def sbom(source: Path) -> dict[str, Any]:
    """Return uv's bill of materials of what the wheel depends on, in the versions of requirements.lock."""
    pins = list(PIN.finditer((source / "requirements.lock").read_text()))
    constraints = ",\n".join(json.dumps(f"{pin['name']}=={pin['version']}{pin['marker'] or ''}") for pin in pins)
    with (source / "pyproject.toml").open("a") as project:
        project.write(f"\n[tool.uv]\nconstraint-dependencies = [\n{constraints}\n]\n")
    uv("lock", source)
    bom: dict[str, Any] = json.loads(uv("export", source, "--format=cyclonedx1.5", "--no-dev", "--frozen"))
    locked = {(pin["name"], pin["version"]) for pin in pins}
    for component in bom["components"]:
        if (component["name"], component["version"]) not in locked:
            raise SystemExit(f"make release: {component['purl']} is not in requirements.lock; type: make lock")
        for reference in component.get("externalReferences", ()):
            # Names of files, without the index or mirror that this machine uses.
            reference["url"] = reference["url"].rpartition("/")[2]
    bom["components"] += console_components(source)
    return bom


def console_components(source: Path) -> list[dict[str, Any]]:
    """Return the npm packages that the bundle of the web console is made from."""
    packages: dict[str, dict[str, Any]] = json.loads((source / "console" / "package-lock.json").read_text())["packages"]
    # The build tool and what is for other systems are not in the bundle.
    names = {
        path.rpartition("node_modules/")[2]: package
        for path, package in packages.items()
        if path and not (package.get("dev") or package.get("optional")) and not path.endswith("/esbuild")
    }
    return [
        {
            "type": "library",
            "bom-ref": f"npm-{name}@{package['version']}",
            "name": name,
            "version": package["version"],
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{package['version']}",
            "licenses": [{"license": {"id": package["license"]}}],
        }
        for name, package in sorted(names.items())
    ]


def uv(verb: str, folder: Path, *options: str) -> bytes:
    env = uv_variables(os.environ, cache_folder(os.environ)) | {"UV_PYTHON": sys.executable}
    command = [find_uv_bin(), verb, "--quiet", "--directory", str(folder), *options]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout


def stamp(bom: dict[str, Any], digests: dict[Path, str], seconds: int) -> None:
    """Describe the release itself, and replace the random number and the time by those of its files and commit."""
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, ''.join(digests.values()))}"
    bom["metadata"]["timestamp"] = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    bom["metadata"]["component"] |= {
        "version": __version__,
        "purl": f"pkg:pypi/paceline@{__version__}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "externalReferences": [
            {"type": "distribution", "url": file.name, "hashes": [{"alg": "SHA-256", "content": content}]}
            for file, content in digests.items()
        ],
    }


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
