"""What members get who start processes in each other: a key of their job, and the program that stands in for ssh."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from paceline.effects import Ids
from paceline.podtools import ssh_shim

NAMES = ("agent", "ssh", "pdsh")


def launch_program(ids: Ids) -> Callable[[], Mapping[str, str]]:
    """Give what makes the files of one job; the key is new each time."""
    return lambda: {"key": ids.secret(), **dict.fromkeys(NAMES, _text())}


@cache
def _text() -> str:
    return f"#!/usr/bin/env python3\n{Path(ssh_shim.__file__).read_text()}"
