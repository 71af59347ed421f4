"""JSON answers, and errors as Kubernetes' Status objects."""

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paceline.apimachinery.field_errors import FieldFault, Problem
from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest, Fault, Invalid, MethodNotAllowed, NotFound, PacelineError

JSON = "application/json"
# The errors that the framework raises.
_BY_CODE: dict[int, type[PacelineError]] = {404: NotFound, 405: MethodNotAllowed}


def json_response(content: object, code: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(orjson.dumps(content), status_code=code, media_type=JSON)


def error_response(error: PacelineError) -> Response:
    """Return the Status of an error as a response."""
    return json_response(status_of(error), error.code)


def status_of(error: PacelineError) -> Object:
    """Return an error as the API server would say it."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": error.reason,
        "code": error.code,
    }
    if isinstance(error, Invalid):
        status["details"] = {"causes": [_cause(fault) for fault in error.faults]}
    return status


def known_error_of(error: Exception) -> PacelineError | None:
    """Return the error to answer with; None for a bug. A group of known errors counts as its first one."""
    if isinstance(error, PacelineError):
        return error
    if isinstance(error, HTTPException):
        return _BY_CODE.get(error.status_code, BadRequest)(error.detail)
    if isinstance(error, ExceptionGroup):
        errors = [known_error_of(part) for part in error.exceptions]
        return errors[0] if None not in errors else None
    return None


def _cause(fault: Fault) -> Object:
    problem = fault.problem if isinstance(fault, FieldFault) else Problem.INVALID
    return {"reason": problem.value, "message": str(fault), "field": fault.path}


async def read_json(request: Request) -> Object:
    """Return the JSON object of a request's body; raise BadRequest if it has none."""
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body
