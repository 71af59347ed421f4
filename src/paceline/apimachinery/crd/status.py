"""The status of a CustomResourceDefinition: accepted names, established, terminating."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.apimachinery.crd.crd import CLEANUP, ESTABLISHED, NAMES_ACCEPTED, TERMINATING
from paceline.apimachinery.meta import Object, condition_of, has_condition, name_of

# The condition's reason for a name in conflict; the last one counts.
_CONFLICTS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}
# Names within a group must be unique within each of these: names of resources, and names of kinds.
_NAMESPACES = (("plural", "singular", "shortNames"), ("kind", "listKind"))
_ORDER = (*_CONFLICTS, "categories")


def status_of(definition: Object, others: Iterable[Object], now: str) -> Object:
    """Return the status of a definition, given all other definitions."""
    group = definition["spec"]["group"]
    same_group = [
        other for other in others if other["spec"]["group"] == group and name_of(other) != name_of(definition)
    ]
    names, conflict = _accepted(definition, same_group)
    if conflict:
        accepted = _condition(NAMES_ACCEPTED, "False", *conflict)
        established = _condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
    else:
        accepted = _condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
        message = "the initial names have been accepted"
        established = _condition(ESTABLISHED, "True", "InitialNamesAccepted", message)
    # An established definition stays so: its objects must not become unreachable.
    conditions = [accepted] if has_condition(definition, ESTABLISHED) else [accepted, established]
    return _with_conditions(definition, conditions, now) | {"acceptedNames": names}


def begin_deletion(definition: Object, now: str) -> Object:
    """Return a definition that is being deleted, with the finalizer that waits for its objects."""
    metadata = {**definition["metadata"], "deletionTimestamp": now}
    metadata["finalizers"] = [*dict.fromkeys((*(metadata.get("finalizers") or ()), CLEANUP))]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = _condition(TERMINATING, "True", "InstanceDeletionPending", message)
    return {**definition, "metadata": metadata, "status": _with_conditions(definition, [pending], now)}


def finish_deletion(definition: Object, now: str) -> Object:
    """Return a definition whose objects are deleted, without the finalizer."""
    metadata = dict(definition["metadata"])
    metadata["finalizers"] = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != CLEANUP]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    completed = _condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
    return {**definition, "metadata": metadata, "status": _with_conditions(definition, [completed], now)}


def _accepted(definition: Object, others: list[Object]) -> tuple[Object, tuple[str, str] | None]:
    """Return the accepted names, and the reason and message of a conflict."""
    requested: Mapping[str, Any] = definition["spec"].get("names") or {}
    previous = _accepted_names(definition)
    accepted: Object = {"plural": "", "kind": ""}
    conflict: tuple[str, str] | None = None
    for fields in _NAMESPACES:
        taken = {name for other in others for field in fields for name in _names(_accepted_names(other), field)}
        for field in fields:
            in_use = [name for name in _names(requested, field) if name in taken]
            if in_use:
                conflict = (_CONFLICTS[field], f'"{in_use[0]}" is already in use')
            if chosen := previous.get(field) if in_use else requested.get(field):
                accepted[field] = chosen
    if requested.get("categories"):
        accepted["categories"] = requested["categories"]
    return {field: accepted[field] for field in _ORDER if field in accepted}, conflict


def _accepted_names(definition: Object) -> Mapping[str, Any]:
    names: Mapping[str, Any] = (definition.get("status") or {}).get("acceptedNames") or {}
    return names


def _names(names: Mapping[str, Any], field: str) -> tuple[str, ...]:
    value = names.get(field) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def _condition(condition_type: str, status: str, reason: str, message: str) -> Object:
    return {"type": condition_type, "status": status, "lastTransitionTime": "", "reason": reason, "message": message}


def _with_conditions(definition: Object, changed: list[Object], now: str) -> Object:
    """Return the status with conditions changed; a time changes only with the condition's status."""
    status: Object = definition.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    for condition in changed:
        previous = condition_of(definition, condition["type"]) or {}
        is_same = previous.get("status") == condition["status"]
        since = previous["lastTransitionTime"] if is_same else now
        conditions[condition["type"]] = {**condition, "lastTransitionTime": since}
    return {**status, "conditions": list(conditions.values())}
