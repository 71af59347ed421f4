"""The table of cases: what is there before, the command line, and what may vary."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.cases import cases_in, namespace_of, slug_of

HERE = Path(__file__).parent
MANIFESTS = HERE / "manifests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command of kubectl, told as a sentence."""

    name: str
    file: str
    # A command line; `$NS` in it is the case's own namespace.
    run: str
    stdin: str = ""
    # Commands before it, which must succeed.
    setup: tuple[str, ...] = ()
    # Commands after those, each repeated until it succeeds.
    until: tuple[str, ...] = ()
    # Commands only for the recording: they do what our controllers do on the embedded cluster.
    stand_in: tuple[str, ...] = ()
    # Commands while it runs, and after how many lines of output it is stopped (0: it ends by itself).
    meanwhile: tuple[str, ...] = ()
    lines: int = 0
    # Pairs (pattern, word) beside those that hold for all.
    normalise: tuple[tuple[str, str], ...] = ()
    # The order of lines is not promised.
    unordered: bool = False
    # "node": pods must run.
    needs: str = ""

    @property
    def slug(self) -> str:
        """The name as one word."""
        return slug_of(self.name)

    @property
    def namespace(self) -> str:
        """A namespace of its own, the same on every cluster."""
        return namespace_of(self.name)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of files and lines; no two with the same namespace."""
    return cases_in(HERE / "cases", _read)


def _read(path: Path) -> Iterator[Case]:
    for each in yaml.safe_load(path.read_text()) or ():
        yield Case(file=path.stem, **{key.replace("-", "_"): _frozen(key, value) for key, value in each.items()})


def _frozen(key: str, value: Any) -> Any:
    if key == "normalise":
        return tuple((str(old), str(new)) for old, new in value.items())
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Why some cases differ, and what makes both sides equal again."""

    reason: str
    cases: tuple[str, ...]
    # Pairs (pattern, word), for the text of both sides.
    replace: tuple[tuple[str, str], ...]

    def without(self, text: str) -> str:
        """Give the text without the difference."""
        for pattern, word in self.replace:
            text = re.sub(pattern, word, text)
        return text


@cache
def differences() -> tuple[Difference, ...]:
    """What may differ; nothing else may."""
    listed = yaml.safe_load((HERE / "differences.yaml").read_text())
    return tuple(
        Difference(reason=each["reason"], cases=tuple(each["cases"]), replace=tuple(each["replace"].items()))
        for each in listed
    )


def difference_of(case: Case) -> Difference | None:
    """Find why a case may differ."""
    return next((each for each in differences() if case.name in each.cases), None)
