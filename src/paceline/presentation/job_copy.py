"""The manifest of a job that runs another one again."""

from collections.abc import Container
from itertools import count
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, labels_of, name_of
from paceline.model import well_known_labels

# Annotations about the original job that do not apply to its copy.
NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    well_known_labels.ASKED_BY,
    well_known_labels.RESTART,
)


def copy_of(job: Object, name: str) -> Object:
    """Return the manifest of a new job with the spec of another, neither paused nor suspended."""
    notes = {key: value for key, value in annotations_of(job).items() if key not in NOT_COPIED}
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": {
            "name": name,
            "namespace": job["metadata"]["namespace"],
            "labels": dict(labels_of(job)),
            "annotations": {**notes, well_known_labels.COPY_OF: _first(job)},
        },
        "spec": _unsuspended(job["spec"]),
    }


def debug_copy_of(job: Object, name: str) -> Object:
    """Return the manifest of a new job with the spec of another, in debug mode: its program does not start."""
    copied = copy_of(job, name)
    mode = copied["spec"].get("runMode") or {}
    debug = {**(mode.get("debug") or {}), "enabled": True}
    return {**copied, "spec": {**copied["spec"], "runMode": {**mode, "debug": debug}}}


def next_name(job: Object, taken: Container[str], *, suffix: str = "") -> str:
    """Return the first free name of `digits-2`, `digits-3`, …; a copy of a copy continues the same numbering.

    With a suffix, return the first free name of `digits-debug`, `digits-debug-2`, ….
    """
    first = _first(job)
    if suffix:
        first = f"{first}-{suffix}"
        if first not in taken:
            return first
    return next(name for number in count(2) if (name := f"{first}-{number}") not in taken)


def _first(job: Object) -> str:
    return annotations_of(job).get(well_known_labels.COPY_OF) or name_of(job)


def _unsuspended(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a spec that is neither suspended nor paused."""
    copied = {key: value for key, value in spec.items() if key != "suspend"}
    mode = copied.get("runMode")
    if isinstance(mode, dict) and isinstance(mode.get("pause"), dict):
        # Spelled `enable` until 2023.
        pause = {key: value for key, value in mode["pause"].items() if key not in ("enabled", "enable")}
        copied["runMode"] = {**mode, "pause": pause}
    return copied
