"""Packs a script or folder into an archive, so that every replica gets the same code on any cluster."""

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

# A config map holds 1 MiB, and base64 adds a third.
MAX_BYTES = 700 * 1024
MAX_FILES = 2000
# Code compresses to a tenth at best. More than this is data: reject it without reading it.
MAX_PLAIN_BYTES = 50 * 1024 * 1024
KEY = "source.tar.gz"
# Folders that are never packed.
LEFT_OUT = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".pytest_cache"})
BESIDE = ("requirements.txt",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Packed code; the same files always have the same digest."""

    data: bytes
    files: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return the digest that identifies the code."""
        return f"sha256:{sha256(self.data).hexdigest()}"

    def config_map(self, name: str, labels: dict[str, str]) -> Object:
        """Return the config map with the code."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels},
            "immutable": True,
            "binaryData": {KEY: base64.b64encode(self.data).decode()},
        }


def pack(path: str) -> Packed:
    """Return a packed folder, or a script packed with the Python files and requirements.txt next to it."""
    place = Path(path)
    if not place.exists():
        raise BadRequest(f"{path}: no such file or folder")
    root = place if place.is_dir() else place.parent
    files = sorted(_all(root) if place.is_dir() else _beside(place))
    if not files:
        raise BadRequest(f"{path}: there are no files to upload in it")
    if len(files) > MAX_FILES:
        raise TooLarge(f"{path}: {len(files)} files are too many to upload (at most {MAX_FILES}); use --git")
    if (plain := sum(file.stat().st_size for file in files)) > MAX_PLAIN_BYTES:
        size = f"{plain // 1024**2} MiB"
        raise TooLarge(f"{path}: {size} is too large to upload (at most {MAX_BYTES // 1024} KiB packed); use --git")
    raw = io.BytesIO()
    # The script itself may be a link: pack its target.
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
        for file in files:
            archive.add(file, arcname=str(file.relative_to(root)), recursive=False, filter=_plain)
    data = gzip.compress(raw.getvalue(), mtime=0)
    if len(data) > MAX_BYTES:
        size = f"{len(data) // 1024} KiB packed"
        raise TooLarge(f"{path}: {size} is too large to upload (at most {MAX_BYTES // 1024} KiB); use --git")
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
    """Return True if a file is packed. Links are not: they may point to files that should not be sent."""
    return file.is_file() and not file.is_symlink()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and times, so that the same files result in the same archive."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry
