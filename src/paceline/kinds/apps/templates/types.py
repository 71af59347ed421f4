"""The types of a template, and the types of values that several templates share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.errors import Fault


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every object in a tree of values; defaults are written out, so that users see what they can set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The names of a revision: its application, the prefix of its objects, its namespace and its number."""

    app: str
    stem: str
    namespace: str
    revision: int

    @property
    def job(self) -> str:
        """Name of the job of this revision."""
        return f"{self.stem}-{self.revision}"

    @property
    def claim(self) -> str:
        """Name of the claim that all revisions share."""
        return f"{self.stem}-data"

    @property
    def trainer(self) -> str:
        """Name of the ConfigMap with the bundled trainer."""
        return f"{self.stem}-trainer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The objects of one revision."""

    # The job: its kind and its spec.
    kind: str
    spec: Mapping[str, Any]
    # Specs of claims by name; all revisions share them, and they are created once.
    claims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # The trainer bundled with Paceline that the job runs, if any.
    trainer: str = ""
    # TensorBoards by name; all revisions share them, and the first shows all logs.
    boards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Hyperparameters as strings, exactly as the trainer gets them.
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    # Location of the results, for users.
    results: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One template. Its functions take the decoded values, and their path in the object."""

    name: str
    version: str
    description: str
    readme: str
    values: type[Value]
    # Rules between values; the bounds of a single value are declared on its field.
    check: Callable[[Any, str], tuple[Fault, ...]]
    expand: Callable[[Any, Release], Rendered]
    # The argument of `--set` for training without GPUs.
    without_gpu: str = ""
    # Alternative names.
    also: tuple[str, ...] = ()

    def defaults(self) -> dict[str, Any]:
        """Return the default values as a tree."""
        tree: dict[str, Any] = _without_nulls(msgspec.to_builtins(self.values()))
        return tree


def _without_nulls(tree: Any) -> Any:
    """Return a tree without null values: in a values file, null means "remove the default"."""
    if not isinstance(tree, dict):
        return list(tree) if isinstance(tree, tuple) else tree
    return {name: _without_nulls(value) for name, value in tree.items() if value is not None}


# A string that is a number, from `--set` or a form; it is passed on unchanged.
NUMBER = r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"
GPU = "nvidia.com/gpu"
# Up to here a float represents integers exactly.
MAX_EXACT = 1e16

Port = Annotated[int, Meta(ge=1, le=65535)]
Policy = Literal["Always", "IfNotPresent", "Never"]
Number = Annotated[
    int | float | str,
    Meta(extra_json_schema={"anyOf": [{"type": "number"}, {"type": "string", "pattern": NUMBER}]}),
]
Quantity = Annotated[int | float | str, Meta(extra_json_schema={"anyOf": [{"type": "number"}, {"type": "string"}]})]
Words = tuple[str, ...]


def as_text(value: float | str) -> str:
    """Return a number as the string that a trainer gets, with every digit."""
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT:
        return str(int(value))
    return str(value)


def is_set(value: float | str | None) -> bool:
    """Return whether a hyperparameter is passed on; if it is empty or 0, the trainer uses its own default."""
    return value is not None and as_text(value) not in ("", "0", "0.0")


def resources_of(cpu: float | str, memory: float | str, gpus: int) -> dict[str, Any]:
    """Return the resources of a container, without empty values."""
    amounts = {"cpu": as_text(cpu), "memory": as_text(memory)}
    requests = {name: text for name, text in amounts.items() if text}
    limits = {"memory": amounts["memory"]} if amounts["memory"] else {}
    if gpus:
        limits[GPU] = str(gpus)
    resources = {"requests": requests, "limits": limits}
    return {name: group for name, group in resources.items() if group}
