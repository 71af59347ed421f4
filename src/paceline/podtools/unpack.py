"""The step `unpack`: check an archive of the author's code by its digest, and extract it."""

import argparse
import hashlib
import os
import tarfile
from pathlib import Path

from paceline.podtools.install_tools import add_target_arguments, copy_tools
from paceline.podtools.reporting import PodStep, Reporter, StepFailed, pluralize


def unpack(file: Path, digest: str, folder: Path) -> int:
    """Extract an archive and return the number of files; raise StepFailed when the archive is wrong or unsafe."""
    try:
        with file.open("rb") as archive_file:
            actual = f"sha256:{hashlib.file_digest(archive_file, 'sha256').hexdigest()}"
            if actual != digest:
                raise StepFailed(f"the archive is another one than the job was made with: it has the digest {actual}")
            archive_file.seek(0)
            with tarfile.open(fileobj=archive_file, mode="r:gz") as archive:
                extract(archive, folder)
    except FileNotFoundError as error:
        raise StepFailed(f"the archive {error.filename} is missing") from error
    except (OSError, EOFError, tarfile.TarError) as error:
        raise StepFailed(f"the archive cannot be unpacked: {error}") from error
    make_writable(folder)
    return sum(path.is_file() for path in folder.rglob("*"))


def extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract members with our user as owner; raise StepFailed for a member outside of the folder.

    This repeats tarfile's "data" filter, which Python has from 3.11.4 on: Debian 12 has an older one.
    """
    # Turn the built-in filters off where they exist.
    archive.extraction_filter = lambda member, _folder: member
    root = Path(os.path.realpath(folder))
    for member in archive:
        path = root / member.name
        targets = [path]
        if member.issym():
            targets.append(path.parent / member.linkname)
        elif member.islnk():
            targets.append(root / member.linkname)
        elif not member.isreg() and not member.isdir():
            raise StepFailed(
                f"the archive cannot be unpacked: {member.name!r} is neither a file nor a folder nor a link"
            )
        if not all(Path(os.path.realpath(target)).is_relative_to(root) for target in targets):
            raise StepFailed(f"the archive cannot be unpacked: {member.name!r} leads out of its folder")
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        archive.extract(member, folder)


def make_writable(folder: Path) -> None:
    """Let every user write to the code, because the command may run as any user."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o777 if path.is_dir() or mode & 0o100 else 0o666))


def add_unpack_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--digest", required=True)
    add_target_arguments(parser)


def run_unpack(options: argparse.Namespace, _secret: dict[str, str], reporter: Reporter) -> str:
    """Extract the code, and copy the programs that install its packages."""
    count = unpack(options.file, options.digest, options.into)
    copy_tools(options, reporter)
    return f"{pluralize(count, 'file')} of the archive {options.digest}"


STEPS = {"unpack": PodStep(add_unpack_arguments, run_unpack)}
