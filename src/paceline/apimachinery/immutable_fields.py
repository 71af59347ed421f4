"""Changes between two versions of a spec that are not allowed."""

from typing import Any


def changes(old: Any, new: Any, mutable: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Return the path and new value of every change below `spec` that `mutable` does not allow.

    A mutable path is dotted and may contain `[*]`, for every item of a list. An object that contains only mutable
    fields may be added or removed as a whole.
    """
    mutable_paths = [path.replace("[*]", ".[*]").split(".") for path in mutable]
    return tuple(_differences(_without(old, mutable_paths), _without(new, mutable_paths), "spec"))


def _without(value: Any, paths: list[list[str]]) -> Any:
    """Return a copy of `value` without the fields at the paths, and without objects that this leaves empty."""
    if isinstance(value, list):
        inner_paths = [path[1:] for path in paths if path[0] == "[*]"]
        return [_without(item, inner_paths) for item in value] if inner_paths else value
    if not isinstance(value, dict):
        return value
    remaining = {}
    for name, inner in value.items():
        below = [path[1:] for path in paths if path[0] == name]
        if [] in below:
            continue
        remaining_value = _without(inner, below) if below else inner
        if below and remaining_value in ({}, []):
            continue
        remaining[name] = remaining_value
    return remaining


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, Any]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        names = (*old, *(name for name in new if name not in old))
        return [change for name in names for change in _differences(old.get(name), new.get(name), f"{path}.{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            change
            for index, (old_item, new_item) in enumerate(zip(old, new, strict=True))
            for change in _differences(old_item, new_item, f"{path}[{index}]")
        ]
    return [(path, new)]
