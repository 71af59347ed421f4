"""What changed between two versions of a spec, apart from what may change."""

from typing import Any


def changes(old: Any, new: Any, mutable: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Give path and new value of every change below `spec` that `mutable` does not allow.

    A mutable path is dotted and may hold `[*]`, for every item of a list. A part that only holds mutable fields may
    come and go as a whole.
    """
    kept = [path.replace("[*]", ".[*]").split(".") for path in mutable]
    return tuple(_differences(_without(old, kept), _without(new, kept), "spec"))


def _without(value: Any, paths: list[list[str]]) -> Any:
    """Give a copy of `value` without what the paths name and without what becomes empty by that."""
    if isinstance(value, list):
        rest = [path[1:] for path in paths if path[0] == "[*]"]
        return [_without(each, rest) for each in value] if rest else value
    if not isinstance(value, dict):
        return value
    left = {}
    for name, inner in value.items():
        below = [path[1:] for path in paths if path[0] == name]
        if [] in below:
            continue
        kept = _without(inner, below) if below else inner
        if below and kept in ({}, []):
            continue
        left[name] = kept
    return left


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, Any]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = (*old, *(name for name in new if name not in old))
        return [found for name in names for found in _differences(old.get(name), new.get(name), f"{path}.{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            found
            for index, (before, after) in enumerate(zip(old, new, strict=True))
            for found in _differences(before, after, f"{path}[{index}]")
        ]
    return [(path, new)]
