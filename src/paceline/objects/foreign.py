"""What anybody may have written: reading it may fail in any way, which is no bug of ours and is said instead."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from paceline.errors import Malformed

P = ParamSpec("P")
T = TypeVar("T")

# What Python raises when something is not of the shape that it is taken for.
MISREAD = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def foreign(read: Callable[P, T]) -> Callable[P, T]:
    """Have a reader say Malformed where it meets something that it cannot be reading."""

    @wraps(read)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except MISREAD as error:
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise Malformed(f"somebody wrote what cannot be read: {why}") from error

    return guarded


def counts(wire: Mapping[str, Any] | None) -> dict[str, int]:
    """Read numbers by name."""
    return {str(name): int(count) for name, count in (wire or {}).items()}
