"""Patterns: which of them the validator takes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from paceline.apiserver.crd.validator import compile_schema


def without_unsupported_patterns(schema: Any) -> Any:
    """Return a schema without the patterns that the validator does not support."""
    if isinstance(schema, list):
        return [without_unsupported_patterns(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    supported = {name: without_unsupported_patterns(inner) for name, inner in schema.items()}
    if isinstance(pattern := supported.get("pattern"), str) and not _is_supported(pattern):
        del supported["pattern"]
    return supported


@lru_cache(maxsize=1024)
def _is_supported(pattern: str) -> bool:
    try:
        compile_schema({"pattern": pattern})
    except ValueError:
        return False
    return True
