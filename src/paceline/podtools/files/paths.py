"""Paths of a volume: resolved once beneath its root, then used by handle."""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from paceline.filesystem.handles import (
    BENEATH,
    FOLDER,
    NO_SYMLINKS,
    UNSUPPORTED,
    closed,
    link_to,
    open_beneath,
    openat2,
)

MOST_PATH_BYTES = 4095
# Folders that one walk enters.
MOST_FOLDERS = 50_000
STATUS = {
    errno.ENOENT: (HTTPStatus.NOT_FOUND, "there is no such file or folder"),
    errno.ENOTDIR: (HTTPStatus.BAD_REQUEST, "a part of the path is not a folder"),
    errno.EXDEV: (HTTPStatus.FORBIDDEN, "leads out of the volume"),
    errno.ELOOP: (HTTPStatus.FORBIDDEN, "has too many links"),
    errno.EACCES: (HTTPStatus.FORBIDDEN, "may not be read or written by the file server"),
    errno.EPERM: (HTTPStatus.FORBIDDEN, "may not be read or written by the file server"),
    errno.EROFS: (HTTPStatus.FORBIDDEN, "the volume is read-only"),
    errno.EEXIST: (HTTPStatus.CONFLICT, "exists already"),
    errno.ENOTEMPTY: (HTTPStatus.CONFLICT, "the folder is not empty"),
    errno.EBUSY: (HTTPStatus.CONFLICT, "is in use"),
    errno.ENAMETOOLONG: (HTTPStatus.BAD_REQUEST, "the name is too long"),
    errno.ENOSPC: (HTTPStatus.INSUFFICIENT_STORAGE, "the volume is full"),
    errno.EDQUOT: (HTTPStatus.INSUFFICIENT_STORAGE, "the quota of the volume is used up"),
}


class Refused(Exception):
    """A request that is answered with an error: its status and what would be right."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def refusal_of(error: OSError, path: str) -> Refused:
    """Return the answer to a request that the system refused."""
    status, text = STATUS.get(error.errno or 0, (HTTPStatus.INTERNAL_SERVER_ERROR, error.strerror or "failed"))
    return Refused(status, f"{path or '/'}: {text}")


def parts_of(path: str) -> list[str]:
    """Return the names in a path of the volume; Refused for `..`, which no client needs."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{path}: write the path without ..")
    if "\0" in path or len(os.fsencode(path)) > MOST_PATH_BYTES:
        raise Refused(HTTPStatus.BAD_REQUEST, "the path is too long, or has a zero byte")
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """A name in an open folder; the name is never followed."""

    folder: int
    name: str

    def status(self) -> os.stat_result:
        """Return the status of the entry itself; of a link, not of its target."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)


def open_path(root: int, path: str) -> int:
    """Return a handle (O_PATH) of what a path leads to: a file or a folder of the volume, and nothing else."""
    handle = open_beneath(root, "/".join(parts_of(path)))
    mode = os.fstat(handle).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(handle)
        raise Refused(HTTPStatus.BAD_REQUEST, f"{path}: is neither a file nor a folder")
    return handle


def open_folder_at(root: int, path: str) -> int:
    """Return a readable handle of a folder."""
    with closed(open_path(root, path)) as handle:
        return os.open(link_to(handle), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_file_at(root: int, path: str) -> int:
    """Return a readable handle of a file."""
    with closed(open_path(root, path)) as handle:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise Refused(HTTPStatus.BAD_REQUEST, f"{path}: is a folder; ask for its archive")
        return os.open(link_to(handle), os.O_RDONLY | os.O_CLOEXEC)


def folders_beneath(root: int, path: str) -> Iterator[tuple[str, int, list[os.DirEntry[str]]]]:
    """Yield every folder beneath one, it included: its path relative to that ("." for itself), its handle, its entries.

    Links are not followed, and folders that are gone or closed to us are left out. The handle is closed afterwards.
    """
    with closed(open_folder_at(root, path)) as top:
        pending = ["."]
        for _ in range(MOST_FOLDERS):
            if not pending:
                return
            relative = pending.pop()
            try:
                handle = _open_plain(top, relative)
            except OSError:
                continue
            with closed(handle), os.scandir(handle) as scan:
                entries = list(scan)
                folders = sorted((entry.name for entry in entries if entry.is_dir(follow_symlinks=False)), reverse=True)
                pending += [name if relative == "." else f"{relative}/{name}" for name in folders]
                yield relative, handle, [entry for entry in entries if not entry.is_dir(follow_symlinks=False)]


def _open_plain(top: int, relative: str) -> int:
    """Open a folder beneath another one; OSError if a part of the path is a link."""
    try:
        return openat2(top, relative, flags=FOLDER, resolve=BENEATH | NO_SYMLINKS)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    handle = os.open(".", FOLDER, dir_fd=top)
    for name in relative.split("/"):
        with closed(handle) as above:
            handle = os.open(name, FOLDER, dir_fd=above)
    return handle
