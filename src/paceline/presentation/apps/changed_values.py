"""The values that differ between two revisions of an application, and the fields that differ between their jobs."""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import Invalid
from paceline.kinds.apps.templates.registry import find
from paceline.kinds.apps.templates.values import as_told, merged

Differences = dict[str, tuple[Any, Any]]
# What identifies an entry of a list of objects, in this order.
KEYS = ("name", "type")


def changed_values(older: Mapping[str, Any], newer: Mapping[str, Any], path: str = "") -> Differences:
    """Return the path of every value that differs, with the old and the new value; None if absent.

    Entries of a list of objects are compared by name: `env[LR].value`.
    """
    differences: Differences = {}
    for name in dict.fromkeys((*older, *newer)):
        differences |= _changed(older.get(name), newer.get(name), f"{path}{name}")
    return differences


def _changed(old: Any, new: Any, where: str) -> Differences:
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        pair = [side if isinstance(side, Mapping) else {} for side in (old, new)]
        return changed_values(pair[0], pair[1], f"{where}.")
    if (key := _key_of(old, new)) is not None:
        return _changed_entries(_by_key(old, key), _by_key(new, key), where)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return {
            path: pair
            for index, (one, other) in enumerate(zip(old, new, strict=True))
            for path, pair in _changed(one, other, f"{where}[{index}]").items()
        }
    return {} if as_told(old) == as_told(new) else {where: (old, new)}


def _key_of(old: Any, new: Any) -> str | None:
    """Return the field that identifies every entry of two lists of objects; None if there is none."""
    lists = [side for side in (old, new) if side is not None]
    if not lists or not all(isinstance(side, list) for side in lists) or not any(lists):
        return None
    return next((key for key in KEYS if all(_is_unique(side, key) for side in lists)), None)


def _is_unique(entries: Sequence[Any], key: str) -> bool:
    names = [entry.get(key) if isinstance(entry, Mapping) else None for entry in entries]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _by_key(entries: Sequence[Mapping[str, Any]] | None, key: str) -> dict[str, Mapping[str, Any]]:
    return {entry[key]: entry for entry in entries or ()}


def _changed_entries(older: Mapping[str, Any], newer: Mapping[str, Any], where: str) -> Differences:
    differences: Differences = {}
    for name in dict.fromkeys((*older, *newer)):
        old, new, place = older.get(name), newer.get(name), f"{where}[{name}]"
        if old is None or new is None:
            differences[place] = (old, new)
        else:
            differences |= _changed(old, new, place)
    return differences


def changed_specs(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Differences:
    """Return the differences between the specs of two records: of their values, or of the job if they have none."""
    if any(spec.get("template") or "values" in spec for spec in (older, newer)):
        parts = [{"template": spec.get("template"), "values": _recorded_values(spec)} for spec in (older, newer)]
    else:
        parts = [{"job": {"kind": spec["job"]["kind"], "spec": spec["job"]["spec"]}} for spec in (older, newer)]
    return changed_values(parts[0], parts[1])


def _recorded_values(record: Mapping[str, Any]) -> Mapping[str, Any]:
    template, values = template_of(str(record.get("template") or "")), record.get("values") or {}
    return effective_values({"template": template, "values": values})


def effective_values(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of an application's spec over the defaults of its template."""
    values, template = spec.get("values") or {}, str((spec.get("template") or {}).get("name") or "")
    return merged(find(template).defaults(), values) if _is_template(template) else values


def template_of(text: str) -> dict[str, str]:
    """Return name and version of a template that a record names as NAME-VERSION, or as NAME alone."""
    if _is_template(text):
        return {"name": text}
    name, _, version = text.rpartition("-")
    return {"name": name, "version": version}


def _is_template(name: str) -> bool:
    try:
        find(name)
    except Invalid:
        return False
    return True
