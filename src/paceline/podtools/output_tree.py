"""Lists a folder of results and opens files in it without following links out of it.

The program that writes there is not trusted: a link may lead to our own secrets, and may change at any time.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

METADATA_FOLDER = ".paceline"
# Prefix of the name of an incomplete file.
PART = f"{METADATA_FOLDER}-part-"
OUTSIDE, NOT_A_FILE = "leads out of the folder", "is not a file"
LINK_TO_FOLDER, NOT_UTF8 = "is a link to a folder", "has a name that is not UTF-8"
CONTROL_CHARACTER, UNREADABLE = "has a name with a control character", "may not be read by us"
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Object stores allow no longer names. This also bounds the depth of folders that we open.
MAX_NAME, NAME_TOO_LONG = 1024, "has a longer name than a bucket takes"
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The attributes that change when a file changes."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputListing:
    """The files of a folder, and the names that cannot be copied, with the reason."""

    files: dict[str, Stamp] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def list_output(root: Path) -> OutputListing:
    """Return all files below a folder."""
    listing = OutputListing()
    for name, entry in _walk(root):
        if problem := _name_problem(name):
            listing.refused[printable(name)] = problem
        elif entry is None:
            listing.refused[name] = UNREADABLE
        elif entry.is_symlink():
            _add_link(listing, root, name)
        elif entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                # It may have been replaced since it was listed.
                if stat.S_ISREG(status.st_mode):
                    listing.files[name] = stamp_of(status)
        elif entry.is_dir(follow_symlinks=False):
            listing.refused[name[:MAX_NAME]] = NAME_TOO_LONG
        else:
            listing.refused[name] = NOT_A_FILE
    return listing


def open_file(root: Path, name: str) -> int:
    """Return a descriptor of a file, opened without following links; raise OSError when it is not a regular file."""
    parent, _, last = name.rpartition("/")
    with closing_fd(open_folder(root, parent)) as folder:
        # O_NONBLOCK: opening a pipe would wait for a writer.
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} {NOT_A_FILE}")
    return descriptor


def open_folder(root: Path, name: str, *, create: bool = False) -> int:
    """Return a descriptor of a folder below another, opened without following links; create missing ones on demand."""
    folder = os.open(root, OPEN_FOLDER)
    for part in name.split("/") if name else ():
        with closing_fd(folder):
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            folder = os.open(part, OPEN_FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    return folder


@contextmanager
def closing_fd(descriptor: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_in_memory(folder: Path) -> bool:
    """Return whether a folder is in memory, where writes through mmap never change the times of files."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[2] == number:
            return line.partition(" - ")[2].split()[0] in MEMORY_FILE_SYSTEMS
    return False


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the attributes that tell whether a file has changed."""
    return Stamp(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)


def link_target(root: Path, name: str) -> str:
    """Return the name of the file that a link leads to, by the text of links alone; empty when it leads out."""
    visited: set[str] = set()
    while text := _read_link(root, name):
        if name in visited:
            return ""
        visited.add(name)
        joined = os.path.normpath(str(PurePosixPath(root / name).parent / text))
        inner = os.path.relpath(joined, root)
        if inner == ".." or inner.startswith("../"):
            return ""
        name = inner
    return name


def _read_link(root: Path, name: str) -> str:
    """Return the text of a link; empty when it is not a link or does not exist."""
    parent, _, last = name.rpartition("/")
    try:
        with closing_fd(open_folder(root, parent)) as folder:
            return os.readlink(last, dir_fd=folder)
    except OSError:
        return ""


def printable(name: str) -> str:
    """Return a name with unprintable characters escaped."""
    text = name.encode(errors="backslashreplace").decode()
    return CONTROL_CHARACTERS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _walk(root: Path) -> Iterator[tuple[str, "os.DirEntry[str] | None"]]:
    """Yield all entries except folders, and unreadable folders with None; an entry is valid until the next one."""
    folders = [""]
    while folders:
        prefix = folders.pop()
        try:
            # By descriptor: a folder may be replaced by a link to another one at any time.
            descriptor = open_folder(root, prefix)
        except PermissionError:
            if not prefix:
                raise
            yield prefix, None
            continue
        except OSError as error:
            if not prefix and not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise
            # Deleted since its parent was listed.
            continue
        with closing_fd(descriptor):
            yield from _entries(descriptor, prefix, folders)


def _entries(descriptor: int, prefix: str, folders: list[str]) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield the entries of one folder, and append its folders to those still to be listed."""
    with os.scandir(descriptor) as iterator:
        entries = sorted(iterator, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if name == METADATA_FOLDER or name.startswith(PART):
            continue
        if entry.is_dir(follow_symlinks=False) and len(name) <= MAX_NAME:
            folders.append(name)
        else:
            yield name, entry


def _is_folder(root: Path, name: str) -> bool:
    try:
        os.close(open_folder(root, name))
    except OSError:
        return False
    return True


def _add_link(listing: OutputListing, root: Path, name: str) -> None:
    target = link_target(root, name)
    if not target:
        listing.refused[name] = OUTSIDE
        return
    try:
        descriptor = open_file(root, target)
    except IsADirectoryError:
        listing.refused[name] = LINK_TO_FOLDER
    except OSError:
        listing.refused[name] = LINK_TO_FOLDER if _is_folder(root, target) else OUTSIDE
    else:
        listing.files[name] = stamp_of(os.fstat(descriptor))
        os.close(descriptor)


def _name_problem(name: str) -> str:
    """Return why an object store refuses a name; empty for most names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return NOT_UTF8
    return CONTROL_CHARACTER if CONTROL_CHARACTERS.search(name) else ""
