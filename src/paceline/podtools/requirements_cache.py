"""`python3 requirements_cache.py FILE`: link the cached packages of a requirements file; exit with 1 without any.

This file is copied into the author's image and runs at every start, so it uses little of the standard library. Only
files whose every line has an exact version are looked up. `note` tells `pip_install.py` where to record its result.
"""

import hashlib
import os
import re
import sys

TOOLS, CACHE, MESSAGE = "/paceline", "/paceline-cache", "/dev/termination-log"
# A line whose meaning never changes, and one that names an index.
EXACT = re.compile(r"[A-Za-z0-9._-]+(\[[^\]]*\])?\s*==\s*[^\s;=*]+\s*(;[^#]*?)?(\s--hash=\S+\s*)*")
OPTION = re.compile(r"(--(extra-)?index-url|--no-index|--find-links|-[if])\b")
COMMENT = re.compile(r"(^|\s)#.*")


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    if not is_exact(text):
        return 1
    note = os.path.join(CACHE, f"known-{cache_key(text)}")
    try:
        with open(note, encoding="utf-8") as file:
            folder, message = file.read().split("\n", 1)
        os.stat(os.path.join(CACHE, folder))
    except (OSError, ValueError):
        with open(os.path.join(TOOLS, "note"), "w", encoding="utf-8") as file:
            file.write(note)
        return 1
    link_packages(os.path.join(CACHE, folder) if folder else "", os.path.join(TOOLS, "site"))
    with open(MESSAGE, "w", encoding="utf-8") as file:
        file.write(message)
    return 0


def is_exact(text: str) -> bool:
    """Return whether a file always means the same packages; their dependencies stay as first resolved."""
    lines = (COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return all(not line or OPTION.match(line) or EXACT.fullmatch(line) for line in lines)


def cache_key(text: str) -> str:
    """Return a hash of everything that decides the result: the file, the image's packages, and settings of uv."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith(("PIP_", "UV_")))
    parts = [text, sys.version, sys.executable, os.uname().machine, sorted(installed()), settings]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def installed() -> "set[str]":
    """Return the packages of the image."""
    folders = [folder for folder in sys.path[1:] if os.path.isdir(folder)]
    return {f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if name.endswith("-info")}


def link_packages(folder: str, site: str) -> None:
    """Link the packages into the path of the command; create an empty folder if the image has all of them."""
    if os.path.islink(site):
        # Left by an earlier attempt.
        os.unlink(site)
    if folder:
        os.symlink(folder, site)
    else:
        os.makedirs(site, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
