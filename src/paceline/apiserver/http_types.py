"""One request and its answer, between ASGI and the handlers."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, no_warnings
from paceline.apiserver.status_errors import Status, StatusError

JSON = "application/json"
YAML = "application/yaml"
PLAIN = "text/plain; charset=utf-8"
TOO_MANY = 429

# ASGI's own three.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Write = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The service account of a caller, and what its token says beside."""

    namespace: str
    name: str
    uid: str
    may_write: bool = False
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks; one that is no account may do all."""

    name: str
    account: Account | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request that has passed the gate, its body read."""

    method: str
    path: str
    # Parts of the path, decoded one by one, so that an encoded slash stays inside its part.
    parts: tuple[str, ...]
    query: Mapping[str, str]
    # Names in lower case.
    headers: Mapping[str, str]
    caller: Caller
    body: bytes = b""

    def flag(self, name: str) -> bool:
        """Tell whether a query parameter says yes: being there is enough, as long as it is not said to be false."""
        # As Kubernetes reads them: whatever does not say no says yes.
        return name in self.query and self.query[name].lower() not in {"0", "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A whole answer."""

    code: int = 200
    body: bytes
    # What follows the body, made when it is its turn to be sent, and how many bytes that is.
    rest: Iterable[bytes] = ()
    rest_bytes: int = 0
    content_type: str = JSON
    warnings: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> bytes:
        """All that is answered, as one."""
        return b"".join((self.body, *self.rest))


class ClientStalled(Exception):
    """The client does not read what it asked for: the connection has to end without another word."""


class Stream(Protocol):
    """An answer that grows."""

    content_type: str

    async def run(self, write: Write) -> None:
        """Write until there is no more; the first write, be it empty, sends the head of the answer.

        A Refusal or PacelineError before that is answered as a Status. Cancelled when the client is gone.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedResponse:
    """An answer that somebody else gives, straight to the client."""

    run: Callable[[Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write asks for beside its body."""

    dry_run: bool = False
    # Strict refuses unknown fields, Warn drops them and says so, Ignore drops them.
    validation: str = "Warn"
    # Whoever applies something takes fields from others.
    force: bool = False


def object_response(obj: Object, *, code: int = 200, warnings: tuple[str, ...] = ()) -> HttpResponse:
    """Answer with an object."""
    return HttpResponse(code=code, body=orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE), warnings=warnings)


def status_response(status: Status, *, warnings: tuple[str, ...] = ()) -> HttpResponse:
    """Answer with a Status."""
    if status.plain:
        return HttpResponse(code=status.code, body=status.plain.encode(), content_type=PLAIN, warnings=warnings)
    body = orjson.dumps(status.to_wire(), option=orjson.OPT_APPEND_NEWLINE)
    seconds = (status.details or {}).get("retryAfterSeconds") if status.code == TOO_MANY else None
    headers = () if seconds is None else (("retry-after", str(seconds)),)
    return HttpResponse(code=status.code, body=body, warnings=warnings, headers=headers)


# Kinds that Kubernetes wants to be rid of.
_DEPRECATED = {("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}


def deprecation_warnings(resource: Resource) -> tuple[str, ...]:
    """Say that a kind is on its way out, whatever was asked about it."""
    said = _DEPRECATED.get((resource.group, resource.kind)) if resource.is_builtin else None
    return () if said is None else (said,)


@contextmanager
def attach_warnings(warnings: Sequence[str]) -> Iterator[None]:
    """Let a refusal say as well what there was to say before it; more may be added to it meanwhile."""
    try:
        yield
    except StatusError as error:
        if not warnings:
            raise
        raise StatusError(error.status, warnings=(*warnings, *error.warnings)) from error


def with_deprecation(answered: HttpResponse | Stream, resource: Resource) -> HttpResponse | Stream:
    """Add that a kind is on its way out."""
    said = deprecation_warnings(resource)
    if not said or not isinstance(answered, HttpResponse):
        return answered
    return replace(answered, warnings=(*said, *answered.warnings))


def with_warnings(answered: HttpResponse | Stream, resource: Resource) -> HttpResponse | Stream:
    """Add what the kind has to say about an object that was written."""
    if resource.warn is no_warnings or not isinstance(answered, HttpResponse):
        return answered
    obj = orjson.loads(answered.body)
    # Whoever asked for a table or the metadata alone has not been shown what the words would be about.
    if obj.get("kind") != resource.kind:
        return answered
    return replace(answered, warnings=(*answered.warnings, *resource.warn(obj)))
