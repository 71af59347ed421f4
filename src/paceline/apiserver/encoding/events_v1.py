"""Events as events.k8s.io shows them: the stored objects of the core group, with other names for some fields."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson

from paceline.apimachinery.builtin.validation.event import new_event_faults
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apiserver.encoding.request_body import duplicate_fields
from paceline.apiserver.http_types import HttpRequest, HttpResponse, Stream, Write
from paceline.apiserver.paths import ServedFields, Target
from paceline.apiserver.slicing import offload
from paceline.apiserver.status_errors import Status, StatusError
from paceline.apiserver.warnings import attach_warnings
from paceline.effects import Executor

GROUP = "events.k8s.io"
_VERSION = f"{GROUP}/v1"
_IN_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_HERE = {there: here for here, there in _IN_CORE.items()}
_WRITTEN = ServedFields(api_version=_VERSION, names={f"f:{there}": f"f:{here}" for there, here in _HERE.items()})
# Always written in the core group, be it empty, but not here.
_OMITTED = ("reportingController", "reportingInstance")

Verb = Callable[[HttpRequest, Target], Awaitable[HttpResponse | Stream]]


async def call_core(
    verb: Verb, request: HttpRequest, target: Target, core: Resource, *, blocking: Executor
) -> HttpResponse | Stream:
    """Answer a request about events of this group with the events of the core group."""
    body = await offload(blocking, len(request.body), lambda: _body(request))
    inside = replace(request, body=body, query=_query(request))
    meant = replace(target, resource=core)
    if request.method == "POST":
        meant = replace(meant, resource=_strict(core), written=_WRITTEN)
    twice = await offload(blocking, len(request.body), lambda: _twice(request))
    try:
        with attach_warnings(twice):
            answered = await verb(inside, meant)
    except StatusError as error:
        raise StatusError(_said(error.status), warnings=error.warnings) from error
    if isinstance(answered, HttpResponse):
        warnings = (*twice, *answered.warnings)
        size = len(answered.body) + answered.rest_bytes
        shown = await offload(blocking, size, lambda: _shown(answered.whole))
        return replace(answered, body=shown, rest=(), rest_bytes=0, warnings=warnings)
    return EventsV1Stream(content_type=answered.content_type, stream=answered)


@cache
def _strict(core: Resource) -> Resource:
    """Give the kind of the core group with the rules that new events have to keep here."""
    return replace(core, check=new_event_faults)


def _said(status: Status) -> Status:
    """Let a refusal speak of the events of this group."""
    details = status.details
    if not details or details.get("kind") != "events":
        return status
    message = status.message.replace('events "', f'events.{GROUP} "', 1)
    first = {"name": details["name"]} if "name" in details else {}
    return replace(status, message=message, details={**first, "group": GROUP, **details})


@dataclass(slots=True)
class EventsV1Stream:
    """A watch of the core group's events, told with the names of this group."""

    content_type: str
    stream: Stream

    async def run(self, write: Write) -> None:
        """Pass every line on."""
        rest = b""

        async def translate(chunk: bytes) -> None:
            nonlocal rest
            *lines, rest = (rest + chunk).split(b"\n")
            await write(b"".join(_line(line) + b"\n" for line in lines))

        await self.stream.run(translate)


def _line(line: bytes) -> bytes:
    told = orjson.loads(line)
    return orjson.dumps({**told, "object": _translated(told["object"])})


def _shown(body: bytes) -> bytes:
    whole = orjson.loads(body)
    if whole.get("kind") == "EventList":
        items = [_named_here(each) for each in whole["items"]]
        return orjson.dumps({**whole, "apiVersion": _VERSION, "items": items})
    return orjson.dumps(_translated(whole))


def _translated(obj: Object) -> Object:
    is_event = obj.get("kind") == "Event" and obj.get("apiVersion") == "v1"
    return _named_here(obj) if is_event else obj


def _named_here(obj: Object) -> Object:
    made = {_HERE.get(name, name): value for name, value in obj.items()}
    for name in _OMITTED:
        if not made.get(name):
            made.pop(name, None)
    # The items of a list do not say what they are.
    return {**made, "apiVersion": _VERSION} if "apiVersion" in made else made


def _body(request: HttpRequest) -> bytes:
    """Give a body with the names of the core group; what cannot be read is refused where bodies are read."""
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return request.body
    match value:
        case dict():
            return orjson.dumps(_renamed(value))
        case list():
            return orjson.dumps([_moved(each) for each in value])
        case _:
            return request.body


def _twice(request: HttpRequest) -> tuple[str, ...]:
    """Say which fields stand in a body twice: renamed, each would stand there once."""
    if request.method not in {"POST", "PUT"} or request.query.get("fieldValidation") == "Ignore":
        return ()
    try:
        paths = duplicate_fields(request.body, orjson.loads(request.body))
    except orjson.JSONDecodeError:
        return ()
    return tuple(f'duplicate field "{path}"' for path in paths)


def _renamed(obj: Mapping[str, Any]) -> Object:
    renamed = {_IN_CORE.get(name, name): value for name, value in obj.items()}
    if renamed.get("apiVersion") == _VERSION and renamed.get("kind") != "DeleteOptions":
        renamed["apiVersion"] = "v1"
    return renamed


def _moved(operation: Any) -> Any:
    """Let one operation of a JSON patch work on the field of the core group."""
    if not isinstance(operation, dict):
        return operation
    moved = dict(operation)
    for way in ("path", "from"):
        if isinstance(moved.get(way), str):
            first, slash, rest = moved[way].removeprefix("/").partition("/")
            moved[way] = f"/{_IN_CORE.get(first, first)}{slash}{rest}"
    return moved


def _query(request: HttpRequest) -> Mapping[str, str]:
    selector = request.query.get("fieldSelector", "")
    if not selector:
        return request.query
    for here, there in (("regarding.", "involvedObject."), ("reportingController", "reportingComponent")):
        selector = selector.replace(here, there)
    return {**request.query, "fieldSelector": selector}
