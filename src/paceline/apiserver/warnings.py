"""What the author of an object is told beside the answer, be that a no."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import orjson

from paceline.apimachinery.scheme import Resource, no_warnings
from paceline.apiserver.http_types import HttpResponse, Stream
from paceline.apiserver.status_errors import StatusError

# Kinds that Kubernetes wants to be rid of.
_DEPRECATED = {("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}


def deprecation_warnings(resource: Resource) -> tuple[str, ...]:
    """Say that a kind is on its way out, whatever was asked about it."""
    said = _DEPRECATED.get((resource.group, resource.kind)) if resource.is_builtin else None
    return () if said is None else (said,)


@contextmanager
def attach_warnings(warnings: Sequence[str]) -> Iterator[None]:
    """Let a refusal say as well what there was to say before it; more may be added to it meanwhile."""
    try:
        yield
    except StatusError as error:
        if not warnings:
            raise
        raise StatusError(error.status, warnings=(*warnings, *error.warnings)) from error


def with_deprecation(answered: HttpResponse | Stream, resource: Resource) -> HttpResponse | Stream:
    """Add that a kind is on its way out."""
    said = deprecation_warnings(resource)
    if not said or not isinstance(answered, HttpResponse):
        return answered
    return replace(answered, warnings=(*said, *answered.warnings))


def with_warnings(answered: HttpResponse | Stream, resource: Resource) -> HttpResponse | Stream:
    """Add what the kind has to say about an object that was written."""
    if resource.warn is no_warnings or not isinstance(answered, HttpResponse):
        return answered
    obj = orjson.loads(answered.body)
    # Whoever asked for a table or the metadata alone has not been shown what the words would be about.
    if obj.get("kind") != resource.kind:
        return answered
    return replace(answered, warnings=(*answered.warnings, *resource.warn(obj)))
