"""Trees of values: merged and set on the command line with the rules of Helm, and decoded into their types."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from paceline.apimachinery.field_errors import required
from paceline.errors import BadRequest, Fault
from paceline.kinds.apps.templates.types import Value, as_text
from paceline.kinds.decode import decode, misfits

V = TypeVar("V", bound=Value)

Tree = dict[str, Any]
INDEX = re.compile(r"(?P<name>.*?)(?P<indexes>(\[[0-9]+\])+)")
INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
MAX_INDEX = 1000


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Return two trees merged; values of `above` win, and null removes a value of `below`."""
    tree = dict(below)
    for name, value in above.items():
        existing = tree.get(name)
        if value is None and name in tree:
            del tree[name]
        elif isinstance(value, Mapping) and isinstance(existing, Mapping):
            tree[name] = merged(existing, value)
        else:
            tree[name] = value
    return tree


def with_setting(tree: Tree, setting: str, *, is_text: bool = False) -> Tree:
    """Return the tree with a `--set` argument applied (`a.b=1,c[0]=x,d={1,2}`); raise BadRequest if it is invalid."""
    for part in _split(setting, ","):
        name, sign, value = _cut(part, "=")
        if not sign or not name.strip():
            raise BadRequest(f"--set {part!r}: write NAME=VALUE, such as worker.number=2")
        tree = _placed(tree, _path(name, part), _value(value, is_text=is_text))
    return tree


def tidy(tree: Any) -> Any:
    """Return a tree with whole numbers as integers: charts pass them as floats."""
    if isinstance(tree, dict):
        return {name: tidy(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [tidy(value) for value in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree


def as_told(tree: Any) -> Any:
    """Return a tree with numbers as the strings that trainers get: 0.05 and "0.05" are the same value."""
    if isinstance(tree, dict):
        return {name: as_told(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [as_told(value) for value in tree]
    return as_text(tree) if isinstance(tree, int | float) and not isinstance(tree, bool) else tree


def value_faults(tree: object, kind: type[Value], path: str) -> tuple[Fault, ...]:
    """Return a fault for every value that is unknown, empty, of the wrong type or out of bounds."""
    if not isinstance(tree, dict):
        return misfits(tree, kind, path)
    # An empty block is a mistake in the indentation, and does not mean "all defaults".
    empty = [name for name, value in tree.items() if value is None]
    missing = tuple(required(f"{path}.{name}", f"{name} is empty; check the indentation below it") for name in empty)
    filled = {name: value for name, value in tree.items() if value is not None}
    return (*missing, *misfits(tidy(filled), kind, path))


def read_values(tree: Mapping[str, Any], kind: type[V]) -> V:
    """Return the decoded values; the tree must be valid."""
    return decode(tidy(dict(tree)), kind)


def _path(name: str, part: str) -> list[str | int]:
    path: list[str | int] = []
    for step in _split(name, "."):
        match = INDEX.fullmatch(step)
        word = _bare(step if match is None else match["name"])
        if word:
            path.append(word)
        elif match is None or not path:
            raise BadRequest(f"--set {part!r}: a name is missing; write NAME=VALUE, such as worker.number=2")
        indexes = [int(digits) for digits in re.findall(r"\[([0-9]+)\]", match["indexes"])] if match else []
        if any(index > MAX_INDEX for index in indexes):
            raise BadRequest(f"--set {part!r}: a list can have at most {MAX_INDEX} entries")
        path.extend(indexes)
    return path


def _placed(tree: Any, path: list[str | int], value: Any) -> Any:
    if not path:
        return value
    step, *remaining = path
    if isinstance(step, int):
        entries = list(tree) if isinstance(tree, list) else []
        entries += [None] * (step + 1 - len(entries))
        entries[step] = _placed(entries[step], remaining, value)
        return entries
    fields = dict(tree) if isinstance(tree, dict) else {}
    fields[step] = _placed(fields.get(step), remaining, value)
    return fields


def _value(text: str, *, is_text: bool) -> Any:
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_word(item, is_text=is_text) for item in _split(inner, ",")] if inner else []
    return _word(text, is_text=is_text)


def _word(text: str, *, is_text: bool) -> Any:
    """Return the value of one word, as Helm reads it; fractions stay strings, so that no digit is lost."""
    plain = _bare(text)
    if is_text:
        return plain
    if plain.lower() in WORDS:
        return WORDS[plain.lower()]
    return int(plain) if INTEGER.fullmatch(plain) else plain


def _bare(text: str) -> str:
    """Return text without the backslashes that escape special characters."""
    return re.sub(r"\\(.)", r"\1", text)


def _split(text: str, separator: str) -> list[str]:
    """Return the parts of text between separators that are neither escaped nor in braces."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
        elif letter == separator and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [*parts, text[start:]]


def _cut(text: str, separator: str) -> tuple[str, str, str]:
    first, *others = _split(text, separator)
    return (first, separator, separator.join(others)) if others else (first, "", "")
