"""Results to where they are kept: every file that has changed, then the list of all that are there.

Copying may stop at any moment and be begun again by somebody else: what is listed is there, byte by byte, and what is
not listed is copied once more, to the same name.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from paceline.podtools.object_store import Bucket
from paceline.podtools.output_tree import (
    CLOSED,
    OWN,
    PART,
    Look,
    Stamp,
    is_in_memory,
    look_at,
    open_folder,
    open_inside,
    stamp_of,
    target_of,
)
from paceline.podtools.reporting import StepFailed, counted

MANIFEST = f"{OWN}/manifest.json"
# Up to this size a file is read once and written from memory.
SMALL_BYTES = 8 * 1024 * 1024
MOST_NAMED = 5
# Each may have four pieces on its way: as much memory as that takes.
SIDE_BY_SIDE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A file that is where it is to be kept."""

    stamp: Stamp
    sha256: str
    # Whether the command has deleted it since; what is kept stays, and does not come back to the command.
    is_gone: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Write it as the manifest has it."""
        stamp, gone = self.stamp, {"gone": True} if self.is_gone else {}
        facts = {"size": stamp.size, "mtime_ns": stamp.mtime_ns, "inode": stamp.inode, "sha256": self.sha256}
        return {**facts, **gone}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All files of one member that are kept, and whether that is all there will be."""

    job: str
    files: Mapping[str, Kept] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = False

    def to_json(self) -> bytes:
        """Write the manifest; names are in order, so that equal ones have equal bytes."""
        files = {name: kept.to_wire() for name, kept in sorted(self.files.items())}
        told = {"job": self.job, "complete": self.is_complete, "files": files, "refused": dict(self.refused)}
        # Indented it would take three times as long, and there are lists of many thousand files.
        return json.dumps(told, ensure_ascii=False).encode()

    def say(self, name: str) -> str:
        """Say in one sentence what is kept, and what is not."""
        size = sum(kept.stamp.size for kept in self.files.values())
        verb = "is" if len(self.files) == 1 else "are"
        said = f"{counted(len(self.files), 'file')}, {counted(size, 'byte')}, {verb} in {name}"
        if not self.refused:
            return said
        named = [f"{path} ({why})" for path, why in list(self.refused.items())[:MOST_NAMED]]
        more = f" and {len(self.refused) - MOST_NAMED} others" if len(self.refused) > MOST_NAMED else ""
        return f"{said}; not copied: {', '.join(named)}{more}"


def read_manifest(data: bytes | None, job: str) -> Manifest:
    """Read the manifest of this very job; another job's, or none, is an empty one."""
    try:
        told = json.loads(data or b"{}")
        if told.get("job") != job:
            return Manifest(job=job)
        files = {name: _kept(each) for name, each in told["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return Manifest(job=job)
    return Manifest(job=job, files=files)


def due(look: Look, manifest: Manifest, before: Look | None) -> Iterator[str]:
    """Name the files to copy: those that changed and then kept still between two looks; without one before, all."""
    for name, stamp in look.files.items():
        kept = manifest.files.get(name)
        is_quiet = before is None or before.files.get(name) == stamp
        if is_quiet and (kept is None or kept.stamp != stamp):
            yield name


@dataclass(slots=True, kw_only=True)
class Sync:
    """Copies one folder to one place, pass by pass."""

    root: Path
    bucket: Bucket
    job: str
    # Hears of every list that is written.
    tell: Callable[[Manifest], None] = lambda _: None
    manifest: Manifest = field(init=False)
    _before: Look | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with what is there already."""
        self.manifest = read_manifest(self.bucket.get(MANIFEST), self.job)
        self.tell(self.manifest)

    @property
    def count(self) -> int:
        """Count the files that were there at the last look."""
        return len(self._before.files) if self._before is not None else 0

    def step(self) -> None:
        """Copy what has kept still since the last step; the first step only looks."""
        look = look_at(self.root)
        if self._before is not None:
            self._copy(look, tuple(due(look, self.manifest, self._before)), is_running=True)
        self._before = look

    def finish(self) -> Manifest:
        """Copy everything, and say that it is everything; only when nobody writes there any more."""
        look = look_at(self.root)
        # Where times do not tell, all files are read once more; what is the same is not sent again.
        names = look.files if is_in_memory(self.root) else due(look, self.manifest, None)
        closed = self._copy(look, tuple(names), is_running=False)
        again = look_at(self.root)
        if left := [name for name in due(again, self.manifest, None) if name not in closed]:
            raise StepFailed(f"the file {left[0]} changed while it was copied")
        self.manifest = replace(self.manifest, refused={**again.refused, **closed}, is_complete=True)
        self.bucket.put(MANIFEST, self.manifest.to_json())
        return self.manifest

    def _copy(self, look: Look, names: tuple[str, ...], *, is_running: bool) -> dict[str, str]:
        """Copy files side by side, most of the time of each being spent on the way; then list those that came.

        Those that may not be read are given back, with the reason: no later try would read them either.
        """
        kept, failed, closed = self._marked(look), None, {}
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            begun = {name: pool.submit(self._copy_file, name, kept.get(name), is_running=is_running) for name in names}
        for name, done in begun.items():
            error = done.exception()
            if isinstance(error, PermissionError):
                closed[name] = CLOSED
            elif isinstance(error, StepFailed | OSError):
                failed = failed or error
            elif (copied := done.result()) is not None:
                kept[name] = copied
        is_new = kept != self.manifest.files
        self.manifest = replace(self.manifest, files=kept, refused={**look.refused, **closed})
        if is_new:
            self.bucket.put(MANIFEST, self.manifest.to_json())
            self.tell(self.manifest)
        if failed is not None:
            raise failed
        return closed

    def _marked(self, look: Look) -> dict[str, Kept]:
        """Give what is kept, with a mark on what the command has deleted."""
        every = self.manifest.files.items()
        return {name: replace(kept, is_gone=name not in look.files) for name, kept in every}

    def _copy_file(self, name: str, known: Kept | None, *, is_running: bool) -> Kept | None:
        """Copy one file; None when it went or changed meanwhile, which the next step sees."""
        try:
            handle = open_inside(self.root, target_of(self.root, name) or name)
        except PermissionError:
            raise
        except OSError:
            return None
        with os.fdopen(handle, "rb") as file:
            if is_running:
                # Who writes through memory changes the time of a file only when its pages have been written back.
                os.fsync(handle)
            before = stamp_of(os.fstat(handle))
            if known is not None and known.sha256 == (digest := _digest(file)):
                pass
            elif before.size <= SMALL_BYTES:
                data = file.read()
                digest = hashlib.sha256(data).hexdigest()
                self.bucket.put(name, data)
            else:
                pieces = _Pieces(file)
                self.bucket.put(name, pieces, size=before.size)
                digest = pieces.sha256
            is_same = stamp_of(os.fstat(handle)) == before
        return Kept(stamp=before, sha256=digest) if is_same else None


def restore(root: Path, bucket: Bucket, job: str) -> int:
    """Bring back what an earlier try of this job left and is not there any more; count the files.

    The list is written back at once: a bucket that takes nothing is better found out before the work than after it.
    """
    manifest = read_manifest(bucket.get(MANIFEST), job)
    bucket.put(MANIFEST, manifest.to_json())
    left = {name: kept for name, kept in manifest.files.items() if not kept.is_gone}
    missing = [name for name in left if not os.path.lexists(root / name)]
    bring_all(root, bucket, missing)
    for name in missing:
        mtime = left[name].stamp.mtime_ns
        handle = open_inside(root, name)
        try:
            os.utime(handle, ns=(mtime, mtime))
        finally:
            os.close(handle)
    return len(missing)


def bring_all(root: Path, bucket: Bucket, names: Iterable[str]) -> None:
    """Bring objects side by side; the first that fails is said, and no more are begun."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            for _ in pool.map(lambda name: bring(root, bucket, name), names):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def bring(root: Path, bucket: Bucket, name: str) -> None:
    """Bring one object to its place below a folder, as a whole or not at all; StepFailed when its name leads out."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name:
        raise StepFailed(f"{bucket.name} has the name {name!r}, which leads out of {root}; rename it there")
    try:
        with _opened(root, "") as top, _opened(root, "/".join(parts[:-1]), must_make=True) as folder:
            _bring(bucket, name, top, folder)
    except OSError as error:
        raise StepFailed(f"{name} cannot be written to {root}: {error.strerror}") from error


def _bring(bucket: Bucket, name: str, top: int, folder: int) -> None:
    """Write an object beside all others, and give it its name once it is whole; by handle, never through a link."""
    beside = f"{PART}{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    with suppress(FileNotFoundError):
        # Of a try before this one, or of somebody who would have us write elsewhere.
        os.unlink(beside, dir_fd=top)
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=top)
        with os.fdopen(handle, "wb") as file:
            bucket.fetch(name, file)
        os.replace(beside, name.rpartition("/")[2], src_dir_fd=top, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=top)


@contextmanager
def _opened(root: Path, name: str, *, must_make: bool = False) -> Iterator[int]:
    handle = open_folder(root, name, must_make=must_make)
    try:
        yield handle
    finally:
        os.close(handle)


class _Pieces:
    """A file piece by piece, of which the digest is known when all of it has been handed out."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._file.read(SMALL_BYTES):
            self._digest.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _digest(file: Any) -> str:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _kept(told: Mapping[str, Any]) -> Kept:
    stamp = Stamp(size=int(told["size"]), mtime_ns=int(told["mtime_ns"]), inode=int(told["inode"]))
    return Kept(stamp=stamp, sha256=str(told["sha256"]), is_gone=bool(told.get("gone", False)))
