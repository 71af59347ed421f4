"""What an environment is built from: a few requirements under a name, and the hash that tells builds of them apart."""

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
# Where a driver of NVIDIA shows itself.
NVIDIA = Path("/proc/driver/nvidia/version")
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<extras>\[[^\]]*\])?\s*(?P<rest>.*)")
_PINNED = re.compile(r"===?\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_TORCH = re.compile(r"(?m)^torch(vision|audio)?\b")
# Lines that lead to other files, which the hash would not know of.
_ELSEWHERE = re.compile(r"(-r|-c|-e|--requirement|--constraint|--editable)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One environment, as it would be built on this machine."""

    name: str
    # The lines of the requirements file, without comments.
    lines: tuple[str, ...]
    # Where local paths among them are looked up.
    folder: Path
    # Which of PyTorch's builds is wanted, in uv's words; empty when PyTorch is no part of it.
    torch: str = ""

    @property
    def version(self) -> str:
        """Give the version of the first package; empty when it is not pinned."""
        first = next((line for line in self.lines if not line.startswith("-")), "")
        found = _PINNED.search(first)
        return found["version"] if found else ""

    @property
    def is_open(self) -> bool:
        """Tell whether the same requirements may mean other packages tomorrow: one of them names no one version."""
        return any(not line.startswith("-") and not _is_pinned(line) for line in self.lines)

    @property
    def key(self) -> str:
        """Give the hash of all that makes one build differ from another."""
        parts = (*self.lines, self.torch, *interpreter())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """Give the name of its folder: what it is, which version, which build."""
        # A version may hold characters that mean something to a shell.
        version = re.sub(r"[^A-Za-z0-9.]+", "-", self.version)
        return "-".join(part for part in (self.name, version, self.key) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipes:
    """All recipes that can be named: the user's own, then the shipped ones."""

    # Name → its requirements, as they stand in settings.yaml.
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """List what can be named."""
        return tuple(sorted({*self.own, *(path.stem for path in SHIPPED.glob("*.txt"))}))

    def read(self, text: str) -> Recipe:
        """Read NAME, NAME==VERSION or the path of a requirements file; Invalid says what is wrong with it."""
        if "/" in text:
            return recipe_of(Path(text).stem.lower(), _lines_of(Path(text)), folder=Path(text).parent)
        name, _, version = text.partition("==")
        if name not in self.names():
            hint = f"there is no such environment; there are host, {', '.join(self.names())}, a folder or a file"
            raise Invalid((Fault("environment", text, hint),))
        lines = self.own.get(name) or _lines_of(SHIPPED / f"{name}.txt")
        return recipe_of(name, _with_version(lines, version) if version else lines, folder=SHIPPED)


def recipe_of(name: str, lines: Iterable[str], *, folder: Path) -> Recipe:
    """Make a recipe of requirements; Invalid says what is wrong with them."""
    kept = tuple(line for each in lines if (line := re.sub(r"(^|\s)#.*$", "", each).strip()))
    if not _NAME.fullmatch(name):
        raise Invalid((Fault("environment", name, "a name is made of small letters, digits, '-', '_' and '.'"),))
    for line in kept:
        if _ELSEWHERE.match(line):
            hint = "write all requirements into one file; `uv pip compile` and `uv export` make one"
            raise Invalid((Fault(f"environment {name}", line, hint),))
    if not kept:
        raise Invalid((Fault(f"environment {name}", "", "name at least one package"),))
    wants_torch = _TORCH.search("\n".join(kept)) is not None
    torch = ("auto" if NVIDIA.exists() else "cpu") if wants_torch else ""
    return Recipe(name=name, lines=kept, folder=folder, torch=torch)


def interpreter() -> tuple[str, ...]:
    """Name the interpreter that environments are made for: another one needs other packages."""
    libc = "-".join(platform.libc_ver())
    return (sys.implementation.cache_tag, platform.python_version(), sysconfig.get_platform(), libc, python())


def python() -> str:
    """Give the interpreter that environments are made from: ours, without its own environment."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def _is_pinned(line: str) -> bool:
    """Tell whether a requirement means one version alone; a file at an address is one, the tip of a branch is not."""
    wanted = line.partition(";")[0]
    if "@" in wanted:
        return "git+" not in wanted
    return _PINNED.search(wanted) is not None and "*" not in wanted


def _with_version(lines: tuple[str, ...], version: str) -> tuple[str, ...]:
    """Take another version of the first package, and of the others whatever goes with it."""
    found = [_REQUIREMENT.match(line) for line in lines]
    names = [each["name"] + (each["extras"] or "") for each in found if each is not None]
    options = [line for line in lines if line.startswith("-")]
    return (*options, f"{names[0]}=={version}", *names[1:])


def _lines_of(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid((Fault("environment", str(path), f"cannot be read: {error}"),)) from error
    # A line that ends with a backslash goes on in the next one: so do hashes.
    return tuple(text.replace("\\\n", " ").splitlines())
