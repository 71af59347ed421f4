"""The values that differ between two revisions of an application."""

from collections.abc import Mapping
from typing import Any

from paceline.kinds.apps.templates.values import as_told


def changed_values(older: Mapping[str, Any], newer: Mapping[str, Any], path: str = "") -> dict[str, tuple[Any, Any]]:
    """Return the path of every value that differs, with the old and the new value; None if absent."""
    differences: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys((*older, *newer)):
        old, new = older.get(name), newer.get(name)
        where = f"{path}{name}"
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            differences |= changed_values(
                old if isinstance(old, Mapping) else {}, new if isinstance(new, Mapping) else {}, f"{where}."
            )
        elif as_told(old) != as_told(new):
            differences[where] = (old, new)
    return differences


def changed_specs(older: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the differences between the specs of two records: of their values, or of the job if they have none."""
    if "values" in older or "values" in newer:
        parts = [{"template": spec.get("template"), "values": spec.get("values") or {}} for spec in (older, newer)]
    else:
        parts = [{"job": {"kind": spec["job"]["kind"], "spec": spec["job"]["spec"]}} for spec in (older, newer)]
    return changed_values(parts[0], parts[1])
