"""A YAML reader for untrusted text that reads scalars as kubectl does.

It counts values while it parses, so that a document that expands itself by aliases is rejected early.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from paceline.errors import BadRequest, TooLarge

MAX_NODES = 20_000
MAX_DEPTH = 64
# How many times larger aliases may make a document.
MAX_UNFOLDING = 10
# Smaller documents may use aliases without that limit.
FREE_NODES = 1_000

TAGS = "tag:yaml.org,2002:"
MERGE = "<<"
_TAG_NAMES = {bool: "bool", int: "int", float: "float", type(None): "null"}

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 64


def plain(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar; raise ValueError for a number that JSON does not have.

    Dates and times are strings.
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is a number that JSON does not have")
    if text[0] not in "+-.0123456789":
        return text
    return _number(text)


def is_word(text: str) -> bool:
    """Return whether text is read as itself without quotes, unlike `y` and `1e3`."""
    try:
        return plain(text) == text
    except ValueError:
        return False


def _number(text: str) -> str | int | float:
    digits = text.replace("_", "")
    if not _FLOAT.fullmatch(digits) and not _INTEGER.fullmatch(digits):
        return text
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    if _INTEGER.fullmatch(digits):
        number = _integer(digits)
        if -(2**63) <= number < 2**64:
            return number
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _integer(digits: str) -> int:
    """Return an integer as Go reads it: a leading 0 means octal (`defaultMode: 0400`)."""
    bare = digits.lstrip("+-")
    if len(bare) > 1 and bare[0] == "0" and bare[1].isdigit():
        digits = digits.replace("0", "0o", 1)
    return int(digits, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """One YAML document and its first line."""

    value: Any
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A value with its size, which is counted again for every alias to it."""

    value: Any
    nodes: int
    height: int


def read_documents(text: str, source: str, *, duplicates: list[str] | None = None) -> Iterator[YamlDocument]:
    """Yield every document that is not empty; raise BadRequest or TooLarge with file and line.

    A duplicate key is an error; with `duplicates`, the last one counts, as in Kubernetes, and is reported there.
    """
    try:
        yield from _Parser(text, source, duplicates).documents()
    except yaml.MarkedYAMLError as error:
        raise BadRequest(_syntax_error(error, source, text)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = error.character if isinstance(error.character, int) else ord(error.character)
        raise BadRequest(f"{source}:{line}: the character 0x{character:02x} is not allowed in YAML") from error


class _Parser:
    """Reads one stream of events; every method consumes the events of the node that it returns."""

    def __init__(self, text: str, source: str, duplicates: list[str] | None) -> None:
        self._events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._source = source
        self._duplicates = duplicates
        self._anchors: dict[str, _Node | None] = {}
        self._written = 0
        self._unfolded = 0

    def documents(self) -> Iterator[YamlDocument]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                if self._duplicates is None:
                    # The limits are per object. A file has many objects, a request body has one.
                    self._written = self._unfolded = 0
                first = next(self._events)
                node = self._node(first, depth=1)
                if node.value is not None:
                    yield YamlDocument(value=node.value, line=_line(first))

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._count(event, written=1, depth=depth)
        anchor = getattr(event, "anchor", None)
        if anchor:
            # None until the node is complete: an alias to it from inside would be infinite.
            self._anchors[anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, depth)
        elif isinstance(event, yaml.ScalarEvent):
            node = _Node(value=self._scalar(event), nodes=1, height=1)
        else:
            self._fail(event, "a value is missing")
        if anchor:
            self._anchors[anchor] = node
        return node

    def _mapping(self, start: yaml.MappingStartEvent, depth: int) -> _Node:
        self._check_tag(start, "map")
        values: dict[str, Any] = {}
        merged: list[tuple[Any, yaml.Event]] = []
        lines: dict[str, int] = {}
        nodes = height = 1
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, line = self._key(event), _line(event)
            node = self._node(value_event := next(self._events), depth + 1)
            nodes, height = nodes + node.nodes, max(height, node.height + 1)
            if key == MERGE and event.implicit[0]:
                merged.append((node.value, value_event))
                continue
            if key in values:
                self._report_duplicate(event, key, lines[key])
            values[key], lines[key] = node.value, line
        for value, value_event in merged:
            # The mapping's own keys win, then the first merged mapping.
            values = {**self._merged(value, value_event), **values}
        return _Node(value=values, nodes=nodes, height=height)

    def _report_duplicate(self, event: yaml.Event, key: str, first_line: int) -> None:
        line = _line(event)
        if self._duplicates is None:
            self._fail(event, f"the key {key!r} is on line {first_line} and again on line {line}; keep one of them")
        self._duplicates.append(f'line {line}: key "{key}" already set in map')

    def _sequence(self, start: yaml.SequenceStartEvent, depth: int) -> _Node:
        self._check_tag(start, "seq")
        values = []
        nodes = height = 1
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            node = self._node(event, depth + 1)
            values.append(node.value)
            nodes, height = nodes + node.nodes, max(height, node.height + 1)
        return _Node(value=values, nodes=nodes, height=height)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Node:
        anchor = event.anchor or ""
        if anchor not in self._anchors:
            self._fail(event, f"the alias *{anchor} has no anchor &{anchor} before it")
        node = self._anchors[anchor]
        if node is None:
            self._fail(event, f"the alias *{anchor} contains itself")
        self._unfolded += node.nodes
        self._count(event, written=0, depth=depth + node.height - 1)
        return node

    def _count(self, event: yaml.Event, *, written: int, depth: int) -> None:
        self._written += written
        total = self._written + self._unfolded
        where = f"{self._source}:{_line(event)}"
        if total > MAX_NODES:
            raise TooLarge(f"{where}: a document may have at most {MAX_NODES} values, aliases included")
        if total > FREE_NODES and total > MAX_UNFOLDING * self._written:
            raise TooLarge(f"{where}: aliases make this document more than {MAX_UNFOLDING} times larger; write it out")
        if depth > MAX_DEPTH:
            raise TooLarge(f"{where}: a document may be nested at most {MAX_DEPTH} levels deep")

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._fail(event, "a key must be a string, not a mapping, a list or an alias")
        key = self._scalar(event)
        if isinstance(key, bool):
            self._fail(event, f"the key {event.value} means {str(key).lower()} in YAML; write it as '{event.value}'")
        if key is None:
            self._fail(event, "a key is missing before the colon")
        return key if isinstance(key, str) else str(event.value)

    def _scalar(self, event: yaml.ScalarEvent) -> str | int | float | bool | None:
        if event.implicit[0]:
            try:
                return plain(event.value)
            except ValueError as error:
                self._fail(event, f"{error}; put it in quotes if it is a string")
        if event.implicit[1] or event.tag in ("!", TAGS + "str"):
            return str(event.value)
        value = plain(event.value) if event.tag and event.tag.startswith(TAGS) else event.value
        self._check_tag(event, _TAG_NAMES.get(type(value), "str"))
        return value

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, name: str) -> None:
        """Raise BadRequest for a tag other than that of the node's own type."""
        if event.tag not in (None, "!", TAGS + name):
            tag = event.tag.replace(TAGS, "!!")
            self._fail(event, f"the tag {tag} is not allowed; only JSON types are")

    def _merged(self, value: Any, event: yaml.Event) -> dict[str, Any]:
        """Return the values of a merge key; the first of several mappings wins."""
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            self._fail(event, "a merge key (<<) takes a mapping or a list of mappings")
        result: dict[str, Any] = {}
        for mapping in reversed(mappings):
            result.update(mapping)
        return result

    def _fail(self, event: yaml.Event, message: str) -> NoReturn:
        raise BadRequest(f"{self._source}:{_line(event)}: {message}")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _syntax_error(error: yaml.MarkedYAMLError, source: str, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines() or [""]
    # The end of the text is on the last line.
    line = min(mark.line + 1 if mark else 1, len(lines))
    content = lines[line - 1]
    problem = error.problem or error.context or "this is not YAML"
    hint = ""
    if "\\t" in problem or "\t" in content:
        hint = "; indent with spaces, not tabs"
    elif "mapping values are not allowed" in problem:
        hint = "; put a string that contains a colon in quotes, and check the indentation"
    elif "']'" in problem or "'}'" in problem:
        hint = "; a bracket above is not closed, or a comma is missing"
    elif "expected <block end>" in problem or "did not find expected" in problem:
        hint = "; check the indentation of this line and the lines above"
    near = f" (near {content.strip()[:60]!r})" if content.strip() else ""
    return f"{source}:{line}: line {line} is not YAML: {problem}{near}{hint}"
