"""Who asked for the current spec of a job, service or application: the caller's name, whatever the client says."""

from paceline.apimachinery.meta import Object, annotations_of
from paceline.apimachinery.scheme import Resource
from paceline.apiserver.http_types import Caller
from paceline.model.well_known_labels import ASKED_BY, OPENED_AT, RESTART

# The category of our kinds.
CATEGORY = "paceline"
# Annotations that ask for something, as a change of the spec does.
REQUESTS = (OPENED_AT, RESTART)


def is_noted(resource: Resource) -> bool:
    """Return whether the actions of people on objects of a kind are noted."""
    return CATEGORY in resource.categories and not resource.is_builtin


def is_person(caller: Caller | None) -> bool:
    """Return whether a caller acts for a person: every caller but the cluster's own components."""
    return caller is not None and (caller.account is not None or not caller.name.startswith("system:"))


def note_caller(resource: Resource, new: Object, old: Object | None, caller: Caller | None) -> None:
    """Set in place who asked for a change; without a change, keep who asked for the last one.

    Our own components keep the name that is recorded: they only carry out what that person asked for.
    """
    if caller is None or not is_noted(resource) or not is_person(caller):
        return
    name = caller.name if old is None or _asks(new, old) else annotations_of(old).get(ASKED_BY, "")
    annotations = {key: value for key, value in annotations_of(new).items() if key != ASKED_BY}
    if name:
        annotations[ASKED_BY] = name
    if annotations:
        new["metadata"]["annotations"] = annotations
    else:
        new["metadata"].pop("annotations", None)


def without_caller(resource: Resource, obj: Object) -> Object:
    """Return an object without the note, which no field manager owns."""
    if not is_noted(resource) or ASKED_BY not in annotations_of(obj):
        return obj
    annotations = {key: value for key, value in annotations_of(obj).items() if key != ASKED_BY}
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**obj, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def _asks(new: Object, old: Object) -> bool:
    """Return whether a write asks for something: its spec changes, or a request is noted in an annotation."""
    requests, earlier = annotations_of(new), annotations_of(old)
    return new.get("spec") != old.get("spec") or any(requests.get(key) != earlier.get(key) for key in REQUESTS)
