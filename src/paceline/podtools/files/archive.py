"""A folder as one file, streamed: zip for browsers, tar for programs. Nothing is held but one block."""

import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, BinaryIO, cast

from paceline.filesystem.handles import closed
from paceline.podtools.files.paths import folders_beneath
from paceline.podtools.files.volume import UPLOAD_PREFIX

BLOCK = 1 << 20
# The first time that a zip file can hold.
FIRST_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class CountedStream:
    """A stream that can only be written to, and knows where it is."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._count = 0

    def write(self, data: bytes) -> int:
        """Write, and count."""
        self._stream.write(data)
        self._count += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how much was written."""
        return self._count

    def flush(self) -> None:
        """Pass on."""
        self._stream.flush()

    def seekable(self) -> bool:
        """Return False, so that sizes are written after the data."""
        return False


def write_archive(root: int, path: str, form: str, stream: BinaryIO) -> None:
    """Write the tree beneath a folder; links and special files are left out."""
    target = cast("IO[bytes]", CountedStream(stream))
    if form == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for name, status, file in tree_files(root, path):
                _add_to_zip(archive, name, status, file)
    else:
        with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, status, file in tree_files(root, path):
                _add_to_tar(tar, name, status, file)


def tree_files(root: int, path: str) -> Iterator[tuple[str, os.stat_result, BinaryIO | None]]:
    """Yield name, status and stream of every file; of a folder (name with a slash at its end) no stream."""
    for relative, handle, entries in folders_beneath(root, path):
        prefix = "" if relative == "." else f"{relative}/"
        if prefix:
            yield prefix, os.fstat(handle), None
        for name in sorted(entry.name for entry in entries):
            # What is gone, or is no file any more, is left out.
            with suppress(OSError):
                if name.startswith(UPLOAD_PREFIX) or not _is_file(name, handle):
                    continue
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with closed(os.open(name, flags, dir_fd=handle)) as file:
                    status = os.fstat(file)
                    if stat.S_ISREG(status.st_mode):
                        with os.fdopen(os.dup(file), "rb") as opened:
                            yield f"{prefix}{name}", status, opened


def _is_file(name: str, folder: int) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _readable(name: str) -> str:
    return os.fsencode(name).decode(errors="replace")


def _add_to_zip(archive: zipfile.ZipFile, name: str, status: os.stat_result, file: BinaryIO | None) -> None:
    moment = datetime.fromtimestamp(max(status.st_mtime, 0), UTC).timetuple()[:6]
    info = zipfile.ZipInfo(_readable(name), max(moment, FIRST_ZIP_TIME))
    info.external_attr = (status.st_mode & 0xFFFF) << 16
    if file is None:
        archive.writestr(info, b"")
        return
    with archive.open(info, "w", force_zip64=True) as target:
        while block := file.read(BLOCK):
            target.write(block)


def _add_to_tar(archive: tarfile.TarFile, name: str, status: os.stat_result, file: BinaryIO | None) -> None:
    info = tarfile.TarInfo(_readable(name))
    info.mode, info.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    if file is None:
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
        return
    info.size = status.st_size
    # A file that shrinks meanwhile ends the archive with an error: its header has been sent.
    archive.addfile(info, file)
