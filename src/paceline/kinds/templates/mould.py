"""The mould of a template: typed values in, the parts of one revision out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from paceline.errors import Fault


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How every part of a tree of values is written; nothing is left out, because people look for what they may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a revision is called: the application, the short name that objects of it begin with, and its number."""

    app: str
    stem: str
    namespace: str
    revision: int

    @property
    def job(self) -> str:
        """Name the job of this revision."""
        return f"{self.stem}-{self.revision}"

    @property
    def claim(self) -> str:
        """Name the claim that all revisions share."""
        return f"{self.stem}-data"

    @property
    def trainer(self) -> str:
        """Name the config map with the shipped trainer."""
        return f"{self.stem}-trainer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one revision is made of."""

    # The job: its kind and its spec.
    kind: str
    spec: Mapping[str, Any]
    # Specs of claims by their names; they are shared by all revisions and made once.
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The trainer that is shipped with Paceline and that the job runs, if it is one.
    trainer: str = ""
    # TensorBoards by their names, which all revisions share; the first shows everything.
    boards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What the trainer is told, as text, to the digit.
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    # Where the results are, in words.
    results: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One template. Its functions take the values already decoded into `values`, and where they lie in the object."""

    name: str
    version: str
    description: str
    readme: str
    values: type[Value]
    # Rules between values; bounds of single values live on their fields.
    check: Callable[[Any, str], tuple[Fault, ...]]
    expand: Callable[[Any, Release], Parts]
    # The setting with which it trains without GPUs.
    without_gpu: str = ""
    # Names under which others know it.
    also: tuple[str, ...] = ()

    def defaults(self) -> dict[str, Any]:
        """Give the tree of values as it is when nothing is set."""
        told: dict[str, Any] = _without_nothing(msgspec.to_builtins(self.values()))
        return told


def _without_nothing(tree: Any) -> Any:
    """Leave out what is not set: null means "take the default away" in a values file."""
    if not isinstance(tree, dict):
        return list(tree) if isinstance(tree, tuple) else tree
    return {name: _without_nothing(value) for name, value in tree.items() if value is not None}
