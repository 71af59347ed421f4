"""What later jobs need again, on the claim that their author named as a cache: packs of git, and uv.

Everything there can be lost or be broken at any moment: whoever takes something checks it, and does without.
"""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

CODE = "code"
# Of a commit that nobody asks for any more nobody tells us.
MOST_PACKS = 32


def packed(shelf: Path, url: str, commit: str) -> Path:
    """Name the file that has one commit of a repository, or will have it."""
    return shelf / CODE / f"{hashlib.sha256(f'{commit} {url}'.encode()).hexdigest()[:32]}.pack"


def use(pack: Path) -> None:
    """Remember that a pack was of use, so that others go first."""
    with contextlib.suppress(OSError):
        os.utime(pack)


def keep_pack(into: Path, pack: Path) -> None:
    """Keep what one fetch of a single commit brought; those that were of no use for the longest time go."""
    packs = list((into / ".git" / "objects" / "pack").glob("*.pack"))
    if len(packs) != 1 or not (into / ".git" / "shallow").exists():
        return
    with contextlib.suppress(OSError):
        pack.parent.mkdir(exist_ok=True)
        put(packs[0], pack)
        every = sorted(pack.parent.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        for old in every[:-MOST_PACKS]:
            old.unlink()


def cached_program(program: Path, shelf: Path) -> Path:
    """Give a program's place on the shelf, where it is put if it is not there yet; its own when that fails."""
    known = program.stat()
    there = shelf / f"{program.name}-{known.st_size}-{known.st_mtime_ns}"
    if not there.exists():
        try:
            put(program, there)
        except OSError:
            return program
    return there


def put(file: Path, there: Path) -> None:
    """Copy a file, which is there as a whole or not at all."""
    beside = there.with_name(f"{there.name}.{os.uname().nodename}.part")
    # Of a try before this one, perhaps, and read-only.
    beside.unlink(missing_ok=True)
    with file.open("rb") as source:
        # A new file: another job that uses the claim may have left a link to a place elsewhere.
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(source, copy)
            os.fchmod(handle, os.fstat(source.fileno()).st_mode & 0o777)
    beside.replace(there)
