"""A folder of results as it lies there: which files there are, and how one is opened without being led astray.

The program that writes there is not trusted: a link may lead to our own secrets, and may change while we look.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

OWN = ".paceline"
# What a file is called until all of it has come.
PART = f"{OWN}-part-"
OUT, NOT_A_FILE = "leads out of the folder", "is no file"
LINK_TO_FOLDER, NOT_TEXT = "is a link to a folder", "has a name that is not UTF-8"
NOT_PLAIN, CLOSED = "has a name with a control character", "may not be read by us"
IN_MEMORY = ("tmpfs", "ramfs")
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# No bucket takes longer names, and nobody can have us open folders without end.
LONGEST, TOO_DEEP = 1024, "has a longer name than a bucket takes"
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """By which a file that has changed is told."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What lies in a folder: files to be copied, and names that are not, each with the reason."""

    files: dict[str, Stamp] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def look_at(root: Path) -> Look:
    """List a folder with all that is below it."""
    look = Look()
    for name, entry in _walk(root):
        if odd := _odd(name):
            look.refused[shown(name)] = odd
        elif entry is None:
            look.refused[name] = CLOSED
        elif entry.is_symlink():
            _add_link(look, root, name)
        elif entry.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):
                known = entry.stat(follow_symlinks=False)
                # What it was when it was listed it need not be now.
                if stat.S_ISREG(known.st_mode):
                    look.files[name] = stamp_of(known)
        elif entry.is_dir(follow_symlinks=False):
            look.refused[name[:LONGEST]] = TOO_DEEP
        else:
            look.refused[name] = NOT_A_FILE
    return look


def open_inside(root: Path, name: str) -> int:
    """Open a file for reading, step by step and never through a link; OSError when it is not what it was."""
    above, _, last = name.rpartition("/")
    folder = open_folder(root, above)
    try:
        # A pipe would keep us waiting for somebody who writes.
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(f"{name} {NOT_A_FILE}")
    return found


def open_folder(root: Path, name: str, *, must_make: bool = False) -> int:
    """Open a folder below another, step by step and never through a link; those that are missing may be made."""
    folder = os.open(root, FOLDER)
    for part in name.split("/") if name else ():
        try:
            if must_make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def is_in_memory(folder: Path) -> bool:
    """Tell whether a folder's files are kept by no disk: writing through memory never changes their times there."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[2] == number:
            return line.partition(" - ")[2].split()[0] in IN_MEMORY
    return False


def stamp_of(known: os.stat_result) -> Stamp:
    """Take from a file's facts what tells whether it has changed."""
    return Stamp(size=known.st_size, mtime_ns=known.st_mtime_ns, inode=known.st_ino)


def target_of(root: Path, name: str) -> str:
    """Follow a link that stays inside, by its words alone, to the name of a file; empty when it leads out."""
    seen: set[str] = set()
    while words := _link_words(root, name):
        if name in seen:
            return ""
        seen.add(name)
        joined = os.path.normpath(str(PurePosixPath(root / name).parent / words))
        inner = os.path.relpath(joined, root)
        if inner == ".." or inner.startswith("../"):
            return ""
        name = inner
    return name


def _link_words(root: Path, name: str) -> str:
    """Read a link; empty when it is none, or not there."""
    above, _, last = name.rpartition("/")
    try:
        folder = open_folder(root, above)
    except OSError:
        return ""
    try:
        return os.readlink(last, dir_fd=folder)
    except OSError:
        return ""
    finally:
        os.close(folder)


def shown(name: str) -> str:
    """Give a name fit for a message, whatever is in it."""
    text = name.encode(errors="backslashreplace").decode()
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _walk(root: Path) -> Iterator[tuple[str, "os.DirEntry[str] | None"]]:
    """Give all that is no folder, and with None the folders that are closed to us; an entry is good until the next."""
    folders = [""]
    while folders:
        prefix = folders.pop()
        try:
            # By handle: a folder that is exchanged for a link meanwhile shows nothing of where that leads.
            handle = open_folder(root, prefix)
        except PermissionError:
            if not prefix:
                raise
            yield prefix, None
            continue
        except OSError as error:
            if not prefix and not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise
            # Gone since its parent was listed.
            continue
        try:
            yield from _entries(handle, prefix, folders)
        finally:
            os.close(handle)


def _entries(handle: int, prefix: str, folders: list[str]) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Give what is in one folder, and add the folders in it to those that are still to be listed."""
    with os.scandir(handle) as listed:
        entries = sorted(listed, key=lambda each: each.name)
    for entry in entries:
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if name == OWN or name.startswith(PART):
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield name, entry
        elif len(name) <= LONGEST:
            folders.append(name)
        else:
            yield name, entry


def _is_folder(root: Path, name: str) -> bool:
    try:
        os.close(open_folder(root, name))
    except OSError:
        return False
    return True


def _add_link(look: Look, root: Path, name: str) -> None:
    target = target_of(root, name)
    if not target:
        look.refused[name] = OUT
        return
    try:
        handle = open_inside(root, target)
    except IsADirectoryError:
        look.refused[name] = LINK_TO_FOLDER
    except OSError:
        look.refused[name] = LINK_TO_FOLDER if _is_folder(root, target) else OUT
    else:
        look.files[name] = stamp_of(os.fstat(handle))
        os.close(handle)


def _odd(name: str) -> str:
    """Say what about a name no bucket takes; nothing of most names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return NOT_TEXT
    return NOT_PLAIN if CONTROL.search(name) else ""
