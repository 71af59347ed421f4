"""Trees of values: put over each other as Helm does, set from the command line as Helm does, read into their types."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from paceline.errors import Fault, Malformed
from paceline.kinds.decode import decode, misfits
from paceline.kinds.templates.mould import Value
from paceline.kinds.templates.words import as_text
from paceline.objects.faults import required

V = TypeVar("V", bound=Value)

Tree = dict[str, Any]
INDEX = re.compile(r"(?P<name>.*?)(?P<indexes>(\[[0-9]+\])+)")
INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
MAX_INDEX = 1000


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Put one tree over another; null takes away what is below, and everything else replaces it."""
    tree = dict(below)
    for name, value in above.items():
        there = tree.get(name)
        if value is None and name in tree:
            del tree[name]
        elif isinstance(value, Mapping) and isinstance(there, Mapping):
            tree[name] = merged(there, value)
        else:
            tree[name] = value
    return tree


def with_setting(tree: Tree, setting: str, *, is_text: bool = False) -> Tree:
    """Give the tree with what `--set` says: `a.b=1,c[0]=x,d={1,2}`; Malformed when it cannot be read."""
    for part in _split(setting, ","):
        name, sign, value = _cut(part, "=")
        if not sign or not name.strip():
            raise Malformed(f"--set {part!r}: write NAME=VALUE, such as worker.number=2")
        tree = _placed(tree, _path(name, part), _value(value, is_text=is_text))
    return tree


def tidy(tree: Any) -> Any:
    """Write whole numbers as such: a chart's travel as fractions."""
    if isinstance(tree, dict):
        return {name: tidy(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [tidy(value) for value in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree


def as_told(tree: Any) -> Any:
    """Write numbers as the text that they are passed on as: 0.05 and "0.05" are one value."""
    if isinstance(tree, dict):
        return {name: as_told(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [as_told(value) for value in tree]
    return as_text(tree) if isinstance(tree, int | float) and not isinstance(tree, bool) else tree


def value_faults(tree: object, kind: type[Value], path: str) -> tuple[Fault, ...]:
    """Name every value that is unknown, empty, of another type or out of bounds."""
    if not isinstance(tree, dict):
        return misfits(tree, kind, path)
    # A block without anything in it is a slip of the indentation, and never "all defaults".
    empty = [name for name, value in tree.items() if value is None]
    slips = tuple(required(f"{path}.{name}", f"{name} is empty; look at the indentation below it") for name in empty)
    kept = {name: value for name, value in tree.items() if value is not None}
    return (*slips, *misfits(tidy(kept), kind, path))


def read_values(tree: Mapping[str, Any], kind: type[V]) -> V:
    """Read a tree without faults into its typed form."""
    return decode(tidy(dict(tree)), kind)


def _path(name: str, part: str) -> list[str | int]:
    path: list[str | int] = []
    for step in _split(name, "."):
        found = INDEX.fullmatch(step)
        word = _bare(step if found is None else found["name"])
        if word:
            path.append(word)
        elif found is None or not path:
            raise Malformed(f"--set {part!r}: a name is missing; write NAME=VALUE, such as worker.number=2")
        indexes = [int(each) for each in re.findall(r"\[([0-9]+)\]", found["indexes"])] if found else []
        if any(each > MAX_INDEX for each in indexes):
            raise Malformed(f"--set {part!r}: lists may have {MAX_INDEX} entries")
        path.extend(indexes)
    return path


def _placed(tree: Any, path: list[str | int], value: Any) -> Any:
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        entries = list(tree) if isinstance(tree, list) else []
        entries += [None] * (step + 1 - len(entries))
        entries[step] = _placed(entries[step], rest, value)
        return entries
    fields = dict(tree) if isinstance(tree, dict) else {}
    fields[step] = _placed(fields.get(step), rest, value)
    return fields


def _value(text: str, *, is_text: bool) -> Any:
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_word(each, is_text=is_text) for each in _split(inner, ",")] if inner else []
    return _word(text, is_text=is_text)


def _word(text: str, *, is_text: bool) -> Any:
    """Read one word as Helm does: fractions stay text, so that no digit is lost."""
    plain = _bare(text)
    if is_text:
        return plain
    if plain.lower() in WORDS:
        return WORDS[plain.lower()]
    return int(plain) if INTEGER.fullmatch(plain) else plain


def _bare(text: str) -> str:
    """Take the backslashes away that kept marks from being read as such."""
    return re.sub(r"\\(.)", r"\1", text)


def _split(text: str, mark: str) -> list[str]:
    """Cut at a mark that is neither escaped nor in braces."""
    parts, depth, start, position = [], 0, 0, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif letter == "{":
            depth += 1
        elif letter == "}":
            depth -= 1
        elif letter == mark and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return [*parts, text[start:]]


def _cut(text: str, mark: str) -> tuple[str, str, str]:
    first, *rest = _split(text, mark)
    return (first, mark, mark.join(rest)) if rest else (first, "", "")
