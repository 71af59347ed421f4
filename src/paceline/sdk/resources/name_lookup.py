"""Lookup and validation of user-chosen names."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from paceline.apimachinery.field_errors import did_you_mean, invalid, required
from paceline.apimachinery.name_validation import better_name, label_problem
from paceline.errors import AlreadyExists, Invalid, NotFound


class Named(Protocol):
    """An object with a user-chosen name."""

    @property
    def name(self) -> str:
        """Return the name."""


AnyNamed = TypeVar("AnyNamed", bound=Named)


def pick(name: str, candidates: Iterable[AnyNamed], *, noun: str, namespace: str) -> AnyNamed:
    """Return the candidate of this name; NotFound suggests a similar one."""
    by_name = {candidate.name: candidate for candidate in candidates}
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(name, by_name).removeprefix(", ") or f"there are: {', '.join(by_name) or 'none'}"
    raise NotFound(f"there is no {noun} named {name!r} in namespace {namespace!r}; {hint}")


def check_name(name: str, *, noun: str) -> None:
    """Raise Invalid for an invalid name."""
    if not name:
        raise Invalid((required("name", f"give the {noun} a name, such as mnist"),))
    if problem := label_problem(name):
        raise Invalid((invalid("name", name, f"{problem}{better_name(name)}"),))


def check_new(name: str, existing: Iterable[Named], *, noun: str) -> None:
    """Raise Invalid for an invalid name, AlreadyExists for one that is taken."""
    check_name(name, noun=noun)
    if any(entry.name == name for entry in existing):
        raise AlreadyExists(f"{noun} {name} exists already; `paceline {noun} list` shows it")
