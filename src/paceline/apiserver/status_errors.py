"""Failure responses: Kubernetes' Status objects, raised as StatusError."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.field_errors import FieldFault, Problem
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.errors import Fault

_MAX_SHOWN = 500

_PROBLEM_TEXTS = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    code: int
    reason: str
    message: str
    details: Object | None = None
    # Only an expired list has metadata: the token that continues it.
    metadata: Object = field(default_factory=dict)
    # A text/plain body instead of the object, for paths where Kubernetes sends one.
    plain: str = ""

    def to_wire(self) -> Object:
        wire: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            wire["details"] = self.details
        return {**wire, "code": self.code}


class StatusError(Exception):
    """An error that the dispatcher answers with its Status."""

    def __init__(self, status: Status, *, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(status.message)
        self.status = status
        # Warnings that were collected before the error.
        self.warnings = warnings


def _error(code: int, reason: str, message: str, details: Object | None = None) -> StatusError:
    return StatusError(Status(code=code, reason=reason, message=message, details=details))


def bad_request(message: str) -> StatusError:
    return _error(400, "BadRequest", message)


def malformed_url() -> StatusError:
    return StatusError(Status(code=400, reason="BadRequest", message="Bad Request", plain="400 Bad Request"))


def unauthorized() -> StatusError:
    return _error(401, "Unauthorized", "Unauthorized")


def access_denied(message: str) -> StatusError:
    """Return Forbidden for a request that is not about an object."""
    return _error(403, "Forbidden", message, {})


def forbidden(resource: Resource, name: str, reason: str, *, causes: Iterable[Object] = ()) -> StatusError:
    details = _details(resource.plural, name, resource.group)
    if listed := list(causes):
        details["causes"] = listed
    qualified = _qualified(resource.plural, resource.group)
    subject = f'{qualified} "{name}"' if name else qualified
    return _error(403, "Forbidden", f"{subject} is forbidden: {reason}", details)


def no_such_path() -> StatusError:
    return _error(404, "NotFound", "the server could not find the requested resource", {})


def page_not_found() -> StatusError:
    """Return NotFound for a path below no known group; like Kubernetes, as text."""
    message = "404 page not found"
    return StatusError(Status(code=404, reason="NotFound", message=message, plain=f"{message}\n"))


def not_found(resource: Resource, name: str) -> StatusError:
    return not_found_kind(resource.plural, name, resource.group)


def not_found_kind(kind: str, name: str, group: str = "") -> StatusError:
    return _error(404, "NotFound", f'{_qualified(kind, group)} "{name}" not found', _details(kind, name, group))


def method_not_allowed() -> StatusError:
    return _error(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(offered: str) -> StatusError:
    return _error(406, "NotAcceptable", f"the Accept header allows none of the supported types: {offered}", {})


def request_timeout(message: str) -> StatusError:
    return _error(408, "Timeout", message)


def already_exists(resource: Resource, name: str) -> StatusError:
    message = f'{_qualified(resource.plural, resource.group)} "{name}" already exists'
    return _error(409, "AlreadyExists", message, _details(resource.plural, name, resource.group))


def conflict(kind: str, name: str, reason: str, *, group: str = "") -> StatusError:
    """Return Conflict for an object that is not in the state that the caller expects."""
    message = f'Operation cannot be fulfilled on {_qualified(kind, group)} "{name}": {reason}'
    return _error(409, "Conflict", message, _details(kind, name, group))


def apply_conflict(message: str, causes: Iterable[Object]) -> StatusError:
    return _error(409, "Conflict", message, {"causes": list(causes)})


def object_modified(resource: Resource, name: str) -> StatusError:
    """Return Conflict for an object that has changed since the caller read it."""
    reason = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource.plural, name, reason, group=resource.group)


def expired(message: str, *, continue_token: str = "") -> StatusError:
    metadata = {"continue": continue_token} if continue_token else {}
    return StatusError(Status(code=410, reason="Expired", message=message, metadata=metadata))


def too_large(message: str) -> StatusError:
    return _error(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: str) -> StatusError:
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return _error(415, "UnsupportedMediaType", message)


def invalid(kind: str, name: str, faults: Iterable[Fault], *, group: str = "") -> StatusError:
    causes = [_cause(fault) for fault in faults]
    lines = list(dict.fromkeys(f"{cause['field']}: {cause['message']}" for cause in causes))
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = _details(kind, name, group) | {"causes": causes}
    return _error(422, "Invalid", f'{_qualified(kind, group)} "{name}" is invalid: {listed}', details)


def invalid_patch(reason: str) -> StatusError:
    """Return Invalid for a patch whose result is not an object of its kind."""
    cause = {"reason": Problem.INVALID.value, "message": f"Invalid value: {reason}", "field": "patch"}
    return _error(422, "Invalid", f"patch: {cause['message']}", {"causes": [cause]})


def too_many(message: str, seconds: int) -> StatusError:
    return _error(429, "TooManyRequests", message, {"retryAfterSeconds": seconds})


def internal_error() -> Status:
    message = "this is a bug in Paceline: the request could not be answered; the server's log says more"
    return Status(code=500, reason="InternalError", message=message, details={"causes": [{"message": message}]})


def service_unavailable(message: str) -> StatusError:
    return _error(503, "ServiceUnavailable", message)


def revision_too_large(requested: int, current: int) -> StatusError:
    """Return Timeout, as Kubernetes does, for a resourceVersion in the future."""
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return _error(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _cause(fault: Fault) -> Object:
    if isinstance(fault, FieldFault):
        problem = fault.problem
    else:
        problem = Problem.REQUIRED if fault.value is None else Problem.INVALID
    parts = [_PROBLEM_TEXTS[problem]]
    if problem not in _WITHOUT_VALUE:
        parts.append(_shown(fault.value))
    if fault.hint and problem is not Problem.DUPLICATE:
        parts.append(fault.hint)
    return {"reason": problem.value, "message": ": ".join(parts), "field": fault.path}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    if len(text) <= _MAX_SHOWN:
        return text
    # A shortened value is still JSON, so that clients can tell where it ends.
    return json.dumps(f"{str(value)[:_MAX_SHOWN]}…", ensure_ascii=False)


def _qualified(kind: str, group: str) -> str:
    return f"{kind}.{group}" if group else kind


def _details(kind: str, name: str, group: str) -> Object:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}
