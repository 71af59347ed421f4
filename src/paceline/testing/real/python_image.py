"""An image in which Python runs, made of the Python that runs this and the libraries of this machine that it needs."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from paceline.testing.real.image import write_archive

# Large, and of no use to a program in a container.
_LEFT_OUT = frozenset(
    {"__pycache__", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tkinter", "turtledemo"}
)


def write_python_archive(
    path: Path, names: tuple[str, ...], environment: Path | None = None, *, packages: tuple[Path, ...] = ()
) -> None:
    """Write the image under several names, with Python and busybox.

    A virtual environment has the path that it has on this machine, and its programs come first in PATH. Packages are
    folders that Python can import.
    """

    def add_files(layer: tarfile.TarFile) -> None:
        _add_python(layer)
        for package in packages:
            layer.add(package, f"{str(_site_packages()).lstrip('/')}/{package.name}")
        if environment is not None:
            _add_environment(layer, environment)

    first = (f"{environment}/bin",) if environment is not None else ()
    write_archive(path, names, ("python3",), add_files=add_files, program_folders=(*first, "/bin"))


def _add_environment(layer: tarfile.TarFile, environment: Path) -> None:
    """Add a virtual environment at its own path, and the libraries of this machine that it needs."""
    layer.add(environment, str(environment).lstrip("/"))
    # A script has no libraries, and a library may be named by a file for the linker.
    programs = [path for path in (*(environment / "bin").iterdir(), *environment.rglob("*.so")) if _is_elf(path)]
    for path in sorted(_libraries(*programs)):
        if not path.is_relative_to(environment):
            _add_library(layer, path)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _site_packages() -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Path(sys.base_prefix).resolve() / "lib" / version / "site-packages"


def _add_python(layer: tarfile.TarFile) -> None:
    prefix = Path(sys.base_prefix).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = prefix / "bin" / version
    library = prefix / "lib" / version
    for path in (program, *sorted(_files(library))):
        layer.add(path, str(path).lstrip("/"), recursive=False)
    for name in ("python", "python3"):
        link = tarfile.TarInfo(f"bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, str(program)
        layer.addfile(link)
    for path in sorted(_libraries(program, *library.glob("lib-dynload/*.so"))):
        _add_library(layer, path)


def _add_library(layer: tarfile.TarFile, path: Path) -> None:
    """Add a library itself, not a link to it: others than these are not there."""
    entry = layer.gettarinfo(path.resolve(), str(path).lstrip("/"))
    with path.open("rb") as data:
        layer.addfile(entry, data)


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT and not name.startswith("config-")]
        yield from (Path(where) / name for name in files)


def _libraries(*programs: Path) -> set[Path]:
    """Ask the loader which shared libraries programs need, itself among them."""
    output = subprocess.run(
        (shutil.which("ldd") or "ldd", *map(str, programs)), capture_output=True, text=True, check=True
    ).stdout
    fields = (word for line in output.splitlines() for word in line.split() if not line.endswith(":"))
    return {Path(word) for word in fields if word.startswith("/") and not word.endswith(":")}
