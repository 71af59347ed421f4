"""The answer to an AdmissionReview: whether an object of our kinds is valid."""

from functools import cache
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, name_of
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.errors import BadRequest, Fault
from paceline.kinds import registry

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"


def answer(review: Any) -> Object:
    """Return the AdmissionReview with a response; raise BadRequest if it is not one."""
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != API_VERSION or review.get("kind") != KIND:
        raise BadRequest(f"the body must be an {KIND} of {API_VERSION} with a request")
    if not isinstance(uid := request.get("uid"), str):
        raise BadRequest("request.uid must be a string")
    return {"apiVersion": API_VERSION, "kind": KIND, "response": {"uid": uid, **_response(request)}}


def _response(request: Object) -> Object:
    new, old = request.get("object"), request.get("oldObject")
    resource = _resource_of(new) if _is_asked(request) else None
    if resource is None or not isinstance(new, dict):
        return {"allowed": True}
    if isinstance(old, dict) and (is_deleting(new) or new.get("spec") == old.get("spec")):
        # What is stored already may lose its finalizers and change its labels, valid or not.
        return {"allowed": True}
    if faults := _faults(resource, new, old if isinstance(old, dict) else None):
        name = name_of(new) or str(request.get("name") or "")
        refused = status_errors.invalid(resource.kind, name, faults, group=resource.group)
        return {"allowed": False, "status": refused.status.to_wire()}
    warnings = resource.warn(new, None)
    return {"allowed": True, **({"warnings": list(warnings)} if warnings else {})}


def _is_asked(request: Object) -> bool:
    return request.get("operation") in {"CREATE", "UPDATE"} and not request.get("subResource")


def _faults(resource: Resource, new: Object, old: Object | None) -> tuple[Fault, ...]:
    faults = tuple(resource.check(new, lambda _plural, _namespace: ()))
    return faults if old is None else (*faults, *resource.check_change(new, old))


def _resource_of(obj: Any) -> Resource | None:
    if not isinstance(obj, dict):
        return None
    return _resources().get((str(obj.get("apiVersion")), str(obj.get("kind"))))


@cache
def _resources() -> dict[tuple[str, str], Resource]:
    return {(resource.api_version, resource.kind): resource for resource in registry.resources()}
