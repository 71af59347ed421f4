"""uv, which builds environments: where it is, how to get it, and pip's settings in its words."""

import configparser
import importlib.util
import os
import shutil
import site
import sys
from collections.abc import Mapping
from pathlib import Path

# pip's word for a setting, and uv's variable for the same.
SAME = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
SECTIONS = ("global", "install")
# What uv puts between several of a sort; pip has blanks.
BETWEEN = {"find-links": ","}


def cache_folder(env: Mapping[str, str]) -> Path:
    """Find where downloads and environments of a user are kept: PACELINE_CACHE, or the usual place."""
    if chosen := env.get("PACELINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    usual = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(usual).absolute() / "paceline"


def find_uv(cache: Path, path: str | None = None) -> str | None:
    """Find uv: next to our interpreter, on the PATH, where `pip install --user` puts it, or in our own folder."""
    beside = (Path(sys.executable).parent, Path(site.getuserbase()) / "bin")
    own = sorted(cache.glob("uv-*/bin"), reverse=True)
    for folder in (str(beside[0]), path, str(beside[1]), *map(str, own)):
        if found := shutil.which("uv", path=folder):
            return found
    return None


def how_to_get(cache: Path) -> str:
    """Give the one command that installs uv where it is found."""
    if importlib.util.find_spec("pip") is not None:
        return f"{sys.executable} -m pip install uv"
    return f"python3 -m venv {cache}/uv-own && {cache}/uv-own/bin/pip install uv"


def variables(env: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Give uv's environment: ours, with pip's settings where uv has none of its own.

    uv does not read pip's settings; a machine whose pip uses a mirror means it for uv as well.
    """
    from_files = _pip_files(env)
    told = {}
    for word, variable in SAME.items():
        value = env.get(f"PIP_{word.replace('-', '_').upper()}") or from_files.get(word)
        if value:
            told[variable] = BETWEEN.get(word, " ").join(value.split())
    fixed = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    # On one file system with the environments, so that packages are hard links and not copies.
    usual = {"UV_CACHE_DIR": str(cache / "uv-cache")}
    # Settings of an environment that we happen to run in are none of uv's business here.
    kept = {name: value for name, value in env.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
    return usual | told | kept | fixed


def _pip_files(env: Mapping[str, str]) -> dict[str, str]:
    """Read pip's files, the more special ones over the more general."""
    config = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    places = ("/etc/pip.conf", str(Path.home() / ".pip/pip.conf"), f"{config}/pip/pip.conf", f"{sys.prefix}/pip.conf")
    found: dict[str, str] = {}
    for place in (*places, *filter(None, (env.get("PIP_CONFIG_FILE"),))):
        if place == os.devnull:
            continue
        parser = configparser.RawConfigParser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself will say what is wrong with it.
        for section in SECTIONS:
            if parser.has_section(section):
                found |= {word.replace("_", "-"): value for word, value in parser.items(section)}
    return found
