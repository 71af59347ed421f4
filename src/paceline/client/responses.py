"""How answers are read: objects, pages, events, warnings, and errors by who must act."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from paceline.apimachinery.meta import Object, ties_of
from paceline.client.interface import Change, Page, Select, WatchEvent
from paceline.client.requests import Response
from paceline.errors import (
    BY_REASON,
    BadRequest,
    Conflict,
    Expired,
    Fault,
    Forbidden,
    HostError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PacelineError,
    ServiceUnavailable,
    TooLarge,
    Unauthorized,
    UnsupportedMediaType,
)

Told = TypeVar("Told", Page, WatchEvent)

# Reasons that other servers give and ours has no word of its own for.
_ALSO_BY_REASON: dict[str, type[PacelineError]] = {
    "Gone": Expired,
    "NotAcceptable": UnsupportedMediaType,
    "ServerTimeout": ServiceUnavailable,
    "Timeout": ServiceUnavailable,
    "TooManyRequests": ServiceUnavailable,
}

_BY_CODE: dict[int, type[PacelineError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: UnsupportedMediaType,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: UnsupportedMediaType,
    429: ServiceUnavailable,
    501: MethodNotAllowed,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
}

# The longest pause that a server may ask for.
MAX_RETRY_AFTER = 60.0
_SHOWN_CHARS = 300
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_CAUSE = re.compile(r"(?P<problem>[A-Z][a-z]+(?: [a-z]+)*)(?:: (?P<rest>.*))?", re.DOTALL)


def read_object(response: Response) -> Object:
    """Return the object of an answer, or raise the error it carries."""
    if response.status >= 400:
        raise error_of(response)
    return _mapping(response.body)


def read_page(response: Response) -> Page:
    """Return one page of a list, or raise the error it carries."""
    obj = read_object(response)
    meta = obj.get("metadata") or {}
    # Lists of built-in kinds leave out what each object is; the whole says it once.
    api_version, kind = obj.get("apiVersion", ""), str(obj.get("kind", "")).removesuffix("List")
    items = tuple({"apiVersion": api_version, "kind": kind, **item} for item in obj.get("items") or ())
    return Page(
        items=items,
        revision=str(meta.get("resourceVersion") or ""),
        next=str(meta.get("continue") or ""),
    )


def read_event(line: bytes) -> WatchEvent:
    """Return one event of a watch; an ERROR event is raised as the error it carries."""
    event = _mapping(line)
    kind, obj = event.get("type"), event.get("object")
    if kind == "ERROR":
        raise error_of_status(obj if isinstance(obj, dict) else {}, 500)
    if not isinstance(kind, str) or kind not in Change.__members__ or not isinstance(obj, dict):
        raise HostError(f"the server sent a watch event that is none: {_shown(line)}")
    return WatchEvent(change=Change(kind), object=obj)


def trimmed(read: Told, select: Select) -> Told:
    """Return a page or an event with the selected part of its objects."""
    trim: Callable[[Object], Object] | None = ties_of if select.only_ties else select.trim
    if trim is None:
        return read
    if isinstance(read, Page):
        return replace(read, items=tuple(map(trim, read.items)))
    return replace(read, object=trim(read.object))


class Lines:
    """Cuts a stream of chunks into lines; what follows the last line break is kept for later."""

    def __init__(self) -> None:
        # Pieces, not one buffer: a long line that comes in many chunks is joined once.
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that `chunk` completes; empty ones are left out."""
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            self._pieces.append(line)
            joined = b"".join(self._pieces)
            self._pieces.clear()
            if joined.strip():
                yield joined
        if tail:
            self._pieces.append(tail)


def warnings_of(response: Response) -> tuple[str, ...]:
    """Return the texts of all Warning headers."""
    return tuple(
        re.sub(r"\\(.)", r"\1", text)
        for name, value in response.headers
        if name == "warning"
        for text in _WARNING.findall(value)
    )


def retry_after_of(response: Response) -> float:
    """Return after how many seconds the server wants to be asked again, at most a minute; 0 if it does not say so."""
    text = dict(response.headers).get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER) if text.isdecimal() else 0.0


def error_of(response: Response) -> PacelineError:
    """Turn a failed answer into the error that says who must act."""
    error = _error_of(response)
    if isinstance(error, ServiceUnavailable):
        error.retry_after = retry_after_of(response)
    return error


def _error_of(response: Response) -> PacelineError:
    try:
        status = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_of_status(status, response.status)
    text = _shown(response.body) or "nothing"
    return _by_code(response.status)(f"the server answered {response.status} and said: {text}")


def error_of_status(status: Mapping[str, Any], code: int) -> PacelineError:
    """Turn a Status object into the error that says who must act; the server's message is kept."""
    code = int(status.get("code") or code)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or f"the server answered {code} {reason}".rstrip())
    if reason == Invalid.reason or (code == Invalid.code and not reason):
        return _invalid(status, message)
    if code == HostError.code and not reason:
        # A kube-apiserver passes trouble of its database on like this; it goes away by itself.
        return ServiceUnavailable(message)
    kind = BY_REASON.get(reason) or _ALSO_BY_REASON.get(reason) or _by_code(code)
    return kind(message)


def _by_code(code: int) -> type[PacelineError]:
    error_type = _BY_CODE.get(code)
    if error_type is None:
        return HostError if code >= 500 else BadRequest
    return error_type


def _invalid(status: Mapping[str, Any], message: str) -> Invalid:
    details = status.get("details") or {}
    faults = tuple(_fault(cause) for cause in details.get("causes") or ())
    error = Invalid(faults, what=str(details.get("name") or ""))
    # The server knows better how to say it than a text made anew from the parts.
    error.args = (message,)
    return error


def _fault(cause: Mapping[str, Any]) -> Fault:
    """Take a cause apart: `Invalid value: 0: must be at least 1` holds the value as JSON."""
    path, message = str(cause.get("field") or ""), str(cause.get("message") or "")
    match = _CAUSE.fullmatch(message)
    if match is None:
        return Fault(path, None, message)
    problem, text = match["problem"], match["rest"] or ""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return Fault(path, None, text or problem.lower())
    if end == len(text):
        return Fault(path, value, problem.lower())
    if text.startswith(": ", end):
        return Fault(path, value, text[end + 2 :])
    return Fault(path, None, text)


def _mapping(body: bytes) -> Object:
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        message = f"the server's answer is not JSON ({error}): {_shown(body)}"
        raise HostError(message) from error
    if not isinstance(decoded, dict):
        raise HostError(f"the server's answer is not an object: {_shown(body)}")
    return decoded


def _shown(body: bytes) -> str:
    return body[:_SHOWN_CHARS].decode(errors="replace").strip()
