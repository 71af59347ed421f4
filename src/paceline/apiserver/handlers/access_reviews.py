"""Reviews of one's own identity and permissions, and service account tokens: created, but not stored."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from paceline.apimachinery.builtin.go_json import complete
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.scheme import Scheme
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.auth.authorization import READ_VERBS, READABLE, WRITABLE, AuthzAttributes, is_allowed
from paceline.apiserver.auth.service_account_tokens import ISSUER, PRIVATE, AccountTokens
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.request_body import check_type, decode_struct, read_object, read_options
from paceline.apiserver.http_types import Account, Caller, HttpRequest, HttpResponse, object_response
from paceline.apiserver.managed_fields import FieldTracker, author_of
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import offload
from paceline.effects import Clock
from paceline.errors import Fault

KIND, GROUP, VERSION = "TokenRequest", "authentication.k8s.io", "authentication.k8s.io/v1"
STRUCT = "authentication.v1.TokenRequest"
DEFAULT_SECONDS, MIN_SECONDS, MAX_SECONDS = 3600, 600, 2**32
# Kubelet asks for pod tokens with this duration; these are valid for longer, as long as the pod exists.
POD_SECONDS, POD_LASTS_SECONDS = 3607, 365 * 24 * 3600
_BOUND = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets"}
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
    obj = decode_struct(obj, struct, resource.kind)
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


async def request_token(request: HttpRequest, target: Target, server: Server) -> HttpResponse:
    tokens = server.tokens
    if tokens is None:
        raise status_errors.no_such_path()
    read_options(request, "CreateOptions")
    token_request = await offload(server.blocking, len(request.body), partial(read_object, request, KIND))
    check_type(token_request, VERSION, KIND)
    spec = _spec(token_request)
    if errors := tuple(_faults(spec)):
        raise status_errors.invalid(KIND, "", errors, group=GROUP)
    account = tokens.find("serviceaccounts", target.namespace, target.name)
    if account is None:
        raise status_errors.not_found(target.resource, target.name)
    if (name := (token_request.get("metadata") or {}).get("name")) and name != target.name:
        hint = "must match the service account name if specified"
        raise status_errors.invalid(KIND, target.name, (invalid("metadata.name", name, hint),), group=GROUP)
    bound = _bound(spec.get("boundObjectRef"), account, tokens)
    now, seconds = server.clock.now(), spec["expirationSeconds"]
    is_of_pod = "pod" in bound and seconds == POD_SECONDS
    issued_at = int(now.timestamp())
    claims = {
        "aud": spec["audiences"],
        "exp": issued_at + (POD_LASTS_SECONDS if is_of_pod else seconds),
        "iat": issued_at,
        "iss": ISSUER,
        "jti": server.ids.uid(),
        PRIVATE: {"namespace": target.namespace, **bound, "serviceaccount": _named(account)}
        | ({"warnafter": issued_at + seconds} if is_of_pod else {}),
        "nbf": issued_at,
        "sub": f"system:serviceaccount:{target.namespace}:{target.name}",
    }
    status = {"token": tokens.sign(claims), "expirationTimestamp": to_wire(now + timedelta(seconds=seconds))}
    metadata = {
        "name": target.name,
        "namespace": target.namespace,
        "uid": uid_of(account),
        "creationTimestamp": to_wire(now),
    }
    response = {"kind": KIND, "apiVersion": VERSION, "metadata": metadata, "spec": spec, "status": status}
    return object_response(response, code=201)


def _spec(token_request: Object) -> dict[str, Any]:
    spec = decode_struct(token_request, STRUCT, KIND).get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return {
        "audiences": spec.get("audiences") or [ISSUER],
        "expirationSeconds": DEFAULT_SECONDS if seconds is None else seconds,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    seconds, path = spec["expirationSeconds"], "spec.expirationSeconds"
    if seconds < MIN_SECONDS:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > MAX_SECONDS:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _bound(reference: Mapping[str, str] | None, account: Object, tokens: AccountTokens) -> dict[str, Any]:
    """Return the claims of the object that a token is bound to."""
    if reference is None:
        return {}
    version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    plural = _BOUND.get((version, kind))
    if plural is None:
        raise status_errors.bad_request(f"a token cannot be bound to a {version} {kind}")
    name = reference.get("name") or ""
    obj = tokens.find(plural, namespace_of(account), name)
    if obj is None:
        resource = tokens.scheme().find("", "v1", plural)
        raise status_errors.not_found(resource, name) if resource else status_errors.no_such_path()
    if plural == "pods" and obj["spec"].get("serviceAccountName") != name_of(account):
        raise status_errors.bad_request(f"pod {name} does not use service account {name_of(account)}")
    uid = reference.get("uid")
    if uid and uid != uid_of(obj):
        reason = f"the uid in the reference is {uid}, that of the object is {uid_of(obj)}"
        raise status_errors.conflict(kind, name, reason)
    node = obj["spec"].get("nodeName") if plural == "pods" else None
    return {kind.lower(): _named(obj), **({"node": {"name": node}} if node else {})}


def _named(obj: Object) -> dict[str, str]:
    return {"name": name_of(obj), "uid": uid_of(obj)}
