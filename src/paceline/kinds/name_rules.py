"""Rules of CRDs for the names of objects: the names of their pods and Services are derived from them."""

from paceline.apimachinery.name_validation import LABEL_RULE, MAX_LABEL, SERVICE_RULE
from paceline.kinds.cel import CelRule

# Length of the hash in the prefix of pod names.
HASH_LENGTH = 5
# Length of the attempt's suffix in a pod's name; there is no attempt after this one.
ATTEMPT_ROOM = len("-r999")
NAME = ".metadata.name"
_LABEL, _SERVICE = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^[a-z]([-a-z0-9]*[a-z0-9])?$"


def pod_name_room(longest: int) -> int:
    """Return how long a job's name may be if the longest suffix that a pod name adds has this length."""
    return MAX_LABEL - len("-") - HASH_LENGTH - longest - ATTEMPT_ROOM


def too_long(room: object) -> str:
    """Return the message about a job's name that is too long."""
    return f"must have at most {room} characters: its pod names are longer and limited to {MAX_LABEL}"


TOO_LONG = f"is too long: its pod names are longer and limited to {MAX_LABEL} characters"


def service_too_long(room: int) -> str:
    """Return the message about the name of an interactive workload that is too long."""
    return f"must have at most {room} characters: its pod and Service names are longer and limited to {MAX_LABEL}"


# Length of the longest replica name of a job with `replicaSpecs`, such as worker-10, as a CEL expression.
BY_REPLICAS = (
    "self.spec.replicaSpecs.map(r, size(r.type) + 1 + size(string(has(r.replicas) ? r.replicas - 1 : 0))).max()"
)
# The same of a job whose number of replicas may change.
BY_TYPES = "self.spec.replicaSpecs.map(r, size(r.type) + 2).max()"


def job_name_rules(longest: str) -> tuple[CelRule, ...]:
    """Return the rules for a job's name; `longest` is the length of its longest replica name, in CEL."""
    room = pod_name_room(len("-"))
    # To the API server, the length of a message with computed numbers is unbounded, so they are constant.
    message = too_long(room - int(longest)) if longest.isdecimal() else TOO_LONG
    return (
        CelRule(rule=f"self{NAME}.matches('{_SERVICE}')", message=SERVICE_RULE, field=NAME),
        CelRule(
            rule=f"size(self{NAME}) + {longest} <= {room}",
            message=message,
            field=NAME,
        ),
    )


def service_name_rules(short: str) -> tuple[CelRule, ...]:
    """Return the rules for the name of an interactive workload, whose Service's name starts with `short`."""
    room = service_room(short)
    return (
        CelRule(rule=f"self{NAME}.matches('{_LABEL}')", message=LABEL_RULE, field=NAME),
        CelRule(rule=f"size(self{NAME}) <= {room}", message=service_too_long(room), field=NAME),
    )


def service_room(short: str) -> int:
    """Return how long the name of an interactive workload may be."""
    return MAX_LABEL - max(len(f"{short}-"), len("-") + HASH_LENGTH + len("-0"))


def app_name_rules(longest: int) -> tuple[CelRule, ...]:
    """Return the rules for the name of an application."""
    return (
        CelRule(rule=f"size(self{NAME}) <= {longest}", message=f"must have at most {longest} characters", field=NAME),
        CelRule(rule=f"!self{NAME}.contains('.')", message=LABEL_RULE, field=NAME),
    )
