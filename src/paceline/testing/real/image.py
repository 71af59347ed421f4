"""Container images without a registry: a root folder of Debian's static busybox, as an OCI archive."""

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BUSYBOX = Path("/bin/busybox")
_FOLDERS = ("bin", "dev", "etc", "proc", "root", "sys", "tmp")
_ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
}
_OCI = "application/vnd.oci.image"


def write_archive(
    path: Path,
    names: Sequence[str],
    command: Sequence[str],
    *,
    add_files: Callable[[tarfile.TarFile], None] | None = None,
    program_folders: Sequence[str] = ("/bin",),
) -> None:
    """Write one image under several names; `command` is what it runs by itself, `add_files` adds files to it."""
    layer = _layer(add_files)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": list(command), "Env": [f"PATH={':'.join(program_folders)}"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs = [layer, _json(config)]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _descriptor(f"{_OCI}.config.v1+json", blobs[1]),
        "layers": [_descriptor(f"{_OCI}.layer.v1.tar", layer)],
    }
    blobs.append(_json(manifest))
    entry = _descriptor(f"{_OCI}.manifest.v1+json", blobs[2])
    entries = [{**entry, "annotations": {"io.containerd.image.name": name}} for name in names]
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _json({"schemaVersion": 2, "manifests": entries}))
        for blob in blobs:
            _add(archive, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob)


def _layer(add_files: Callable[[tarfile.TarFile], None] | None) -> bytes:
    """Give a root folder with busybox under all of its names, and with more."""
    applets = subprocess.run((BUSYBOX, "--list"), capture_output=True, text=True, check=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            layer.addfile(folder)
        _add(layer, "bin/busybox", BUSYBOX.read_bytes(), mode=0o755)
        for applet in applets:
            if applet == "busybox":
                continue
            _link(layer, f"bin/{applet}", "busybox")
        # The first line of most scripts names it.
        _link(layer, "usr/bin/env", "/bin/busybox")
        for name, text in _ETC.items():
            _add(layer, f"etc/{name}", text.encode())
        if add_files is not None:
            add_files(layer)
    return buffer.getvalue()


def _link(archive: tarfile.TarFile, name: str, target: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    archive.addfile(link)


def _add(archive: tarfile.TarFile, name: str, data: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
