"""Errors, named after who has to act.

PacelineError
├─ Invalid        the author must change the object        422, never retried
├─ BadRequest      the caller sent what cannot be read      400, never retried
├─ Unauthorized        the caller has no valid token            401, never retried
├─ Forbidden      the caller may not do this               403, never retried
├─ NotFound        the object is gone; stop caring          404, never retried
├─ MethodNotAllowed     the server does not have this verb       405, never retried
├─ AlreadyExists         the name is taken                        409, never retried
├─ Conflict       nobody: read again, try again now        409, retried at once
├─ Expired        nobody: list again                       410, retried after a new list
├─ TooLarge       the author must send less                413, never retried
├─ UnsupportedMediaType     the caller must send another type        415, never retried
├─ ServiceUnavailable           nobody: try again after a pause          503, retried with back-off
└─ HostError    whoever runs the machine must act        500, said once, never retried

Anything else that escapes is a bug and ends the process.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One field that breaks a rule: where, what was there, and what would satisfy it."""

    path: str
    value: object
    hint: str

    def __str__(self) -> str:
        shown = repr(self.value)
        if len(shown) > MAX_VALUE:
            shown = shown[:MAX_VALUE] + "…"
        return f"{self.path}: {shown} is not allowed; {self.hint}"


MAX_VALUE = 200


class PacelineError(Exception):
    """Anything that a person or a caller can act on."""

    code: ClassVar[int]
    reason: ClassVar[str]
    retry: ClassVar[bool] = False


class Invalid(PacelineError):
    """An object breaks rules; every fault is named at once."""

    code, reason = 422, "Invalid"

    def __init__(self, faults: tuple[Fault, ...], *, what: str = "") -> None:
        said = "; ".join(str(fault) for fault in faults)
        super().__init__(f"{what}: {said}" if what else said)
        self.faults = faults
        self.what = what


class BadRequest(PacelineError):
    """The request cannot be read at all."""

    code, reason = 400, "BadRequest"


class Unauthorized(PacelineError):
    """The caller did not say who they are, or the token is not valid."""

    code, reason = 401, "Unauthorized"


class Forbidden(PacelineError):
    """The caller is known and may not do this."""

    code, reason = 403, "Forbidden"


class NotFound(PacelineError):
    """The object is not there (any more)."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(PacelineError):
    """The verb is not served on this path."""

    code, reason = 405, "MethodNotAllowed"


class AlreadyExists(PacelineError):
    """An object of this name is there already."""

    code, reason = 409, "AlreadyExists"


class Conflict(PacelineError):
    """The object has changed since it was read."""

    code, reason, retry = 409, "Conflict", True


class Expired(PacelineError):
    """The revision asked for is older than the history that is kept."""

    code, reason, retry = 410, "Expired", True


class TooLarge(PacelineError):
    """The body is larger than the server takes."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(PacelineError):
    """The content type is not one the server reads."""

    code, reason = 415, "UnsupportedMediaType"


class ServiceUnavailable(PacelineError):
    """The server cannot answer now; a pause helps, of so many seconds if it has said so."""

    code, reason, retry = 503, "ServiceUnavailable", True
    retry_after: float = 0.0


class HostError(PacelineError):
    """Something on the machine is missing or broken; the message says what would mend it."""

    code, reason = 500, "InternalError"


BY_REASON: dict[str, type[PacelineError]] = {
    error.reason: error
    for error in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        AlreadyExists,
        Conflict,
        Expired,
        TooLarge,
        UnsupportedMediaType,
        ServiceUnavailable,
        HostError,
    )
}
