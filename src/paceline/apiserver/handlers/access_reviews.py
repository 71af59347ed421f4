"""Reviews of one's own identity and permissions: created, answered and not stored."""

from typing import Any

from paceline.apimachinery.builtin.go_json import complete, read_struct
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Scheme
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.auth.authorization import READ_VERBS, READABLE, WRITABLE, AuthzAttributes, is_allowed
from paceline.apiserver.encoding.request_body import read_object
from paceline.apiserver.http_types import Account, Caller, HttpRequest, HttpResponse, object_response
from paceline.apiserver.managed_fields import FieldTracker, author_of
from paceline.apiserver.paths import Target
from paceline.effects import Clock
from paceline.errors import BadRequest

GROUPS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})

# Users may do everything, until there are roles.
_OF_EVERYBODY = ["system:masters", "system:authenticated"]
_QUESTIONS = (
    ("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    ("authentication.k8s.io", ["selfsubjectreviews"]),
)
_RULES = [
    *({"verbs": ["create"], "apiGroups": [group], "resources": plurals} for group, plurals in _QUESTIONS),
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
]
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz"]
_PATH_RULES = [
    {"verbs": ["get"], "nonResourceURLs": _HEALTH},
    {"verbs": ["get"], "nonResourceURLs": [*_DISCOVERY, "/version", "/version/"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


def review(request: HttpRequest, target: Target, clock: Clock, *, tracking: FieldTracker) -> HttpResponse:
    resource = target.resource
    obj = read_object(request, resource.kind)
    object_strategy.set_type_and_namespace(obj, target)
    struct = struct_of(resource.group, resource.version, resource.kind)
    try:
        obj = read_struct(obj, struct)
    except BadRequest as error:
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        raise status_errors.bad_request(message) from error
    spec = obj.get("spec") or {}
    if resource.kind == "SelfSubjectAccessReview":
        tracking.track_create(obj, target, author_of(request, target), unset=())
    obj["status"] = _status(request, resource.kind, spec, scheme=tracking.scheme)
    if resource.kind == "SelfSubjectReview":
        obj.setdefault("metadata", {})["creationTimestamp"] = to_wire(clock.now())
    if resource.kind == "SelfSubjectRulesReview":
        obj["spec"] = {}
    complete(obj, struct)
    return object_response(obj, code=201)


def _status(request: HttpRequest, kind: str, spec: Object, *, scheme: Scheme) -> Object:
    match kind:
        case "SelfSubjectAccessReview":
            _check_question(spec)
            return {"allowed": _may(request.caller, spec, scheme)}
        case "SelfSubjectRulesReview":
            if not spec.get("namespace"):
                raise status_errors.bad_request("no namespace on request")
            return _rules(request.caller.account, str(spec["namespace"]))
        case _:
            return {"userInfo": _user(request.caller)}


def _user(caller: Caller) -> Object:
    account = caller.account
    if account is None:
        return {"username": caller.name, "uid": caller.name, "groups": _OF_EVERYBODY}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"]
    extra = {name: [value] for name, value in account.extra}
    return {"username": caller.name, "uid": account.uid, "groups": groups, "extra": extra}


def _may(caller: Caller, spec: Object, scheme: Scheme) -> bool:
    """Return whether a caller may do what it asks about; accounts may read all non-resource paths."""
    if caller.account is None:
        return True
    resource_attributes = spec.get("resourceAttributes")
    if resource_attributes is None:
        return str((spec.get("nonResourceAttributes") or {}).get("verb")) == "get"
    group, plural = str(resource_attributes.get("group") or ""), str(resource_attributes.get("resource") or "")
    resources = [resource for resource in scheme.resources if (resource.group, resource.plural) == (group, plural)]
    attributes = AuthzAttributes(
        verb=str(resource_attributes.get("verb") or ""),
        group=group,
        plural=plural,
        subresource=str(resource_attributes.get("subresource") or ""),
        namespace=str(resource_attributes.get("namespace") or ""),
        is_custom=bool(resources) and not resources[0].is_builtin,
    )
    return is_allowed(caller.account, attributes)


def _rules(account: Account | None, namespace: str) -> Object:
    if account is None:
        return {"resourceRules": _RULES, "nonResourceRules": _PATH_RULES, "incomplete": False}
    rules = list(_RULES[:-1])
    if namespace == account.namespace:
        tables = [(sorted(READ_VERBS), READABLE), *([(["*"], WRITABLE)] if account.may_write else [])]
        for verbs, table in tables:
            rules += [{"verbs": verbs, "apiGroups": [group], "resources": sorted(table[group])} for group in table]
    # Custom resources are not listed.
    return {"resourceRules": rules, "nonResourceRules": _PATH_RULES[:-1], "incomplete": True}


def _check_question(spec: Object) -> None:
    attributes: list[Any] = [spec.get(name) for name in ("resourceAttributes", "nonResourceAttributes")]
    if sum(value is not None for value in attributes) != 1:
        hint = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        fault = invalid("spec.resourceAttributes", attributes[0], hint)
        # Kubernetes omits the kind here.
        raise status_errors.invalid("", "", (fault,), group="authorization.k8s.io")
