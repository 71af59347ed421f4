"""Field errors with the reasons of Kubernetes, so that every client can display them."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

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
    return FieldFault(path, value, "every one must be different", Problem.DUPLICATE)


def not_found(path: str, value: object, hint: str = "") -> FieldFault:
    """Return the fault of a value that refers to something that does not exist."""
    return FieldFault(path, value, hint, Problem.NOT_FOUND)


def forbidden(path: str, hint: str) -> FieldFault:
    """Return the fault of a field that must not be set or changed."""
    return FieldFault(path, None, hint, Problem.FORBIDDEN)


def unsupported(path: str, value: object, choices: Iterable[object]) -> FieldFault:
    """Return the fault of a value that is not among the choices, with a suggestion."""
    words = [str(choice) for choice in choices]
    listed = ", ".join(f'"{choice}"' for choice in words)
    hint = f"supported values: {listed}{did_you_mean(str(value), words)}"
    return FieldFault(path, value, hint, Problem.UNSUPPORTED)


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `, did you mean "…"?` if one of the known words is similar, else an empty string."""
    near = nearest(word, candidates, likeness=0.7)
    return f', did you mean "{near}"?' if near else ""


def nearest(word: str, candidates: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return the most similar known word, ignoring case; empty if none is similar enough."""
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    # A very long word is not a typing error, and comparing it would take long.
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness) if len(word) < 100 else []
    return by_lower[close[0]] if close else ""
