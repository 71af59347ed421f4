"""Faults in the words Kubernetes uses, so that every client shows them well."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from paceline.errors import Fault


class Problem(StrEnum):
    """What is wrong with a field; the value is the reason a Status gives."""

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
    """A fault that also says of which sort it is. A plain Fault counts as an invalid value."""

    problem: Problem = Problem.INVALID


def invalid(path: str, value: object, hint: str) -> FieldFault:
    """Say that a value breaks a rule."""
    return FieldFault(path, value, hint)


def required(path: str, hint: str = "") -> FieldFault:
    """Say that a value is missing."""
    return FieldFault(path, None, hint, Problem.REQUIRED)


def duplicate(path: str, value: object) -> FieldFault:
    """Say that a value is there twice."""
    return FieldFault(path, value, "every one must be different", Problem.DUPLICATE)


def not_found(path: str, value: object, hint: str = "") -> FieldFault:
    """Say that a value names something that is not there."""
    return FieldFault(path, value, hint, Problem.NOT_FOUND)


def forbidden(path: str, hint: str) -> FieldFault:
    """Say that a field may not be set, or not be changed."""
    return FieldFault(path, None, hint, Problem.FORBIDDEN)


def unsupported(path: str, value: object, choices: Iterable[object]) -> FieldFault:
    """Say that a value is not one of a few, and which one was probably meant."""
    known = [str(choice) for choice in choices]
    listed = ", ".join(f'"{choice}"' for choice in known)
    hint = f"supported values: {listed}{did_you_mean(str(value), known)}"
    return FieldFault(path, value, hint, Problem.UNSUPPORTED)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give `, did you mean "…"?` when a known word is close, else nothing."""
    near = nearest(word, known, likeness=0.7)
    return f', did you mean "{near}"?' if near else ""


def nearest(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """Give the known word that was probably meant, whatever its capitals; empty when none is so much like it."""
    by_lower = {each.lower(): each for each in known}
    # A huge word is no slip of the finger, and comparing it would take long.
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=likeness) if len(word) < 100 else []
    return by_lower[close[0]] if close else ""
