"""Answers in YAML, for whoever asks for it: people with curl; no client does."""

from dataclasses import replace

import orjson

from paceline.apimachinery.yaml_reader import to_text
from paceline.apiserver.http_types import JSON, YAML, Response, Scope

# Writing YAML is slow, and nobody reads more. JSON is YAML too, so a longer answer is as right without being written.
MAX_BYTES = 64 * 1024
_JSON_FIRST = frozenset({JSON, "*/*", "application/*"})


def wants_yaml(scope: Scope) -> bool:
    """Tell whether the first form that a request takes, of those that are offered, is YAML."""
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    if b"yaml" not in accept:
        return False
    for clause in accept.decode("latin-1").split(","):
        sort = clause.partition(";")[0].strip().lower()
        if sort == YAML:
            return True
        if sort in _JSON_FIRST:
            return False
    return False


def in_yaml(answered: Response) -> Response:
    """Give the same answer in YAML."""
    if answered.content_type != JSON:
        return answered
    if len(answered.body) + answered.rest_bytes > MAX_BYTES:
        return replace(answered, content_type=YAML)
    text = to_text(orjson.loads(answered.whole))
    return replace(answered, body=text.encode(), rest=(), rest_bytes=0, content_type=YAML)
