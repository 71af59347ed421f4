"""Patterns: which of them the validator takes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from paceline.apiserver.crd.validator import compiled


def usable(schema: Any) -> Any:
    """Give a schema without the patterns that the validator does not take: other readers know more signs than it."""
    if isinstance(schema, list):
        return [usable(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    said = {name: usable(each) for name, each in schema.items()}
    if isinstance(pattern := said.get("pattern"), str) and not _is_taken(pattern):
        del said["pattern"]
    return said


@lru_cache(maxsize=1024)
def _is_taken(pattern: str) -> bool:
    try:
        compiled({"pattern": pattern})
    except ValueError:
        return False
    return True
