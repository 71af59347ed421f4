"""`python3 requirements_cache.py FILE`: find the cached packages of a requirements file; 1 when there are none.

It runs in the author's image, copied there, at every start: nothing but Python is to be had, and little of it loaded.
Only files whose every line names an exact version are looked up. Where `pip_install.py` is to record what a file leads
to is left for it in `note`.
"""

import hashlib
import os
import re
import sys

TOOLS, CACHE, MESSAGE = "/paceline", "/paceline-cache", "/dev/termination-log"
# A line that means the same on every day, and one that says where packages come from.
EXACT = re.compile(r"[A-Za-z0-9._-]+(\[[^\]]*\])?\s*==\s*[^\s;=*]+\s*(;[^#]*?)?(\s--hash=\S+\s*)*")
OPTION = re.compile(r"(--(extra-)?index-url|--no-index|--find-links|-[if])\b")
COMMENT = re.compile(r"(^|\s)#.*")


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    if not is_exact(text):
        return 1
    note = os.path.join(CACHE, f"known-{key_of(text)}")
    try:
        with open(note, encoding="utf-8") as file:
            place, said = file.read().split("\n", 1)
        os.stat(os.path.join(CACHE, place))
    except (OSError, ValueError):
        with open(os.path.join(TOOLS, "note"), "w", encoding="utf-8") as file:
            file.write(note)
        return 1
    link_packages(os.path.join(CACHE, place) if place else "", os.path.join(TOOLS, "site"))
    with open(MESSAGE, "w", encoding="utf-8") as file:
        file.write(said)
    return 0


def is_exact(text: str) -> bool:
    """Tell whether a file means the same packages whenever it is read; what they need themselves stays as it was."""
    lines = (COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return all(not line or OPTION.match(line) or EXACT.fullmatch(line) for line in lines)


def key_of(text: str) -> str:
    """Tell apart all that decides what a file leads to: its text, what the image has, and how uv is steered."""
    steering = sorted(each for each in os.environ.items() if each[0].startswith(("PIP_", "UV_")))
    facts = [text, sys.version, sys.executable, os.uname().machine, sorted(installed()), steering]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def installed() -> "set[str]":
    """List what the image has."""
    folders = [folder for folder in sys.path[1:] if os.path.isdir(folder)]
    return {f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if name.endswith("-info")}


def link_packages(place: str, site: str) -> None:
    """Let the command find the packages; an empty folder where the image has all of them."""
    if os.path.islink(site):
        # Of a try before this one.
        os.unlink(site)
    if place:
        os.symlink(place, site)
    else:
        os.makedirs(site, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
