"""Bounds and help text, said once, on the field; schema, forms and messages are made from them."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

CORE = "#/components/schemas/io.k8s.api.core.v1."
POD_TEMPLATE = f"{CORE}PodTemplateSpec"
DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MAX_INT32 = 2**31 - 1
# Enough for any job, and few enough that no manifest can flood a cluster.
MAX_REPLICAS = 4096
MAX_DIGITS = 10


class Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How every part of a spec is written: camel case on the wire, and nothing that has no name here."""


def about(text: str) -> Meta:
    """Say what a field is for."""
    return Meta(description=text)


# An object that is kept as written and looked at by somebody else.
Free = dict[str, Any]

Template = Annotated[
    Free,
    Meta(
        description="The pod of one replica. Its restartPolicy is always Never: restarts make a new pod.",
        extra_json_schema={"$ref": POD_TEMPLATE},
    ),
]
Resources = Annotated[
    Free,
    Meta(
        description="CPU, memory and devices that the container asks for and may use.",
        extra_json_schema={"$ref": f"{CORE}ResourceRequirements"},
    ),
]
ReplicaType = Annotated[
    str,
    Meta(
        description="Name of this type of replica, such as worker; part of its pods' names.",
        pattern=DNS_LABEL,
        max_length=40,
    ),
]
Replicas = Annotated[int, Meta(description="How many replicas of this type there are.", ge=1, le=MAX_REPLICAS)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INT32)]


def whole_number(written: int | str) -> int | None:
    """Read a number that may stand in quotes; None when it is none, is negative, or is absurd."""
    text = str(written)
    return int(text) if text.isdecimal() and len(text) < MAX_DIGITS else None
