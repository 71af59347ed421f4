"""Field types that several kinds share, with their bounds and help; schemas and messages are derived from them."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

CORE = "#/components/schemas/io.k8s.api.core.v1."
POD_TEMPLATE = f"{CORE}PodTemplateSpec"
DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MAX_INT32 = 2**31 - 1
# Enough for any job, but few enough that one manifest cannot flood a cluster.
MAX_REPLICAS = 4096
MAX_DIGITS = 10


class Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Base of every object in a spec: camel case on the wire, and unknown fields are rejected."""


def about(text: str) -> Meta:
    """Return the help text of a field, as metadata of its type."""
    return Meta(description=text)


def any_shape(text: str) -> Meta:
    """Return the help text of an object whose fields the schema leaves open."""
    return Meta(description=text, extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})


# More types than any job has; bounded, so that an API server knows the cost of rules about them.
MAX_TYPES = 32
# Replicas by type: the type identifies an entry, also for server-side apply.
BY_TYPE = Meta(
    min_length=1,
    max_length=MAX_TYPES,
    extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
)

# An object that is kept as written; its fields are validated elsewhere.
Free = dict[str, Any]

Template = Annotated[
    Free,
    Meta(
        description="Pod template of a replica. Its restartPolicy is always Never: a restart creates a new pod.",
        extra_json_schema={"$ref": POD_TEMPLATE},
    ),
]
Resources = Annotated[
    Free,
    Meta(
        description="Resource requests and limits of the container: CPU, memory and devices.",
        extra_json_schema={"$ref": f"{CORE}ResourceRequirements"},
    ),
]
ReplicaType = Annotated[
    str,
    Meta(
        description="Name of this replica type, such as worker; it is part of the pod names.",
        pattern=DNS_LABEL,
        max_length=40,
    ),
]
Replicas = Annotated[int, Meta(description="Number of replicas of this type.", ge=1, le=MAX_REPLICAS)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT32)]


def whole_number(value: int | str) -> int | None:
    """Return a non-negative number that may be written as a string; None if it is not one, or far too large."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < MAX_DIGITS else None
