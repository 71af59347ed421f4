"""Brings the web console into wheel and sdist: builds it from console/, unless an sdist contains it already."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = Path("src", "paceline", "console", "static", "index.html")


class ConsoleHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before the files of a wheel or sdist are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        # An editable install serves what `make setup` or `make console` has built.
        if version == "editable" or os.environ.get("CONSOLE") == "no":
            return
        if (root / "console" / "package.json").exists():
            subprocess.run([root / "tools" / "setup", "console"], cwd=root, check=True)
        elif not (root / BUNDLE).exists():
            raise SystemExit(
                f"{BUNDLE} is missing, and so are its sources; set CONSOLE=no to build without the console"
            )
