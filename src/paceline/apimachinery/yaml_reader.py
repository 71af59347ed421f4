"""Build JSON-shaped values from YAML events, counting as they come, so that no bomb is ever unfolded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from paceline.apimachinery.yaml_scalars import is_word, plain
from paceline.errors import BadRequest, TooLarge

MAX_NODES = 20_000
MAX_DEPTH = 64
# Aliases may make a document this many times larger than it is written.
MAX_UNFOLDING = 10
# Documents smaller than this may repeat themselves as they like.
FREE_NODES = 1_000

TAGS = "tag:yaml.org,2002:"
MERGE = "<<"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One YAML document and the line it begins on."""

    value: Any
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """A value with its size, kept for aliases to it."""

    value: Any
    nodes: int
    height: int


def read_trees(text: str, source: str, *, twice: list[str] | None = None) -> Iterator[Tree]:
    """Give every document that is not empty; BadRequest and TooLarge carry file and line.

    A key that stands twice is refused, or told in `twice`, where Kubernetes takes the last.
    """
    try:
        builder = Builder(text, source, twice)
        yield from builder.documents()
    except yaml.MarkedYAMLError as error:
        raise BadRequest(_syntax(error, source, text) if twice is None else _brief(error)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = error.character if isinstance(error.character, int) else ord(error.character)
        raise BadRequest(f"{source}:{line}: the character 0x{character:02x} is not allowed in YAML") from error


class Builder:
    """Reads one stream of events; every method leaves the stream behind the node it read."""

    def __init__(self, text: str, source: str, twice: list[str] | None = None) -> None:
        self._events = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._source = source
        self._twice = twice
        self._anchors: dict[str, Grown | None] = {}
        self._written = 0
        self._unfolded = 0

    def documents(self) -> Iterator[Tree]:
        """Read the stream document by document."""
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                if self._twice is None:
                    # A file has many objects, a body one: there, whatever follows counts too.
                    self._written = self._unfolded = 0
                first = next(self._events)
                grown = self._node(first, depth=1)
                if grown.value is not None:
                    yield Tree(value=grown.value, line=_line(first))

    def _node(self, event: yaml.Event, depth: int) -> Grown:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._count(event, written=1, depth=depth)
        anchor = getattr(event, "anchor", None)
        if anchor:
            # None while the node is open: an alias to it from inside would have no end.
            self._anchors[anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            grown = self._mapping(event, depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            grown = self._sequence(event, depth)
        elif isinstance(event, yaml.ScalarEvent):
            grown = Grown(value=self._scalar(event), nodes=1, height=1)
        else:
            self._refuse(event, "a value is missing")
        if anchor:
            self._anchors[anchor] = grown
        return grown

    def _mapping(self, start: yaml.MappingStartEvent, depth: int) -> Grown:
        self._tag(start, "map")
        values: dict[str, Any] = {}
        merged: list[tuple[Any, yaml.Event]] = []
        lines: dict[str, int] = {}
        nodes = height = 1
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            line = _line(event)
            grown = self._node(value_event := next(self._events), depth + 1)
            nodes, height = nodes + grown.nodes, max(height, grown.height + 1)
            if key == MERGE and event.implicit[0]:
                merged.append((grown.value, value_event))
            elif key in values and self._twice is None:
                self._refuse(
                    event, f"the key {key!r} stands on line {lines[key]} and again on line {line}; keep one of them"
                )
            else:
                if key in values and self._twice is not None:
                    self._twice.append(f'line {line}: key "{key}" already set in map')
                values[key], lines[key] = grown.value, line
        if merged:
            # The first of several wins, and what stands here itself above all.
            brought: dict[str, Any] = {}
            for value in reversed([self._merged(*each) for each in merged]):
                brought.update(value)
            values = {**brought, **values}
        return Grown(value=values, nodes=nodes, height=height)

    def _sequence(self, start: yaml.SequenceStartEvent, depth: int) -> Grown:
        self._tag(start, "seq")
        values = []
        nodes = height = 1
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            grown = self._node(event, depth + 1)
            values.append(grown.value)
            nodes, height = nodes + grown.nodes, max(height, grown.height + 1)
        return Grown(value=values, nodes=nodes, height=height)

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Grown:
        anchor = event.anchor or ""
        if anchor not in self._anchors:
            self._refuse(event, f"the alias *{anchor} has no anchor &{anchor} before it")
        grown = self._anchors[anchor]
        if grown is None:
            self._refuse(event, f"the alias *{anchor} contains itself")
        self._unfolded += grown.nodes
        self._count(event, written=0, depth=depth + grown.height - 1)
        return grown

    def _count(self, event: yaml.Event, *, written: int, depth: int) -> None:
        self._written += written
        total = self._written + self._unfolded
        where = f"{self._source}:{_line(event)}"
        if total > MAX_NODES:
            raise TooLarge(f"{where}: one document may hold {MAX_NODES} values, aliases unfolded; this one holds more")
        if total > FREE_NODES and total > MAX_UNFOLDING * self._written:
            raise TooLarge(f"{where}: aliases make this document more than {MAX_UNFOLDING} times larger; write it out")
        if depth > MAX_DEPTH:
            raise TooLarge(f"{where}: values may lie {MAX_DEPTH} levels deep; this one lies deeper")

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key must be a text, not a mapping, a list or an alias")
        key = self._scalar(event)
        if isinstance(key, bool):
            self._refuse(event, f"the key {event.value} means {str(key).lower()} in YAML; write it as '{event.value}'")
        if key is None:
            self._refuse(event, "a key is missing before the colon")
        return key if isinstance(key, str) else str(event.value)

    def _scalar(self, event: yaml.ScalarEvent) -> str | int | float | bool | None:
        if event.implicit[0]:
            try:
                return plain(event.value)
            except ValueError as error:
                self._refuse(event, f"{error}; put it in quotes if a text is meant")
        if event.implicit[1] or event.tag in ("!", TAGS + "str"):
            return str(event.value)
        value = plain(event.value) if event.tag and event.tag.startswith(TAGS) else event.value
        self._tag(event, {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str"))
        return value

    def _tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, wanted: str) -> None:
        """Refuse tags that are not the plain name of what the node is."""
        if event.tag not in (None, "!", TAGS + wanted):
            tag = event.tag.replace(TAGS, "!!")
            self._refuse(
                event, f"the tag {tag} is not allowed; only texts, numbers, true, false, lists and mappings are"
            )

    def _merged(self, value: Any, event: yaml.Event) -> dict[str, Any]:
        """Give what a merge key brings along; the first of several mappings wins."""
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in mappings):
            self._refuse(event, "a merge key (<<) takes a mapping or a list of mappings")
        result: dict[str, Any] = {}
        for each in reversed(mappings):
            result.update(each)
        return result

    def _refuse(self, event: yaml.Event, why: str) -> NoReturn:
        raise BadRequest(f"{self._source}:{_line(event)}: {why}")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _brief(error: yaml.MarkedYAMLError) -> str:
    """Say what Kubernetes says, which counts lines from 0 in half of all cases."""
    mark, before = error.problem_mark, error.context_mark
    line = mark.line if mark and mark.line else before.line if before else 0
    line += isinstance(error, yaml.scanner.ScannerError)
    return f"yaml: line {line}: {error.problem}" if line else f"yaml: {error.problem}"


def _syntax(error: yaml.MarkedYAMLError, source: str, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    what = error.problem or error.context or "this is not YAML"
    lines = text.splitlines()
    shown = lines[line - 1].strip() if line <= len(lines) else ""
    hint = ""
    if "\\t" in what or "\t" in (lines[line - 1] if line <= len(lines) else ""):
        hint = "; YAML indents by spaces, never by tabs"
    elif "mapping values are not allowed" in what:
        hint = "; put a text with a colon in it in quotes, and look at the indentation"
    elif "']'" in what or "'}'" in what:
        hint = "; a bracket above is not closed, or a comma is missing"
    elif "expected <block end>" in what or "did not find expected" in what:
        hint = "; look at the indentation of this line and the ones above"
    near = f" (near {shown[:60]!r})" if shown else ""
    return f"{source}:{line}: line {line} is not YAML: {what}{near}{hint}"


class _Dumper(yaml.CSafeDumper):
    """Writes texts so that kubectl, too, reads them as such."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_word(text) else '"')


_Dumper.add_representer(str, _text)


def to_text(value: Any) -> str:
    """Write what JSON can say, a line for each value, fields in order."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True)
    return text
