"""What an environment is built from: named requirements, and the hash that tells builds apart."""

import hashlib
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import Fault, Invalid

SHIPPED = Path(__file__).parent
# Exists where NVIDIA's driver is loaded.
NVIDIA = Path("/proc/driver/nvidia/version")
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[^\]]*\])?\s*(?P<rest>.*)")
_PINNED = re.compile(r"===?\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_TORCH = re.compile(r"(?m)^torch(vision|audio)?\b")
# Lines that include other files, whose content the hash would not cover.
_INCLUDE = re.compile(r"(-r|-c|-e|--requirement|--constraint|--editable)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpec:
    """One environment, as it would be built on this machine."""

    name: str
    # The lines of the requirements file, without comments.
    lines: tuple[str, ...]
    # The folder that local paths in the lines are relative to.
    folder: Path
    # uv's name for the wanted build of PyTorch; empty without PyTorch.
    torch: str = ""

    @property
    def version(self) -> str:
        """Return the version of the first package; empty if it is not pinned."""
        first = next((line for line in self.lines if not line.startswith("-")), "")
        match = _PINNED.search(first)
        return match["version"] if match else ""

    @property
    def has_unpinned(self) -> bool:
        """Return whether a requirement is not pinned, so that the same lines may install other packages tomorrow."""
        return any(not line.startswith("-") and not _is_pinned(line) for line in self.lines)

    @property
    def key(self) -> str:
        """Return the hash of everything that makes builds differ."""
        parts = (*self.lines, self.torch, *interpreter())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """Return the name of the environment's folder: name, version and hash."""
        # A version may contain characters that are special to a shell.
        version = re.sub(r"[^A-Za-z0-9.]+", "-", self.version)
        return "-".join(part for part in (self.name, version, self.key) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSpecs:
    """All environments that can be named: those of settings.yaml, then the shipped ones."""

    # Name → requirements, as in settings.yaml.
    custom: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.custom, *(path.stem for path in SHIPPED.glob("*.txt"))}))

    def read(self, text: str) -> EnvironmentSpec:
        """Read NAME, NAME==VERSION or the path of a requirements file; Invalid says what is wrong with it."""
        if "/" in text:
            return spec_of(Path(text).stem.lower(), _read_lines(Path(text)), folder=Path(text).parent)
        name, _, version = text.partition("==")
        if name not in self.names():
            hint = f"no such environment; use host, {', '.join(self.names())}, or the path of a folder or file"
            raise Invalid((Fault("environment", text, hint),))
        lines = self.custom.get(name) or _read_lines(SHIPPED / f"{name}.txt")
        return spec_of(name, _with_version(lines, version) if version else lines, folder=SHIPPED)


def spec_of(name: str, lines: Iterable[str], *, folder: Path) -> EnvironmentSpec:
    """Return the spec of some requirements; Invalid says what is wrong with them."""
    stripped = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in lines)
    requirements = tuple(line for line in stripped if line)
    if not _NAME.fullmatch(name):
        raise Invalid((Fault("environment", name, "a name consists of lower-case letters, digits, '-', '_' and '.'"),))
    for line in requirements:
        if _INCLUDE.match(line):
            hint = "write all requirements into one file; `uv pip compile` and `uv export` create one"
            raise Invalid((Fault(f"environment {name}", line, hint),))
    if not requirements:
        raise Invalid((Fault(f"environment {name}", "", "name at least one package"),))
    wants_torch = _TORCH.search("\n".join(requirements)) is not None
    torch = ("auto" if NVIDIA.exists() else "cpu") if wants_torch else ""
    return EnvironmentSpec(name=name, lines=requirements, folder=folder, torch=torch)


def interpreter() -> tuple[str, ...]:
    """Return what identifies the interpreter of environments: another one needs other packages."""
    libc = "-".join(platform.libc_ver())
    return (sys.implementation.cache_tag, platform.python_version(), sysconfig.get_platform(), libc, python())


def python() -> str:
    """Return the interpreter that environments are created from: ours, outside of its virtual environment."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def _is_pinned(line: str) -> bool:
    """Return whether a requirement allows one version only: a URL does, a git branch does not."""
    requirement = line.partition(";")[0]
    if "@" in requirement:
        return "git+" not in requirement
    return _PINNED.search(requirement) is not None and "*" not in requirement


def _with_version(lines: tuple[str, ...], version: str) -> tuple[str, ...]:
    """Return the requirements with another version of the first package, and unpinned versions of the others."""
    matches = (_REQUIREMENT.match(line) for line in lines)
    names = [match["name"] + (match["extras"] or "") for match in matches if match is not None]
    options = [line for line in lines if line.startswith("-")]
    return (*options, f"{names[0]}=={version}", *names[1:])


def _read_lines(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid((Fault("environment", str(path), f"cannot be read: {error}"),)) from error
    # A backslash at the end continues a line, for example before hashes.
    return tuple(text.replace("\\\n", " ").splitlines())
