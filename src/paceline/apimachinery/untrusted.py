"""Decoding of untrusted objects: any exception becomes BadRequest, because it is not a bug of ours."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from paceline.errors import BadRequest

P = ParamSpec("P")
T = TypeVar("T")

# Exceptions that Python raises when a value does not have the expected shape.
MISREAD = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def untrusted(read: Callable[P, T]) -> Callable[P, T]:
    """Return a decoder that raises BadRequest where the wrapped one fails on malformed input."""

    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except MISREAD as error:
            reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise BadRequest(f"the object is malformed: {reason}") from error

    return guarded


def counts(wire: Mapping[str, Any] | None) -> dict[str, int]:
    """Return decoded numbers by name."""
    return {str(name): int(count) for name, count in (wire or {}).items()}
