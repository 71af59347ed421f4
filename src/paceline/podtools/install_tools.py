"""Copies the programs that install packages to the folder where the author's image finds them."""

import argparse
import shutil
from pathlib import Path

from paceline.podtools.cache_volume import cached_program
from paceline.podtools.reporting import Reporter

INSTALLERS = tuple(Path(__file__).with_name(name) for name in ("requirements_cache.py", "pip_install.py"))


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the folders of code and tools, and the requirements files."""
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--packages", type=Path, action="append", default=[])
    parser.add_argument("--cache", type=Path)


def copy_tools(options: argparse.Namespace, reporter: Reporter) -> None:
    """Copy the installers and uv to the folder of tools, if the code has a requirements file."""
    if not any(file.is_file() for file in options.packages):
        return
    for installer in INSTALLERS:
        shutil.copy(installer, options.tools)
    uv = shutil.which("uv")
    if uv is None:
        reporter.log("uv is not installed here; packages are installed by the image's own pip")
        return
    target = options.tools / "uv"
    target.unlink(missing_ok=True)
    # uv is large, and with a cache it is rarely needed.
    if options.cache is not None and (cached := cached_program(Path(uv), options.cache)) != Path(uv):
        target.symlink_to(cached)
    else:
        shutil.copy(uv, target)
