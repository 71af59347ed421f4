"""What installs packages, put where the author's image finds it."""

import argparse
import shutil
from pathlib import Path

from paceline.podtools.cache_volume import cached_program
from paceline.podtools.reporting import Reporter

INSTALLERS = tuple(Path(__file__).with_name(name) for name in ("requirements_cache.py", "pip_install.py"))


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that say where code and tools go, and which files would ask for packages."""
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--packages", type=Path, action="append", default=[])
    parser.add_argument("--cache", type=Path)


def lay_out(asked: argparse.Namespace, voice: Reporter) -> None:
    """Put the installers and uv into the folder of tools, if the code asks for any packages."""
    if not any(file.is_file() for file in asked.packages):
        return
    for installer in INSTALLERS:
        shutil.copy(installer, asked.tools)
    uv = shutil.which("uv")
    if uv is None:
        voice.log("there is no uv here; packages are installed by the image's own pip")
        return
    own = asked.tools / "uv"
    own.unlink(missing_ok=True)
    # It is large, and with a cache rarely needed.
    if asked.cache is not None and (there := cached_program(Path(uv), asked.cache)) != Path(uv):
        own.symlink_to(there)
    else:
        shutil.copy(uv, own)
