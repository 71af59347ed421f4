"""Where the values of a YAML text are written: lines and columns by the paths that faults use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a text. Lines and columns start at 1; columns count UTF-16 units, as browsers do."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a value is written, and its key if it has one."""

    value: Span
    key: Span | None = None
    # False for a mapping, a list, an alias, and text that spans lines.
    is_scalar: bool = False

    @property
    def best(self) -> Span:
        """The span to underline: the value if it is on one line and not empty, else its key."""
        is_empty = self.value.column == self.value.end_column
        return self.value if self.key is None or (self.is_scalar and not is_empty) else self.key


Locations = Mapping[str, Location]


def locate(text: str) -> dict[int, Locations]:
    """Return the locations of all values of every document, by the line on which the document's value starts.

    Only for text that `read_documents` has accepted: it checks syntax, size and depth. Values below an alias have no
    location of their own.
    """
    return dict(_Locator(text).documents())


def nearest_location(locations: Locations, path: str) -> Location | None:
    """Return the location of a path or of its closest ancestor that is written; None if there is none."""
    while path:
        if path in locations:
            return locations[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return locations.get("")


class _Locator:
    """Reads one stream of events; `_node` consumes the events of the node that it locates."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._places: dict[str, Location] = {}

    def documents(self) -> Iterator[tuple[int, Locations]]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._places = {}
                root = next(self._events)
                self._node(root, "", None)
                yield root.start_mark.line + 1, self._places

    def _node(self, event: Any, path: str, key: Span | None) -> None:
        is_one_line = event.start_mark.line == event.end_mark.line
        self._places[path] = Location(
            value=self._span(event), key=key, is_scalar=isinstance(event, yaml.ScalarEvent) and is_one_line
        )
        if isinstance(event, yaml.MappingStartEvent):
            while not isinstance(name := next(self._events), yaml.MappingEndEvent):
                inner = f"{path}.{name.value}" if path else str(name.value)
                self._node(next(self._events), inner, self._span(name))
        elif isinstance(event, yaml.SequenceStartEvent):
            index = 0
            while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                self._node(item, f"{path}[{index}]", None)
                index += 1

    def _span(self, event: Any) -> Span:
        """Return the span of a scalar, or the first line of anything longer."""
        start, end = event.start_mark, event.end_mark
        line = self._lines[start.line] if start.line < len(self._lines) else ""
        is_short = isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) and start.line == end.line
        stop = end.column if is_short else len(line.rstrip())
        return Span(
            line=start.line + 1,
            column=_units(line[: start.column]) + 1,
            end_line=start.line + 1,
            end_column=_units(line[: max(stop, start.column)]) + 1,
        )


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
