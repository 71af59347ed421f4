"""Pack a script or a folder up, so that every replica gets the very same code, on whichever cluster."""

import base64
import gzip
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest, TooLarge

# A config map has room for 1 MiB, and what is packed grows by a third on its way.
MAX_BYTES = 700 * 1024
MAX_FILES = 2000
# Code packs to a tenth at best; more than this is data, which nobody should have to read to be told so.
MAX_PLAIN_BYTES = 50 * 1024 * 1024
KEY = "source.tar.gz"
# What nobody means to send along.
LEFT_OUT = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache"})
BESIDE = ("requirements.txt",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Code, packed up; the same files have the same digest, wherever and whenever they are packed."""

    data: bytes
    files: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Give what the code is found by."""
        return f"sha256:{sha256(self.data).hexdigest()}"

    def config_map(self, name: str, labels: dict[str, str]) -> Object:
        """Write the config map that carries the code."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels},
            "immutable": True,
            "binaryData": {KEY: base64.b64encode(self.data).decode()},
        }


def pack(path: str) -> Packed:
    """Pack a folder, or a script with the Python files and requirements.txt beside it."""
    place = Path(path)
    if not place.exists():
        raise BadRequest(f"{path}: no such file or folder")
    root = place if place.is_dir() else place.parent
    files = sorted(_all(root) if place.is_dir() else _beside(place))
    if not files:
        raise BadRequest(f"{path}: there is nothing in it to send")
    if len(files) > MAX_FILES:
        raise TooLarge(f"{path}: {len(files)} files are too many to send along (at most {MAX_FILES}); use --git")
    if (plain := sum(file.stat().st_size for file in files)) > MAX_PLAIN_BYTES:
        size = f"{plain // 1024**2} MiB"
        raise TooLarge(f"{path}: {size} is too much to send along (at most {MAX_BYTES // 1024} KiB packed); use --git")
    raw = io.BytesIO()
    # A script may itself be a link; a copy goes along then.
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
        for file in files:
            archive.add(file, arcname=str(file.relative_to(root)), recursive=False, filter=_plain)
    data = gzip.compress(raw.getvalue(), mtime=0)
    if len(data) > MAX_BYTES:
        size = f"{len(data) // 1024} KiB packed"
        raise TooLarge(f"{path}: {size} is too much to send along (at most {MAX_BYTES // 1024} KiB); use --git")
    return Packed(data=data, files=tuple(str(file.relative_to(root)) for file in files))


def _beside(script: Path) -> Iterator[Path]:
    for entry in script.parent.iterdir():
        if entry == script or ((entry.suffix == ".py" or entry.name in BESIDE) and _is_sent(entry)):
            yield entry


def _all(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name in LEFT_OUT or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _all(entry)
        elif _is_sent(entry):
            yield entry


def _is_sent(file: Path) -> bool:
    """Tell whether a file goes along: a link might lead to what nobody means to send."""
    return file.is_file() and not file.is_symlink()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Leave out who packed it and when, so that the same files are the same archive."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry
