"""What becomes of a definition: which of its names it gets, whether it is served, and that it is on its way out."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.apimachinery.crd.crd import CLEANUP, ESTABLISHED, NAMES_ACCEPTED, TERMINATING, condition_of, holds
from paceline.apimachinery.meta import Object, name_of

# How Kubernetes calls a clash, by the name that clashes; the last one that does is told.
_CLASHES = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}
# Names that share one space: what a path or a person may say, and what an object says of itself.
_SPACES = (("plural", "singular", "shortNames"), ("kind", "listKind"))


def status_of(definition: Object, others: Iterable[Object], now: str) -> Object:
    """Work out the status of a definition, given all the others."""
    group = definition["spec"]["group"]
    near = [each for each in others if each["spec"]["group"] == group and name_of(each) != name_of(definition)]
    status: Object = dict(definition.get("status") or {})
    names, clash = _accepted(definition, near)
    status["acceptedNames"] = names
    if clash:
        reason, message = clash
        accepted = _condition(NAMES_ACCEPTED, "False", reason, message)
        established = _condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
    else:
        accepted = _condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
        message = "the initial names have been accepted"
        established = _condition(ESTABLISHED, "True", "InitialNamesAccepted", message)
    wanted = [accepted]
    # Once served, it stays so: its objects must not become unreachable.
    if not holds(definition, ESTABLISHED):
        wanted.append(established)
    return _with_conditions(definition, status, wanted, now=now)


def marked(definition: Object, now: str) -> Object:
    """Give a definition that is to go, held back until its objects are gone."""
    metadata = {**definition["metadata"], "deletionTimestamp": now}
    metadata["finalizers"] = [*dict.fromkeys((*(metadata.get("finalizers") or ()), CLEANUP))]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = _condition(TERMINATING, "True", "InstanceDeletionPending", message)
    status = _with_conditions(definition, dict(definition.get("status") or {}), [pending], now=now)
    return {**definition, "metadata": metadata, "status": status}


def released(definition: Object, now: str) -> Object:
    """Give a definition whose objects are gone."""
    metadata = dict(definition["metadata"])
    metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != CLEANUP]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    done = _condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
    status = _with_conditions(definition, dict(definition.get("status") or {}), [done], now=now)
    return {**definition, "metadata": metadata, "status": status}


def _accepted(definition: Object, others: list[Object]) -> tuple[Object, tuple[str, str] | None]:
    wanted: Mapping[str, Any] = definition["spec"].get("names") or {}
    before: Mapping[str, Any] = (definition.get("status") or {}).get("acceptedNames") or {}
    accepted: Object = {"plural": "", "kind": ""}
    clash: tuple[str, str] | None = None
    for space in _SPACES:
        taken = {name for each in others for part in space for name in _names(_accepted_by(each), part)}
        for part in space:
            bad = [name for name in _names(wanted, part) if name in taken]
            if bad:
                clash = (_CLASHES[part], f'"{bad[0]}" is already in use')
            chosen = before.get(part) if bad else wanted.get(part)
            if chosen:
                accepted[part] = chosen
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {part: accepted[part] for part in order if part in accepted}, clash


def _accepted_by(definition: Object) -> Mapping[str, Any]:
    names: Mapping[str, Any] = (definition.get("status") or {}).get("acceptedNames") or {}
    return names


def _names(names: Mapping[str, Any], part: str) -> tuple[str, ...]:
    said = names.get(part) or ()
    return (said,) if isinstance(said, str) else tuple(said)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": "", "reason": reason, "message": message}


def _with_conditions(definition: Object, status: Object, wanted: list[Object], *, now: str) -> Object:
    kept = {each["type"]: each for each in status.get("conditions") or ()}
    for each in wanted:
        before = condition_of(definition, each["type"])
        same = before.get("status") == each["status"]
        kept[each["type"]] = {**each, "lastTransitionTime": before["lastTransitionTime"] if same else now}
    return {
        "conditions": list(kept.values()),
        **{part: value for part, value in status.items() if part != "conditions"},
    }
