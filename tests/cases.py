"""Tables of cases: each is told as a sentence, after which its namespace is named."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

# An object name may have 63 characters, and a namespace is named after its case.
MAX_NAMESPACE = 60


class Told(Protocol):
    """A case, as far as all tables agree about it."""

    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...


C = TypeVar("C", bound=Told)


def slug_of(name: str) -> str:
    """Give a sentence as one word."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def namespace_of(name: str) -> str:
    """Give a case a namespace of its own, the same on every cluster."""
    return slug_of(name)[:MAX_NAMESPACE].strip("-")


def cases_in(folder: Path, read: Callable[[Path], Iterator[C]]) -> tuple[C, ...]:
    """Read every case, in the order of files and lines; no two with the same namespace."""
    found = tuple(case for path in sorted(folder.glob("*.yaml")) for case in read(path))
    taken: dict[str, str] = {}
    for case in found:
        if case.namespace in taken:
            raise ValueError(f"the cases {case.name!r} and {taken[case.namespace]!r} would share a namespace")
        taken[case.namespace] = case.name
    return found
