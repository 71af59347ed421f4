"""Uploads results to a bucket: every changed file, then a manifest of all files; and downloads them.

An upload may stop at any moment and be continued by another process: a file in the manifest is in the bucket, byte for
byte, and a file that is not in the manifest is uploaded again under the same name.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from paceline.podtools.object_store import BucketFolder
from paceline.podtools.output_tree import (
    METADATA_FOLDER,
    PART,
    UNREADABLE,
    OutputListing,
    Stamp,
    closing_fd,
    is_in_memory,
    link_target,
    list_output,
    open_file,
    open_folder,
    stamp_of,
)
from paceline.podtools.reporting import StepFailed, pluralize

MANIFEST = f"{METADATA_FOLDER}/manifest.json"
# Files up to this size are read once and written from memory.
SMALL_BYTES = 8 * 1024 * 1024
MAX_NAMED = 5
# Each transfer may hold four parts in memory.
MAX_TRANSFERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """A file in the bucket."""

    stamp: Stamp
    sha256: str
    # Whether the command has deleted the file since. It stays in the bucket and is not restored.
    is_gone: bool = False

    def to_wire(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        stamp, gone = self.stamp, {"gone": True} if self.is_gone else {}
        entry = {"size": stamp.size, "mtime_ns": stamp.mtime_ns, "inode": stamp.inode, "sha256": self.sha256}
        return {**entry, **gone}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All uploaded files of one replica, and whether the upload is complete."""

    job: str
    files: Mapping[str, UploadedFile] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = False

    def to_json(self) -> bytes:
        """Return the manifest as JSON; names are sorted, so that equal manifests have equal bytes."""
        files = {name: file.to_wire() for name, file in sorted(self.files.items())}
        fields = {"job": self.job, "complete": self.is_complete, "files": files, "refused": dict(self.refused)}
        # Not indented: that takes three times as long, and there may be many thousand files.
        return json.dumps(fields, ensure_ascii=False).encode()

    def summary(self, bucket: str) -> str:
        """Return one sentence about the files that were uploaded and those that were not."""
        size = sum(file.stamp.size for file in self.files.values())
        verb = "is" if len(self.files) == 1 else "are"
        text = f"{pluralize(len(self.files), 'file')}, {pluralize(size, 'byte')}, {verb} in {bucket}"
        if not self.refused:
            return text
        named = [f"{path} ({reason})" for path, reason in list(self.refused.items())[:MAX_NAMED]]
        others = f" and {len(self.refused) - MAX_NAMED} others" if len(self.refused) > MAX_NAMED else ""
        return f"{text}; not copied: {', '.join(named)}{others}"


def read_manifest(data: bytes | None, job: str) -> Manifest:
    """Return the manifest of this job; an empty one when the data is missing, malformed or of another job."""
    try:
        fields = json.loads(data or b"{}")
        if fields.get("job") != job:
            return Manifest(job=job)
        files = {name: _uploaded_file(entry) for name, entry in fields["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return Manifest(job=job)
    return Manifest(job=job, files=files)


def changed_files(listing: OutputListing, manifest: Manifest, previous: OutputListing | None) -> Iterator[str]:
    """Yield the files to upload: those that differ from the manifest and did not change since `previous`."""
    for name, stamp in listing.files.items():
        uploaded = manifest.files.get(name)
        is_quiet = previous is None or previous.files.get(name) == stamp
        if is_quiet and (uploaded is None or uploaded.stamp != stamp):
            yield name


@dataclass(slots=True, kw_only=True)
class OutputSync:
    """Uploads one folder to one folder of a bucket, pass by pass."""

    root: Path
    bucket: BucketFolder
    job: str
    # Called with every manifest that is read or written.
    on_manifest: Callable[[Manifest], None] = lambda _: None
    manifest: Manifest = field(init=False)
    _previous: OutputListing | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Continue from the manifest in the bucket."""
        self.manifest = read_manifest(self.bucket.get(MANIFEST), self.job)
        self.on_manifest(self.manifest)

    @property
    def file_count(self) -> int:
        """Return the number of files at the last pass."""
        return len(self._previous.files) if self._previous is not None else 0

    def upload_changes(self) -> None:
        """Upload the files that have not changed since the last pass; the first pass only lists them."""
        listing = list_output(self.root)
        if self._previous is not None:
            self._upload(listing, tuple(changed_files(listing, self.manifest, self._previous)), is_running=True)
        self._previous = listing

    def finish(self) -> Manifest:
        """Upload everything and mark the manifest as complete. The command must have ended."""
        listing = list_output(self.root)
        # In memory, times do not tell whether a file changed: read all files, and upload those that differ.
        names = listing.files if is_in_memory(self.root) else changed_files(listing, self.manifest, None)
        unreadable = self._upload(listing, tuple(names), is_running=False)
        listing = list_output(self.root)
        if changed := [name for name in changed_files(listing, self.manifest, None) if name not in unreadable]:
            raise StepFailed(f"the file {changed[0]} changed while it was copied")
        self.manifest = replace(self.manifest, refused={**listing.refused, **unreadable}, is_complete=True)
        self.bucket.put(MANIFEST, self.manifest.to_json())
        return self.manifest

    def _upload(self, listing: OutputListing, names: tuple[str, ...], *, is_running: bool) -> dict[str, str]:
        """Upload files in parallel, because latency dominates, and write the manifest.

        Return the unreadable files with the reason: no later attempt could read them either.
        """
        uploads = self.manifest.files.items()
        files = {name: replace(file, is_gone=name not in listing.files) for name, file in uploads}
        failure, unreadable = None, {}
        with ThreadPoolExecutor(MAX_TRANSFERS) as pool:
            futures = {
                name: pool.submit(self._upload_file, name, files.get(name), is_running=is_running) for name in names
            }
        for name, future in futures.items():
            error = future.exception()
            if isinstance(error, PermissionError):
                unreadable[name] = UNREADABLE
            elif isinstance(error, StepFailed | OSError):
                failure = failure or error
            elif (uploaded := future.result()) is not None:
                files[name] = uploaded
        is_changed = files != self.manifest.files
        self.manifest = replace(self.manifest, files=files, refused={**listing.refused, **unreadable})
        if is_changed:
            self.bucket.put(MANIFEST, self.manifest.to_json())
            self.on_manifest(self.manifest)
        if failure is not None:
            raise failure
        return unreadable

    def _upload_file(self, name: str, uploaded: UploadedFile | None, *, is_running: bool) -> UploadedFile | None:
        """Upload one file; return None when it was deleted or changed meanwhile: the next pass handles it."""
        try:
            descriptor = open_file(self.root, link_target(self.root, name) or name)
        except PermissionError:
            raise
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            if is_running:
                # Writes through mmap change the time of a file only when its pages are written back.
                os.fsync(descriptor)
            stamp = stamp_of(os.fstat(descriptor))
            if uploaded is not None and uploaded.sha256 == (digest := _digest(file)):
                pass
            elif stamp.size <= SMALL_BYTES:
                data = file.read()
                digest = hashlib.sha256(data).hexdigest()
                self.bucket.put(name, data)
            else:
                chunks = _HashedChunks(file)
                self.bucket.put(name, chunks, size=stamp.size)
                digest = chunks.sha256
            is_same = stamp_of(os.fstat(descriptor)) == stamp
        return UploadedFile(stamp=stamp, sha256=digest) if is_same else None


def restore(root: Path, bucket: BucketFolder, job: str) -> int:
    """Download the files of an earlier attempt of this job that are missing, and return their number.

    Write the manifest back at once, to detect a read-only bucket before the training and not after it.
    """
    manifest = read_manifest(bucket.get(MANIFEST), job)
    bucket.put(MANIFEST, manifest.to_json())
    files = {name: file for name, file in manifest.files.items() if not file.is_gone}
    missing = [name for name in files if not os.path.lexists(root / name)]
    download_all(root, bucket, missing)
    for name in missing:
        mtime = files[name].stamp.mtime_ns
        with closing_fd(open_file(root, name)) as descriptor:
            os.utime(descriptor, ns=(mtime, mtime))
    return len(missing)


def download_all(root: Path, bucket: BucketFolder, names: Iterable[str]) -> None:
    """Download objects in parallel; raise the first error and start no further download."""
    with ThreadPoolExecutor(MAX_TRANSFERS) as pool:
        try:
            for _ in pool.map(lambda name: download(root, bucket, name), names):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def download(root: Path, bucket: BucketFolder, name: str) -> None:
    """Download one object to a file below a folder, completely or not at all; raise StepFailed for an unsafe name."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in name:
        raise StepFailed(f"{bucket.name} has an object {name!r}, which leads out of {root}; rename the object")
    try:
        inner = "/".join(parts[:-1])
        with closing_fd(open_folder(root, "")) as top, closing_fd(open_folder(root, inner, create=True)) as folder:
            _download(bucket, name, top, folder)
    except OSError as error:
        raise StepFailed(f"{name} cannot be written to {root}: {error.strerror}") from error


def _download(bucket: BucketFolder, name: str, top: int, folder: int) -> None:
    """Write an object to a temporary file and rename it when it is complete; by descriptor, never through a link."""
    partial = f"{PART}{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    with suppress(FileNotFoundError):
        # Left by an earlier attempt, or a link placed there to redirect our write.
        os.unlink(partial, dir_fd=top)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=top)
        with os.fdopen(descriptor, "wb") as file:
            bucket.fetch(name, file)
        os.replace(partial, name.rpartition("/")[2], src_dir_fd=top, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=top)


class _HashedChunks:
    """The chunks of a file; the digest is complete after the last chunk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._file.read(SMALL_BYTES):
            self._digest.update(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def _digest(file: Any) -> str:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return digest


def _uploaded_file(entry: Mapping[str, Any]) -> UploadedFile:
    stamp = Stamp(size=int(entry["size"]), mtime_ns=int(entry["mtime_ns"]), inode=int(entry["inode"]))
    return UploadedFile(stamp=stamp, sha256=str(entry["sha256"]), is_gone=bool(entry.get("gone", False)))
