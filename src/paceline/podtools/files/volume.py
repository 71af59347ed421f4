"""What can be done with the files of a volume, by handles beneath its root: list, measure, upload, rename, remove."""

import contextlib
import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from paceline.filesystem.handles import closed
from paceline.filesystem.trees import BLOCK_BYTES, remove_entry, used_bytes
from paceline.podtools.files.paths import FolderEntry, Refused, open_folder_at, open_path, parts_of

MOST_LISTED = 1_000
# Files that are being uploaded; their names say to which file and to which attempt they belong.
UPLOAD_PREFIX = ".paceline-upload-"
MOST_PART = 64 << 20
MOST_ID = 200
NOREPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPart:
    """A part of a file that is uploaded."""

    path: str
    # Names the attempt: parts of another one are never mixed in.
    id: str
    offset: int
    size: int
    data: bytes = b""
    # SHA-256 of the data, in hexadecimal; empty if the client did not send one.
    digest: str = ""
    is_replacing: bool = False


class VolumeFolder:
    """The files beneath one folder."""

    def __init__(self, root: int) -> None:
        self.root = root

    @contextlib.contextmanager
    def entry(self, path: str) -> Iterator[FolderEntry]:
        """Open the folder of a path; Refused for the root itself."""
        *parents, name = parts_of(path) or [""]
        if not name:
            raise Refused(HTTPStatus.BAD_REQUEST, "the path names the whole volume; name a file or folder in it")
        with closed(open_folder_at(self.root, "/".join(parents))) as folder:
            yield FolderEntry(folder=folder, name=name)

    def stat(self, path: str) -> dict[str, Any]:
        """Return what a path leads to."""
        with closed(open_path(self.root, path)) as handle:
            return described((parts_of(path) or ["/"])[-1], os.fstat(handle))

    def list(self, path: str, *, limit: int, after: str = "") -> dict[str, Any]:
        """Return one page of a folder, folders first; `after` is the `next` of the page before."""
        with closed(open_folder_at(self.root, path)) as folder:
            with os.scandir(folder) as entries:
                marks = sorted(_mark(entry) for entry in entries if not entry.name.startswith(UPLOAD_PREFIX))
            page = [mark for mark in marks if mark > after][: limit + 1]
            listed = []
            for mark in page[:limit]:
                with contextlib.suppress(FileNotFoundError):
                    listed.append(self._listed(folder, mark[1:]))
        return {"entries": listed, "total": len(marks), "next": page[limit - 1] if len(page) > limit else ""}

    def _listed(self, folder: int, name: str) -> dict[str, Any]:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        entry = described(name, status)
        if stat.S_ISLNK(status.st_mode):
            entry["target"] = os.fsencode(os.readlink(name, dir_fd=folder)).decode(errors="replace")
        return entry

    def usage(self, path: str) -> dict[str, Any]:
        """Return the bytes of a tree and of each entry of the folder, and how full the disk beneath is."""
        with closed(open_folder_at(self.root, path)) as folder:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
            children = [{"name": name, "bytes": self._used(folder, name)} for name in names[:MOST_LISTED]]
            disk = os.fstatvfs(folder)
            total = used_bytes(folder)
        return {
            "bytes": total,
            "entries": children,
            "capacity": disk.f_blocks * disk.f_frsize,
            "available": disk.f_bavail * disk.f_frsize,
        }

    def _used(self, folder: int, name: str) -> int:
        with contextlib.suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                return status.st_blocks * BLOCK_BYTES
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            with closed(os.open(name, flags, dir_fd=folder)) as child:
                return used_bytes(child)
        return 0

    def make_folder(self, path: str) -> None:
        """Create a folder; the ones above it must exist."""
        with self.entry(path) as entry:
            os.mkdir(entry.name, 0o775, dir_fd=entry.folder)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            with closed(os.open(entry.name, flags, dir_fd=entry.folder)) as handle:
                give_to_owner_of(entry.folder, handle)

    def rename(self, path: str, to: str) -> None:
        """Move a file or folder within the volume; an existing one is never replaced."""
        with self.entry(path) as entry, self.entry(to) as target:
            entry.status()
            rename_new(entry, target)

    def remove(self, path: str, *, is_recursive: bool) -> None:
        """Remove a file, a link or a folder; a folder with contents only if that is asked for."""
        with self.entry(path) as entry:
            if stat.S_ISDIR(entry.status().st_mode) and not is_recursive:
                os.rmdir(entry.name, dir_fd=entry.folder)
            else:
                remove_entry(entry.folder, entry.name)

    def uploaded(self, part: UploadPart) -> int:
        """Return how many bytes of an upload are here; those before an offset are never sent again."""
        with self.entry(part.path) as entry:
            try:
                return os.stat(_upload_name(entry.name, part), dir_fd=entry.folder, follow_symlinks=False).st_size
            except FileNotFoundError:
                return 0

    def upload(self, part: UploadPart) -> dict[str, Any]:
        """Append a part; with the last one the file gets its name. Return the offset of the next part."""
        _check(part)
        with self.entry(part.path) as entry:
            name = _upload_name(entry.name, part)
            _refuse_taken(entry, part)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            with closed(os.open(name, flags, 0o664, dir_fd=entry.folder)) as file:
                end = _append(file, part)
                if end < part.size:
                    return {"offset": end, "done": False}
                give_to_owner_of(entry.folder, file)
                os.fsync(file)
            upload = FolderEntry(folder=entry.folder, name=name)
            if part.is_replacing:
                os.rename(name, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)
            else:
                rename_new(upload, entry)
            os.fsync(entry.folder)
            return {"offset": end, "done": True}

    def cancel_upload(self, part: UploadPart) -> None:
        """Remove what is here of an upload."""
        with self.entry(part.path) as entry, contextlib.suppress(FileNotFoundError):
            os.unlink(_upload_name(entry.name, part), dir_fd=entry.folder)


def _check(part: UploadPart) -> None:
    if not part.id or len(part.id) > MOST_ID:
        raise Refused(HTTPStatus.BAD_REQUEST, f"id must have 1 to {MOST_ID} characters")
    if not 0 <= part.offset <= part.size or part.offset + len(part.data) > part.size:
        raise Refused(HTTPStatus.BAD_REQUEST, "the part does not lie within the size of the file")
    if part.digest and hashlib.sha256(part.data).hexdigest() != part.digest:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "the part was damaged on its way; send it again")


def _refuse_taken(entry: FolderEntry, part: UploadPart) -> None:
    """Refuse an upload to a name that exists, before anything is sent; a folder is never replaced."""
    with contextlib.suppress(FileNotFoundError):
        is_folder = stat.S_ISDIR(entry.status().st_mode)
        if is_folder or not part.is_replacing:
            raise Refused(HTTPStatus.CONFLICT, f"{part.path}: exists already")


def _append(file: int, part: UploadPart) -> int:
    """Write a part at its offset, and return where it ends; Refused unless it follows what is there."""
    size = os.fstat(file).st_size
    if part.offset != size:
        raise Refused(HTTPStatus.CONFLICT, f"the next part begins at {size}")
    view, offset = memoryview(part.data), part.offset
    try:
        while view:
            written = os.pwrite(file, view, offset)
            view, offset = view[written:], offset + written
    except OSError:
        # Only whole parts count, so that the offset of the next one is known.
        os.ftruncate(file, size)
        raise
    return offset


def _upload_name(name: str, part: UploadPart) -> str:
    digest = hashlib.sha256(f"{name}\0{part.size}\0{part.id}".encode(errors="surrogateescape"))
    return f"{UPLOAD_PREFIX}{digest.hexdigest()[:24]}"


def rename_new(entry: FolderEntry, target: FolderEntry) -> None:
    """Rename without replacing anything; FileExistsError if the new name is taken."""
    code = _libc.renameat2(entry.folder, os.fsencode(entry.name), target.folder, os.fsencode(target.name), NOREPLACE)
    error = ctypes.get_errno() if code else 0
    if error in (errno.EINVAL, errno.ENOSYS):
        # A file system that cannot do it in one step, such as NFS.
        with contextlib.suppress(FileNotFoundError):
            target.status()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.name)
        os.rename(entry.name, target.name, src_dir_fd=entry.folder, dst_dir_fd=target.folder)
    elif error:
        raise OSError(error, os.strerror(error), target.name)


def give_to_owner_of(folder: int, handle: int) -> None:
    """Give a new file to the owner of its folder, as far as this user may: jobs run as that owner."""
    status = os.fstat(folder)
    with contextlib.suppress(PermissionError):
        os.fchown(handle, status.st_uid, status.st_gid)


def _mark(entry: os.DirEntry[str]) -> str:
    return f"{'0' if entry.is_dir(follow_symlinks=False) else '1'}{entry.name}"


def described(name: str, status: os.stat_result) -> dict[str, Any]:
    """Return an entry of a folder as JSON."""
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    return {"name": name, "type": kind, "size": status.st_size, "modified": status.st_mtime, "uid": status.st_uid}


def open_root(folder: str) -> int:
    """Open the folder at which the volume is mounted."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
