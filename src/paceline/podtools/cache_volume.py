"""The cache on the claim that the author named for it: git packs and uv, for later jobs.

Everything in the cache can be lost or damaged at any time: readers check what they take, and work without it.
"""

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

CODE = "code"
# Nothing tells us when a commit is no longer needed, so keep the most recently used ones.
MAX_PACKS = 32


def pack_path(cache: Path, url: str, commit: str) -> Path:
    """Return the path of the pack that holds one commit of a repository."""
    return cache / CODE / f"{hashlib.sha256(f'{commit} {url}'.encode()).hexdigest()[:32]}.pack"


def mark_used(pack: Path) -> None:
    """Record that a pack was used, so that others are removed first."""
    with contextlib.suppress(OSError):
        os.utime(pack)


def save_pack(repository: Path, pack: Path) -> None:
    """Save the pack of a shallow fetch of one commit, and remove the least recently used packs."""
    packs = list((repository / ".git" / "objects" / "pack").glob("*.pack"))
    if len(packs) != 1 or not (repository / ".git" / "shallow").exists():
        return
    with contextlib.suppress(OSError):
        pack.parent.mkdir(exist_ok=True)
        copy_atomically(packs[0], pack)
        by_age = sorted(pack.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        for old in by_age[:-MAX_PACKS]:
            old.unlink()


def cached_program(program: Path, cache: Path) -> Path:
    """Return the path of a program in the cache, after copying it there; its own path when that fails."""
    status = program.stat()
    cached = cache / f"{program.name}-{status.st_size}-{status.st_mtime_ns}"
    if not cached.exists():
        try:
            copy_atomically(program, cached)
        except OSError:
            return program
    return cached


def copy_atomically(file: Path, target: Path) -> None:
    """Copy a file with its mode; the target exists only when the copy is complete."""
    partial = target.with_name(f"{target.name}.{os.uname().nodename}.part")
    # An earlier attempt may have left one, which may be read-only.
    partial.unlink(missing_ok=True)
    with file.open("rb") as source:
        # O_EXCL: another job that uses the claim may have left a link to another place.
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
            os.fchmod(descriptor, os.fstat(source.fileno()).st_mode & 0o777)
    partial.replace(target)
