"""Questions about oneself: who am I, may I do this, what may I do. Asked by creating an object that is not stored."""

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

# Whoever is no service account may do everything; roles per namespace come later, and will be asked here.
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
    """Answer a question about the caller."""
    resource = target.resource
    obj = read_object(request, resource.kind)
    object_strategy.set_type_and_namespace(obj, target)
    struct = struct_of(resource.group, resource.version, resource.kind)
    try:
        obj = read_struct(obj, struct)
    except BadRequest as error:
        said = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        raise status_errors.bad_request(said) from error
    spec = obj.get("spec") or {}
    if resource.kind == "SelfSubjectAccessReview":
        tracking.born(obj, target, author_of(request, target), unsaid=())
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
    """Tell whether a caller may do what it asks about; accounts may look at all that is about no object."""
    if caller.account is None:
        return True
    asked = spec.get("resourceAttributes")
    if asked is None:
        return str((spec.get("nonResourceAttributes") or {}).get("verb")) == "get"
    group, plural = str(asked.get("group") or ""), str(asked.get("resource") or "")
    known = [each for each in scheme.resources if (each.group, each.plural) == (group, plural)]
    wanted = AuthzAttributes(
        verb=str(asked.get("verb") or ""),
        group=group,
        plural=plural,
        part=str(asked.get("subresource") or ""),
        namespace=str(asked.get("namespace") or ""),
        is_defined=bool(known) and not known[0].is_builtin,
    )
    return is_allowed(caller.account, wanted)


def _rules(account: Account | None, namespace: str) -> Object:
    if account is None:
        return {"resourceRules": _RULES, "nonResourceRules": _PATH_RULES, "incomplete": False}
    told = list(_RULES[:-1])
    if namespace == account.namespace:
        tables = [(sorted(READ_VERBS), READABLE), *([(["*"], WRITABLE)] if account.may_write else [])]
        for verbs, table in tables:
            told += [{"verbs": verbs, "apiGroups": [group], "resources": sorted(table[group])} for group in table]
    # Kinds that were defined come and go.
    return {"resourceRules": told, "nonResourceRules": _PATH_RULES[:-1], "incomplete": True}


def _check_question(spec: Object) -> None:
    asked: list[Any] = [spec.get(name) for name in ("resourceAttributes", "nonResourceAttributes")]
    if sum(each is not None for each in asked) != 1:
        hint = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        fault = invalid("spec.resourceAttributes", asked[0], hint)
        # Kubernetes does not name the kind here.
        raise status_errors.invalid("", "", (fault,), group="authorization.k8s.io")
