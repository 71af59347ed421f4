"""events.k8s.io/v1: the stored core/v1 events with other field names."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson

from paceline.apimachinery.builtin.validation.builtin import events_v1_faults
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apiserver.encoding.request_body import duplicate_warnings
from paceline.apiserver.http_types import HttpRequest, HttpResponse, Stream, Write, attach_warnings
from paceline.apiserver.paths import ServedFields, Target
from paceline.apiserver.slicing import offload
from paceline.apiserver.status_errors import Status, StatusError
from paceline.effects import Executor

GROUP = "events.k8s.io"
_VERSION = f"{GROUP}/v1"
_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE = {core: ours for ours, core in _TO_CORE.items()}
_SERVED_FIELDS = ServedFields(
    api_version=_VERSION, names={f"f:{core}": f"f:{ours}" for core, ours in _FROM_CORE.items()}
)
# Kubernetes omits these if empty, but core/v1 always has them.
_OMITTED = ("reportingController", "reportingInstance")

Verb = Callable[[HttpRequest, Target], Awaitable[HttpResponse | Stream]]


async def call_core(
    verb: Verb, request: HttpRequest, target: Target, core: Resource, *, blocking: Executor
) -> HttpResponse | Stream:
    """Handle a request for events.k8s.io/v1 with the verb of core/v1."""
    body = await offload(blocking, len(request.body), lambda: _body(request))
    core_request = replace(request, body=body, query=_query(request))
    core_target = replace(target, resource=core)
    if request.method == "POST":
        core_target = replace(core_target, resource=_strict(core), written=_SERVED_FIELDS)
    duplicates = await offload(blocking, len(request.body), lambda: _duplicate_warnings(request))
    try:
        with attach_warnings(duplicates):
            response = await verb(core_request, core_target)
    except StatusError as error:
        raise StatusError(_converted_status(error.status), warnings=error.warnings) from error
    if isinstance(response, HttpResponse):
        warnings = (*duplicates, *response.warnings)
        size = len(response.body) + response.tail_bytes
        body = await offload(blocking, size, lambda: _converted_body(response.full_body))
        return replace(response, body=body, tail=(), tail_bytes=0, warnings=warnings)
    return EventsV1Stream(content_type=response.content_type, stream=response)


@cache
def _strict(core: Resource) -> Resource:
    """Return the core resource with the validation of events.k8s.io/v1."""
    return replace(core, check=events_v1_faults)


def _converted_status(status: Status) -> Status:
    details = status.details
    if not details or details.get("kind") != "events":
        return status
    message = status.message.replace('events "', f'events.{GROUP} "', 1)
    first = {"name": details["name"]} if "name" in details else {}
    return replace(status, message=message, details={**first, "group": GROUP, **details})


@dataclass(slots=True)
class EventsV1Stream:
    content_type: str
    stream: Stream

    async def run(self, write: Write) -> None:
        incomplete = b""

        async def translate(chunk: bytes) -> None:
            nonlocal incomplete
            *lines, incomplete = (incomplete + chunk).split(b"\n")
            await write(b"".join(_line(line) + b"\n" for line in lines))

        await self.stream.run(translate)


def _line(line: bytes) -> bytes:
    event = orjson.loads(line)
    return orjson.dumps({**event, "object": _converted(event["object"])})


def _converted_body(body: bytes) -> bytes:
    obj = orjson.loads(body)
    if obj.get("kind") == "EventList":
        items = [_from_core(item) for item in obj["items"]]
        return orjson.dumps({**obj, "apiVersion": _VERSION, "items": items})
    return orjson.dumps(_converted(obj))


def _converted(obj: Object) -> Object:
    is_event = obj.get("kind") == "Event" and obj.get("apiVersion") == "v1"
    return _from_core(obj) if is_event else obj


def _from_core(obj: Object) -> Object:
    converted = {_FROM_CORE.get(name, name): value for name, value in obj.items()}
    for name in _OMITTED:
        if not converted.get(name):
            converted.pop(name, None)
    # Items of a list have no apiVersion.
    return {**converted, "apiVersion": _VERSION} if "apiVersion" in converted else converted


def _body(request: HttpRequest) -> bytes:
    """Return the body with core/v1 field names; malformed bodies are rejected later."""
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return request.body
    match value:
        case dict():
            return orjson.dumps(_to_core(value))
        case list():
            return orjson.dumps([_converted_operation(operation) for operation in value])
        case _:
            return request.body


def _duplicate_warnings(request: HttpRequest) -> tuple[str, ...]:
    """Return a warning for each duplicate field; after the conversion they would be lost."""
    if request.method not in {"POST", "PUT"} or request.query.get("fieldValidation") == "Ignore":
        return ()
    try:
        return duplicate_warnings(request.body, orjson.loads(request.body))
    except orjson.JSONDecodeError:
        return ()


def _to_core(obj: Mapping[str, Any]) -> Object:
    renamed = {_TO_CORE.get(name, name): value for name, value in obj.items()}
    if renamed.get("apiVersion") == _VERSION and renamed.get("kind") != "DeleteOptions":
        renamed["apiVersion"] = "v1"
    return renamed


def _converted_operation(operation: Any) -> Any:
    """Convert the paths of a JSON patch operation."""
    if not isinstance(operation, dict):
        return operation
    moved = dict(operation)
    for field in ("path", "from"):
        if isinstance(moved.get(field), str):
            first, slash, tail = moved[field].removeprefix("/").partition("/")
            moved[field] = f"/{_TO_CORE.get(first, first)}{slash}{tail}"
    return moved


def _query(request: HttpRequest) -> Mapping[str, str]:
    selector = request.query.get("fieldSelector", "")
    if not selector:
        return request.query
    for ours, core in (("regarding.", "involvedObject."), ("reportingController", "reportingComponent")):
        selector = selector.replace(ours, core)
    return {**request.query, "fieldSelector": selector}
