"""Code that its author packed up: checked by its digest, and laid out again."""

import hashlib
import os
import tarfile
from pathlib import Path

from paceline.podtools.reporting import StepFailed


def unpack(file: Path, digest: str, into: Path) -> int:
    """Lay an archive out and count its files; StepFailed when it is not the one that was meant, or leads elsewhere."""
    try:
        with file.open("rb") as packed:
            found = f"sha256:{hashlib.file_digest(packed, 'sha256').hexdigest()}"
            if found != digest:
                raise StepFailed(f"the archive is another one than the job was made with: it has the digest {found}")
            packed.seek(0)
            with tarfile.open(fileobj=packed, mode="r:gz") as archive:
                lay_out(archive, into)
    except FileNotFoundError as error:
        raise StepFailed(f"the archive is not there: {error.filename} is missing") from error
    except (OSError, EOFError, tarfile.TarError) as error:
        raise StepFailed(f"the archive cannot be unpacked: {error}") from error
    open_up(into)
    return sum(path.is_file() for path in into.rglob("*"))


def lay_out(archive: tarfile.TarFile, into: Path) -> None:
    """Extract what stays within a folder, as our own; StepFailed names what would not.

    As tarfile's "data" filter does, which Python has from 3.11.4 on: Debian 12 has an older one.
    """
    # Where there are filters, none but ours.
    archive.extraction_filter = lambda member, _into: member
    inside = Path(os.path.realpath(into))
    for member in archive:
        place = inside / member.name
        leads_to = [place]
        if member.issym():
            leads_to.append(place.parent / member.linkname)
        elif member.islnk():
            leads_to.append(inside / member.linkname)
        elif not member.isreg() and not member.isdir():
            raise StepFailed(
                f"the archive cannot be unpacked: {member.name!r} is neither a file nor a folder nor a link"
            )
        if not all(Path(os.path.realpath(each)).is_relative_to(inside) for each in leads_to):
            raise StepFailed(f"the archive cannot be unpacked: {member.name!r} leads out of its folder")
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        archive.extract(member, into)


def open_up(folder: Path) -> None:
    """Let whatever user the command runs as write beside its code."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o777 if path.is_dir() or mode & 0o100 else 0o666))
