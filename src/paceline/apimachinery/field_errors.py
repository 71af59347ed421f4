"""Field errors with the reasons of Kubernetes, and the changes that make an update invalid."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from paceline.errors import Fault


class Problem(StrEnum):
    """The type of a field error; the value is the reason in a Status."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    UNSUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TYPE = "FieldValueTypeInvalid"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


@dataclass(frozen=True, slots=True)
class FieldFault(Fault):
    """A fault with its type. A plain Fault counts as an invalid value."""

    problem: Problem = Problem.INVALID


def invalid(path: str, value: object, hint: str) -> FieldFault:
    """Return the fault of a value that breaks a rule."""
    return FieldFault(path, value, hint)


def required(path: str, hint: str = "") -> FieldFault:
    """Return the fault of a missing value."""
    return FieldFault(path, None, hint, Problem.REQUIRED)


def duplicate(path: str, value: object) -> FieldFault:
    """Return the fault of a repeated value."""
    return FieldFault(path, value, "must be unique", Problem.DUPLICATE)


def not_found(path: str, value: object, hint: str = "") -> FieldFault:
    """Return the fault of a value that refers to something that does not exist."""
    return FieldFault(path, value, hint, Problem.NOT_FOUND)


def forbidden(path: str, hint: str) -> FieldFault:
    """Return the fault of a field that must not be set or changed."""
    return FieldFault(path, None, hint, Problem.FORBIDDEN)


def unsupported(path: str, value: object, choices: Iterable[object]) -> FieldFault:
    """Return the fault of a value that is not among the choices, with a suggestion."""
    names = [str(choice) for choice in choices]
    listed = ", ".join(f'"{name}"' for name in names)
    hint = f"supported values: {listed}{did_you_mean(str(value), names)}"
    return FieldFault(path, value, hint, Problem.UNSUPPORTED)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `, did you mean "…"?` if one of the known names is similar, else an empty string."""
    near = nearest(word, candidates, likeness=0.7)
    return f', did you mean "{near}"?' if near else ""


def nearest(word: str, candidates: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return the most similar known word, ignoring case; empty if none is similar enough."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    # A very long word is not a typing error, and comparing it would take long.
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness) if len(word) < 100 else []
    return by_lower[close[0]] if close else ""


def changes(old: Any, new: Any, mutable: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Return the path and new value of every change below `spec` that `mutable` does not allow.

    A mutable path is dotted and may contain `[*]`, for every item of a list. An object that contains only mutable
    fields may be added or removed as a whole.
    """
    mutable_paths = [path.replace("[*]", ".[*]").split(".") for path in mutable]
    return tuple(_differences(_without(old, mutable_paths), _without(new, mutable_paths), "spec"))


def _without(value: Any, paths: list[list[str]]) -> Any:
    """Return a copy of `value` without the fields at the paths, and without objects that this leaves empty."""
    if isinstance(value, list):
        inner_paths = [path[1:] for path in paths if path[0] == "[*]"]
        return [_without(item, inner_paths) for item in value] if inner_paths else value
    if not isinstance(value, dict):
        return value
    remaining = {}
    for name, inner in value.items():
        below = [path[1:] for path in paths if path[0] == name]
        if [] in below:
            continue
        remaining_value = _without(inner, below) if below else inner
        if below and remaining_value in ({}, []):
            continue
        remaining[name] = remaining_value
    return remaining


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, Any]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = (*old, *(name for name in new if name not in old))
        return [change for name in names for change in _differences(old.get(name), new.get(name), f"{path}.{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            change
            for index, (old_item, new_item) in enumerate(zip(old, new, strict=True))
            for change in _differences(old_item, new_item, f"{path}[{index}]")
        ]
    return [(path, new)]
