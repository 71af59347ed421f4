"""What people know by a name: found by it, and named so that it can be found."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from paceline.apimachinery.field_errors import did_you_mean, invalid, required
from paceline.apimachinery.name_validation import better_name, label_problem
from paceline.errors import AlreadyExists, Invalid, NotFound


class Named(Protocol):
    """Anything that people know by a name."""

    @property
    def name(self) -> str:
        """Give the name."""


AnyNamed = TypeVar("AnyNamed", bound=Named)


def pick(name: str, there: Iterable[AnyNamed], *, what: str, namespace: str) -> AnyNamed:
    """Find what has a name; NotFound suggests a close one."""
    known = {each.name: each for each in there}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known).removeprefix(", ") or f"there are: {', '.join(known) or 'none'}"
    raise NotFound(f"there is no {what} named {name!r} in namespace {namespace!r}; {hint}")


def check_name(name: str, *, what: str) -> None:
    """Refuse what cannot be a name."""
    if not name:
        raise Invalid((required("name", f"give the {what} a name, such as mnist"),))
    if wrong := label_problem(name):
        raise Invalid((invalid("name", name, f"{wrong}{better_name(name)}"),))


def check_new(name: str, there: Iterable[Named], *, what: str) -> None:
    """Refuse what cannot be a name, and one that is taken."""
    check_name(name, what=what)
    if any(each.name == name for each in there):
        raise AlreadyExists(f"{what} {name} exists already; `paceline {what} list` shows it")
