"""`serviceaccounts/NAME/token`: ask for a token of an account, bound to a pod if so said; nothing is stored."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import status_errors
from paceline.apiserver.auth.service_account_tokens import ISSUER, PRIVATE, AccountTokens
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.request_body import read_object, read_options
from paceline.apiserver.http_types import HttpRequest, HttpResponse, object_response
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import offload
from paceline.errors import BadRequest, Fault

KIND, GROUP, VERSION = "TokenRequest", "authentication.k8s.io", "authentication.k8s.io/v1"
STRUCT = "authentication.v1.TokenRequest"
USUAL_SECONDS, LEAST_SECONDS, MOST_SECONDS = 3600, 600, 2**32
# What a pod's token is asked for with; one that is read only once is good for longer, as long as its pod is there.
POD_SECONDS, POD_LASTS_SECONDS = 3607, 365 * 24 * 3600
_BOUND = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets"}


async def request_token(request: HttpRequest, target: Target, server: Server) -> HttpResponse:
    """Give a token to whoever may ask for one."""
    tokens = server.tokens
    if tokens is None:
        raise status_errors.no_such_path()
    read_options(request, "CreateOptions")
    asked = await offload(server.blocking, len(request.body), partial(read_object, request, KIND))
    _check_head(asked)
    spec = _spec(asked)
    _refuse(_faults(spec), name="")
    account = tokens.find("serviceaccounts", target.namespace, target.name)
    if account is None:
        raise status_errors.not_found(target.resource, target.name)
    if (said := (asked.get("metadata") or {}).get("name")) and said != target.name:
        hint = "must match the service account name if specified"
        _refuse((invalid("metadata.name", said, hint),), name=target.name)
    bound = _bound(spec.get("boundObjectRef"), account, tokens)
    now, seconds = server.clock.now(), spec["expirationSeconds"]
    is_of_pod = "pod" in bound and seconds == POD_SECONDS
    began = int(now.timestamp())
    claims = {
        "aud": spec["audiences"],
        "exp": began + (POD_LASTS_SECONDS if is_of_pod else seconds),
        "iat": began,
        "iss": ISSUER,
        "jti": server.ids.uid(),
        PRIVATE: {"namespace": target.namespace, **bound, "serviceaccount": _named(account)}
        | ({"warnafter": began + seconds} if is_of_pod else {}),
        "nbf": began,
        "sub": f"system:serviceaccount:{target.namespace}:{target.name}",
    }
    given = {"token": tokens.sign(claims), "expirationTimestamp": to_wire(now + timedelta(seconds=seconds))}
    metadata = {
        "name": target.name,
        "namespace": target.namespace,
        "uid": uid_of(account),
        "creationTimestamp": to_wire(now),
    }
    told = {"kind": KIND, "apiVersion": VERSION, "metadata": metadata, "spec": spec, "status": given}
    return object_response(told, code=201)


def _check_head(asked: Object) -> None:
    version, kind = asked.get("apiVersion") or VERSION, asked.get("kind") or KIND
    if (version, kind) != (VERSION, KIND):
        short = str(version).rpartition("/")[2]
        why = f"converting ({short}.{kind}) to (authentication.{KIND}): unknown conversion"
        raise status_errors.bad_request(f'{kind} in version "{short}" cannot be handled as a {KIND}: {why}')


def _spec(asked: Object) -> dict[str, Any]:
    """Read what is asked for, and fill in what is not said."""
    try:
        spec = read_struct(asked, STRUCT).get("spec") or {}
    except BadRequest as error:
        raise status_errors.bad_request(f'{KIND} in version "v1" cannot be handled as a {KIND}: {error}') from error
    seconds = spec.get("expirationSeconds")
    return {
        "audiences": spec.get("audiences") or [ISSUER],
        "expirationSeconds": USUAL_SECONDS if seconds is None else seconds,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    seconds, path = spec["expirationSeconds"], "spec.expirationSeconds"
    if seconds < LEAST_SECONDS:
        yield invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > MOST_SECONDS:
        yield invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _refuse(faults: Iterator[Fault] | tuple[Fault, ...], *, name: str) -> None:
    if found := tuple(faults):
        raise status_errors.invalid(KIND, name, found, group=GROUP)


def _bound(reference: Mapping[str, str] | None, account: Object, tokens: AccountTokens) -> dict[str, Any]:
    """Find what a token is to be bound to, and say it as the token does."""
    if reference is None:
        return {}
    version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    plural = _BOUND.get((version, kind))
    if plural is None:
        group, _, short = version.rpartition("/")
        raise status_errors.bad_request(f"cannot bind token to object of type {group}/{short}, Kind={kind}")
    name = reference.get("name") or ""
    found = tokens.find(plural, namespace_of(account), name)
    if found is None:
        resource = tokens.scheme().find("", "v1", plural)
        raise status_errors.not_found(resource, name) if resource else status_errors.no_such_path()
    if plural == "pods" and found["spec"].get("serviceAccountName") != name_of(account):
        said = f'cannot bind token for serviceaccount "{name_of(account)}" to pod running with different'
        raise status_errors.bad_request(f"{said} serviceaccount name.")
    uid = reference.get("uid")
    if uid and uid != uid_of(found):
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record"
        raise status_errors.conflict(kind, name, f"{why}. The object might have been deleted and then recreated")
    node = found["spec"].get("nodeName") if plural == "pods" else None
    return {kind.lower(): _named(found), **({"node": {"name": node}} if node else {})}


def _named(obj: Object) -> dict[str, str]:
    return {"name": name_of(obj), "uid": uid_of(obj)}
