"""The library that validates, loaded with the first schema: a cluster that nobody uses yet has no need of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

Formats = Mapping[str, Callable[[str], bool]]


class ValidationError(Protocol):
    instance: Any
    instance_path: Sequence[str | int]
    message: str
    kind: Any


class Validator(Protocol):
    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]: ...


def compile_schema(schema: Any, formats: Formats | None = None) -> Validator:
    """Return the validator of a schema; raise ValueError if the schema is invalid."""
    validator: Validator = _draft7()(schema, validate_formats=True, formats=formats)
    return validator


@cache
def _draft7() -> Callable[..., Validator]:
    validator: Callable[..., Validator] = import_module("jsonschema_rs").Draft7Validator
    return validator
