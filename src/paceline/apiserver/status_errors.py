"""Answers that are a no: the Status objects of Kubernetes, in its words."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.field_errors import FieldFault, Problem
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.errors import Fault, PacelineError

_MAX_SHOWN = 500

_WORDS = {
    Problem.INVALID: "Invalid value",
    Problem.REQUIRED: "Required value",
    Problem.UNSUPPORTED: "Unsupported value",
    Problem.DUPLICATE: "Duplicate value",
    Problem.NOT_FOUND: "Not found",
    Problem.FORBIDDEN: "Forbidden",
    Problem.TYPE: "Invalid value",
    Problem.TOO_LONG: "Too long",
    Problem.TOO_MANY: "Too many",
}
_WITHOUT_VALUE = (Problem.REQUIRED, Problem.FORBIDDEN, Problem.TOO_LONG)
_WITHOUT_HINT = (Problem.DUPLICATE,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A Status object that says no."""

    code: int
    reason: str
    message: str
    details: Object | None = None
    # Only a list that expired has something here: the token to go on with.
    metadata: Object = field(default_factory=dict)
    # Said instead of the object, where Kubernetes itself has no object to say.
    plain: str = ""

    def to_wire(self) -> Object:
        """Write it as Kubernetes does."""
        wire: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            wire["reason"] = self.reason
        if self.details is not None:
            wire["details"] = self.details
        return {**wire, "code": self.code}


class StatusError(Exception):
    """Raised anywhere below the dispatcher; the dispatcher answers with its Status."""

    def __init__(self, status: Status, *, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(status.message)
        self.status = status
        # What was said about the request before it was refused.
        self.warnings = warnings


def bad_request(message: str) -> StatusError:
    """Refuse what cannot be read."""
    return StatusError(Status(code=400, reason="BadRequest", message=message))


def unfit(message: str) -> StatusError:
    """Refuse what Kubernetes fails over: its words, but a code that says whose fault it is."""
    return StatusError(Status(code=400, reason="", message=message))


def unauthorized() -> StatusError:
    """Refuse whoever did not say who they are."""
    return StatusError(Status(code=401, reason="Unauthorized", message="Unauthorized"))


def access_denied(message: str) -> StatusError:
    """Refuse a request at the gate, whoever sends it."""
    return StatusError(Status(code=403, reason="Forbidden", message=message, details={}))


def forbidden(resource: Resource, name: str, why: str, *, causes: Iterable[Object] = ()) -> StatusError:
    """Refuse what nobody may do to an object."""
    details = _details(resource, name)
    if listed := list(causes):
        details["causes"] = listed
    message = f'{_plural(resource)} "{name}" is forbidden: {why}'
    return StatusError(Status(code=403, reason="Forbidden", message=message, details=details))


def not_allowed(resource: Resource, name: str, why: str) -> StatusError:
    """Refuse what this caller may not do."""
    about = f'{_plural(resource)} "{name}"' if name else _plural(resource)
    details = {key: value for key, value in _details(resource, name).items() if value}
    message = f"{about} is forbidden: {why}"
    return StatusError(Status(code=403, reason="Forbidden", message=message, details=details))


def no_such_path() -> StatusError:
    """Refuse a path that leads nowhere."""
    message = "the server could not find the requested resource"
    return StatusError(Status(code=404, reason="NotFound", message=message, details={}))


def page_not_found() -> StatusError:
    """Refuse a path below which there is nothing at all, as a web server does."""
    message = "404 page not found"
    return StatusError(Status(code=404, reason="NotFound", message=message, plain=f"{message}\n"))


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else f"\\x{ord(letter):02x}"


def not_found(resource: Resource, name: str) -> StatusError:
    """Refuse what is about an object that is not there."""
    # A name that can be none is shown as Go quotes it.
    shown = name if name.isprintable() else "".join(map(_visible, name))
    message = f'{_plural(resource)} "{shown}" not found'
    return StatusError(Status(code=404, reason="NotFound", message=message, details=_details(resource, name)))


def malformed_url() -> StatusError:
    """Refuse what is no request at all."""
    return StatusError(Status(code=400, reason="BadRequest", message="Bad Request", plain="400 Bad Request"))


def method_not_allowed() -> StatusError:
    """Refuse a verb that the path does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(Status(code=405, reason="MethodNotAllowed", message=message, details={}))


def not_acceptable(offered: str) -> StatusError:
    """Refuse to answer in a form that is not there."""
    message = f"406: Not Acceptable\n\nAvailable representations: {offered}"
    return StatusError(Status(code=406, reason="NotAcceptable", message=message, details={}))


def already_exists(resource: Resource, name: str) -> StatusError:
    """Refuse a name that is taken."""
    message = f'{_plural(resource)} "{name}" already exists'
    return StatusError(Status(code=409, reason="AlreadyExists", message=message, details=_details(resource, name)))


def conflict(what: str, name: str, why: str, *, group: str = "") -> StatusError:
    """Refuse a change to something that is not as the caller believes."""
    qualified = f"{what}.{group}" if group else what
    details = {"name": name, **({"group": group} if group else {}), "kind": what}
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return StatusError(Status(code=409, reason="Conflict", message=message, details=details))


def apply_conflict(message: str, causes: Iterable[Object]) -> StatusError:
    """Refuse to take fields from those who own them."""
    return StatusError(Status(code=409, reason="Conflict", message=message, details={"causes": list(causes)}))


def object_modified(resource: Resource, name: str) -> StatusError:
    """Refuse a change to an object that has changed since it was read."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource.plural, name, why, group=resource.group)


def expired(message: str, *, go_on: str = "") -> StatusError:
    """Refuse to go back further than history is kept."""
    metadata = {"continue": go_on} if go_on else {}
    return StatusError(Status(code=410, reason="Expired", message=message, metadata=metadata))


def service_unavailable(message: str) -> StatusError:
    """Refuse what cannot be done now."""
    return StatusError(Status(code=503, reason="ServiceUnavailable", message=message))


def too_large(message: str) -> StatusError:
    """Refuse more than is taken."""
    return StatusError(Status(code=413, reason="RequestEntityTooLarge", message=message))


def request_timeout(message: str) -> StatusError:
    """Refuse to wait any longer for a client."""
    return StatusError(Status(code=408, reason="Timeout", message=message))


def too_many(message: str, seconds: int) -> StatusError:
    """Refuse more than one caller's share, and say after how many seconds to try again."""
    details = {"retryAfterSeconds": seconds}
    return StatusError(Status(code=429, reason="TooManyRequests", message=message, details=details))


def unsupported_media_type(accepted: str) -> StatusError:
    """Refuse a body of a type that is not read."""
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(Status(code=415, reason="UnsupportedMediaType", message=message))


def unpatchable() -> StatusError:
    """Refuse a patch of a type that is not known."""
    message = "415: Unsupported Media Type"
    return StatusError(Status(code=415, reason="UnsupportedMediaType", message=message, details={}))


def revision_too_large(asked: int, current: int) -> StatusError:
    """Refuse a revision that has not happened yet."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return StatusError(Status(code=504, reason="Timeout", message=message, details=details))


def invalid(kind: str, name: str, faults: Iterable[Fault], *, group: str = "") -> StatusError:
    """Refuse an object that breaks rules, naming all of them."""
    causes = [_cause(fault) for fault in faults]
    said = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes))
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    qualified = f"{kind}.{group}" if group else kind
    said_of = {"name": name, "group": group, "kind": kind}
    details: Object = {part: text for part, text in said_of.items() if text}
    message = f'{qualified} "{name}" is invalid: {listed}'
    details["causes"] = causes
    return StatusError(Status(code=422, reason="Invalid", message=message, details=details))


def invalid_patch(shown: str, why: str) -> StatusError:
    """Refuse a patch because of what comes of it."""
    value = json.dumps(shown, ensure_ascii=False)
    cause = {"reason": Problem.INVALID.value, "message": f"Invalid value: {value}: {why}", "field": "patch"}
    message = f' "" is invalid: patch: {cause["message"]}'
    return StatusError(Status(code=422, reason="Invalid", message=message, details={"causes": [cause]}))


def internal_error() -> Status:
    """Say that the server itself is at fault."""
    message = "this is a bug in Paceline: the request could not be answered; the server's log says more"
    return Status(code=500, reason="InternalError", message=message, details={"causes": [{"message": message}]})


def status_of(error: PacelineError) -> Status:
    """Say an error of another part as a Status."""
    return Status(code=error.code, reason=error.reason, message=str(error))


def _cause(fault: Fault) -> Object:
    if isinstance(fault, FieldFault):
        problem = fault.problem
    else:
        problem = Problem.REQUIRED if fault.value is None else Problem.INVALID
    parts = [_WORDS[problem]]
    if problem not in _WITHOUT_VALUE:
        parts.append(_shown(fault.value))
    if fault.hint and problem not in _WITHOUT_HINT:
        parts.append(fault.hint)
    return {"reason": problem.value, "message": ": ".join(parts), "field": fault.path}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    if len(text) <= _MAX_SHOWN:
        return text
    # Still JSON, so that clients can tell where the value ends.
    return json.dumps(f"{str(value)[:_MAX_SHOWN]}…", ensure_ascii=False)


def _plural(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str) -> Object:
    return {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.plural}
