"""Patterns: which of them the validator takes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from paceline.apiserver.crd.validator import compile_schema


def without_unsupported_patterns(schema: Any) -> Any:
    """Give a schema without the patterns that the validator does not take: other readers know more signs than it."""
    if isinstance(schema, list):
        return [without_unsupported_patterns(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    said = {name: without_unsupported_patterns(each) for name, each in schema.items()}
    if isinstance(pattern := said.get("pattern"), str) and not _is_taken(pattern):
        del said["pattern"]
    return said


@lru_cache(maxsize=1024)
def _is_taken(pattern: str) -> bool:
    try:
        compile_schema({"pattern": pattern})
    except ValueError:
        return False
    return True
