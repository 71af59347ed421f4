"""Who gives the node agent the environments that are built; the real one is in `environments/build_queue.py`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paceline.node.host_info import CannotStart

NOT_PULLED, CREATING = "ErrImagePull", "ContainerCreating"
# Newer packages were to be looked for, and could not be.
NOT_RENEWED = "NotRenewed"
# Words of `imagePullPolicy`; the third is IfNotPresent.
ALWAYS, NEVER = "Always", "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironment:
    """A built environment."""

    folder: Path
    # What whoever starts in it ought to know.
    note: str = ""


class EnvironmentProvider(Protocol):
    """Finds built environments, and has missing ones built beside the agent's work."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Give a built environment; CannotStart says how far its building is, or why there is none."""
        ...

    def listen(self, on_change: Callable[[], None]) -> None:
        """Have a call made whenever a build has ended, well or not."""
        ...


class StaticEnvironments:
    """Builds nothing: for machines on which environments are made by hand."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Say so."""
        raise CannotStart(NOT_PULLED, f"environment {name} would have to be built, and nothing is built on this node")

    def listen(self, on_change: Callable[[], None]) -> None:
        """Nothing ever changes."""
