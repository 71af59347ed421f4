"""What the author of a good object is told beside the answer."""

from dataclasses import replace

import orjson

from paceline.api.exchange import Answer, Stream
from paceline.objects.scheme import Resource, no_warnings

# Kinds that Kubernetes wants to be rid of.
_DEPRECATED = {("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"}


def with_deprecation(answered: Answer | Stream, resource: Resource) -> Answer | Stream:
    """Add that a kind is on its way out, whatever was asked about it."""
    said = _DEPRECATED.get((resource.group, resource.kind)) if resource.is_builtin else None
    if said is None or not isinstance(answered, Answer):
        return answered
    return replace(answered, warnings=(*answered.warnings, said))


def with_warnings(answered: Answer | Stream, resource: Resource) -> Answer | Stream:
    """Add what the kind has to say about an object that was written."""
    if resource.warn is no_warnings or not isinstance(answered, Answer):
        return answered
    obj = orjson.loads(answered.body)
    # Whoever asked for a table or the metadata alone has not been shown what the words would be about.
    if obj.get("kind") != resource.kind:
        return answered
    return replace(answered, warnings=(*answered.warnings, *resource.warn(obj)))
