"""The user's cache folder: where uv is found, and the environments that are built in it.

An environment is found by its name and hash. `paceline.json` in its folder describes it, and the modification time of
that file is the time of its last use.
"""

import configparser
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from paceline.environments.specs import EnvironmentSpec
from paceline.errors import HostError
from paceline.host.lockfile import is_locked

ABOUT = "paceline.json"
PROCESSES = Path("/proc")
# Options of pip's configuration, and uv's variables for the same.
PIP_OPTIONS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
PIP_SECTIONS = ("global", "install")
# The separator of uv's lists where it is not a blank, as in pip's.
SEPARATORS = {"find-links": ","}


def cache_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of a user's downloads and environments: PACELINE_CACHE, or the XDG default."""
    if chosen := env.get("PACELINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    usual = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(usual).absolute() / "paceline"


def find_uv(env: Mapping[str, str]) -> str | None:
    """Return the path of uv: the one of PACELINE_UV, the one that was installed with Paceline, or one on the PATH."""
    path = env.get("PATH")
    if chosen := env.get("PACELINE_UV"):
        return shutil.which(str(Path(chosen).expanduser()), path=path)
    try:
        return str(find_uv_bin())
    except FileNotFoundError:
        return shutil.which("uv", path=path)


def uv_variables(env: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Return uv's environment variables: ours, with pip's configuration where uv has none.

    uv does not read pip's configuration, but a mirror that is set for pip is meant for uv as well.
    """
    from_files = _pip_configuration(env)
    from_pip = {}
    for option, variable in PIP_OPTIONS.items():
        value = env.get(f"PIP_{option.replace('-', '_').upper()}") or from_files.get(option)
        if value:
            from_pip[variable] = SEPARATORS.get(option, " ").join(value.split())
    fixed = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    # On the same file system as the environments, so that packages are hard links and not copies.
    usual = {"UV_CACHE_DIR": str(cache / "uv-cache")}
    # Not the variables of an environment that we happen to run in.
    inherited = {name: value for name, value in env.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
    return usual | from_pip | inherited | fixed


def _pip_configuration(env: Mapping[str, str]) -> dict[str, str]:
    """Read pip's configuration files, from the most general to the most specific."""
    config = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    paths = ("/etc/pip.conf", str(Path.home() / ".pip/pip.conf"), f"{config}/pip/pip.conf", f"{sys.prefix}/pip.conf")
    options: dict[str, str] = {}
    for path in (*paths, *filter(None, (env.get("PIP_CONFIG_FILE"),))):
        if path == os.devnull:
            continue
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself reports what is wrong with it.
        for section in PIP_SECTIONS:
            if parser.has_section(section):
                options |= {option.replace("_", "-"): value for option, value in parser.items(section)}
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentCache:
    """The folder of all environments of a user."""

    cache: Path
    env: Mapping[str, str]

    @property
    def root(self) -> Path:
        return self.cache / "envs"

    def folder(self, spec: EnvironmentSpec) -> Path:
        """Return the folder of an environment, built or not; the newest if it was built several times."""
        last = self._last_number(spec)
        return self.root / (f"{spec.title}-{last}" if last > 1 else spec.title)

    def next_folder(self, spec: EnvironmentSpec) -> Path:
        """Return the folder of the next build of the same spec: containers may run in the last one."""
        return self.root / f"{spec.title}-{self._last_number(spec) + 1}"

    def _last_number(self, spec: EnvironmentSpec) -> int:
        """Return the number of builds of the same spec; the first has no number in its name."""
        suffixes = (path.name.removeprefix(f"{spec.title}-") for path in self.root.glob(f"{spec.title}-*"))
        return max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=1)

    def uv(self) -> str:
        """Return the path of uv; HostError says how to install it."""
        if (uv := find_uv(self.env)) is not None:
            return uv
        chosen = self.env.get("PACELINE_UV")
        install = f"install it with: {sys.executable} -m pip install uv"
        hint = f"PACELINE_UV={chosen} is not a program" if chosen else install
        raise HostError(f"uv is not installed, and environments are built with it; {hint}")


def environment_cache(env: Mapping[str, str]) -> EnvironmentCache:
    """Return the environments of the user with these environment variables."""
    return EnvironmentCache(cache=cache_folder(env), env=env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    folder: Path
    bytes: int
    # Seconds since the epoch.
    used_at: float
    is_in_use: bool


def built(cache: EnvironmentCache) -> tuple[Built, ...]:
    """Return the built environments, sorted by folder; folders without our description are ignored."""
    folders = [
        folder for folder in _folders(cache.root) if not folder.name.startswith(".") and (folder / ABOUT).is_file()
    ]
    used = in_use(tuple(folders))
    return tuple(_read(folder, is_in_use=folder in used) for folder in sorted(folders))


def mark_used(folder: Path) -> None:
    """Record that an environment was used now."""
    with contextlib.suppress(OSError):
        os.utime(folder / ABOUT)


def prune(cache: EnvironmentCache, *, unused_seconds: float) -> tuple[Built, ...]:
    """Remove environments that were not used for so long, and leftovers of builds; return the removed environments."""
    pruned = []
    for environment in built(cache):
        if environment.is_in_use or time.time() - environment.used_at < unused_seconds:
            continue
        # Renamed first: containers that start from here on have it built anew.
        renamed = environment.folder.with_name(f".{environment.folder.name}.old")
        remove(renamed)
        environment.folder.rename(renamed)
        if in_use((renamed, environment.folder)):
            # A container started meanwhile: it keeps its files.
            renamed.rename(environment.folder)
            continue
        pruned.append(environment)
    for leftover in _folders(cache.root):
        if leftover.name.startswith(".") and _is_leftover(leftover):
            remove(leftover)
    return tuple(pruned)


def _is_leftover(folder: Path) -> bool:
    """Return whether a hidden folder was renamed by `prune` or left by a killed build, and is not being built."""
    title = folder.name.removesuffix(".new")
    return folder.name.endswith(".old") or (title != folder.name and not is_locked(folder.with_name(f"{title}.lock")))


def in_use(folders: tuple[Path, ...]) -> frozenset[Path]:
    """Return the folders that occur in the mounts or the environment variables of running processes."""
    used: set[Path] = set()
    for process in PROCESSES.iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = (process / "mountinfo").read_bytes() + (process / "environ").read_bytes()
            used |= {folder for folder in folders if os.fsencode(folder) in text}
    return frozenset(used)


def _read(folder: Path, *, is_in_use: bool) -> Built:
    try:
        about, used_at = json.loads((folder / ABOUT).read_text()), (folder / ABOUT).stat().st_mtime
    except (OSError, ValueError):
        about, used_at = {}, folder.stat().st_mtime
    return Built(
        folder=folder,
        bytes=int(about.get("bytes") or size_of(folder)),
        used_at=used_at,
        is_in_use=is_in_use,
    )


def _folders(root: Path) -> tuple[Path, ...]:
    try:
        return tuple(path for path in root.iterdir() if path.is_dir())
    except FileNotFoundError:
        return ()


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder, without following links."""
    size = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                size += (Path(parent) / name).lstat().st_size
    return size


def remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
