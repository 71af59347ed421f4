"""The library that validates, loaded with the first schema: a cluster that nobody uses yet has no need of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

Formats = Mapping[str, Callable[[str], bool]]


class ValidationError(Protocol):
    """What an object breaks, and where."""

    instance: Any
    instance_path: Sequence[str | int]
    message: str
    kind: Any


class Validator(Protocol):
    """A schema, ready for objects."""

    def is_valid(self, instance: Any) -> bool:
        """Tell whether an object breaks nothing."""
        ...

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]:
        """Give everything that an object breaks."""
        ...


def compile_schema(schema: Any, formats: Formats | None = None) -> Validator:
    """Make the validator of a schema; ValueError says why there is none."""
    made: Validator = _draft7()(schema, validate_formats=True, formats=formats)
    return made


@cache
def _draft7() -> Callable[..., Validator]:
    made: Callable[..., Validator] = import_module("jsonschema_rs").Draft7Validator
    return made
