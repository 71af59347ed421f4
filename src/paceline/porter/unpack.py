"""Code that its author packed up: checked by its digest, and laid out again."""

import hashlib
import tarfile
from pathlib import Path

from paceline.porter.git import open_up
from paceline.porter.words import Stopped


def unpack(file: Path, digest: str, into: Path) -> int:
    """Lay an archive out and count its files; Stopped when it is not the one that was meant, or leads elsewhere."""
    try:
        with file.open("rb") as packed:
            found = f"sha256:{hashlib.file_digest(packed, 'sha256').hexdigest()}"
            if found != digest:
                raise Stopped(f"the archive is another one than the job was made with: it has the digest {found}")
            packed.seek(0)
            with tarfile.open(fileobj=packed, mode="r:gz") as archive:
                archive.extractall(into, filter="data")
    except FileNotFoundError as error:
        raise Stopped(f"the archive is not there: {error.filename} is missing") from error
    except (OSError, EOFError, tarfile.TarError) as error:
        raise Stopped(f"the archive cannot be unpacked: {error}") from error
    open_up(into)
    return sum(path.is_file() for path in into.rglob("*"))
