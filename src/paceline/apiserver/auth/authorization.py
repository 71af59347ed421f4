"""What a service account may do: look around in its own namespace, and write there if it is given that right.

Everybody else who holds a token may do all. Roles of Kubernetes come later, and will be asked here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.apiserver.http_types import Account
from paceline.apiserver.paths import Target

READ_VERBS = frozenset({"get", "list", "watch"})
# Questions about oneself.
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
# What accounts may see, by group; kinds that were defined here too. No secrets, and nothing of the machine.
READABLE: Mapping[str, frozenset[str]] = {
    "": frozenset({"configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "services"}),
    "coordination.k8s.io": frozenset({"leases"}),
    "discovery.k8s.io": frozenset({"endpointslices"}),
    "events.k8s.io": frozenset({"events"}),
    "metrics.k8s.io": frozenset({"pods"}),
}
# And what those may write that have the right to: whoever may make pods may have the machine's folders.
WRITABLE: Mapping[str, frozenset[str]] = {
    "": frozenset({"configmaps", "events", "persistentvolumeclaims", "pods", "services"}),
    "coordination.k8s.io": frozenset({"leases"}),
    "events.k8s.io": frozenset({"events"}),
}
_SEEN_PARTS = frozenset({"", "log", "scale", "status"})
_WRITTEN_PARTS = frozenset({"", "eviction", "scale"})
# What leads into a pod: to open it is to write, whatever the method.
_LINES = frozenset({"attach", "exec", "portforward", "proxy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzAttributes:
    """What somebody wants to do, in the words of Kubernetes."""

    verb: str
    group: str
    plural: str
    part: str = ""
    namespace: str = ""
    # Whether the kind is one that somebody defined.
    is_defined: bool = False


def attributes_of(verb: str, target: Target) -> AuthzAttributes:
    """Say what a request wants."""
    return AuthzAttributes(
        verb=verb,
        group=target.resource.group,
        plural=target.resource.plural,
        part=target.subresource,
        namespace=target.namespace,
        is_defined=not target.resource.is_builtin,
    )


def is_allowed(account: Account, wanted: AuthzAttributes) -> bool:
    """Tell whether an account may do this."""
    if wanted.group in _REVIEWS:
        return wanted.verb == "create"
    if wanted.namespace != account.namespace:
        return False
    if wanted.part in _LINES:
        return account.may_write and wanted.plural in {"pods", "services"}
    if wanted.verb in READ_VERBS:
        return wanted.part in _SEEN_PARTS and (wanted.is_defined or wanted.plural in _of(READABLE, wanted.group))
    is_known = wanted.is_defined or wanted.plural in _of(WRITABLE, wanted.group)
    return account.may_write and is_known and wanted.part in _WRITTEN_PARTS


def _of(table: Mapping[str, frozenset[str]], group: str) -> frozenset[str]:
    return table.get(group, frozenset())


def denial_message(name: str, wanted: AuthzAttributes) -> str:
    """Say what somebody may not do, as Kubernetes does."""
    plural = f"{wanted.plural}/{wanted.part}" if wanted.part else wanted.plural
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    return f'User "{name}" cannot {wanted.verb} resource "{plural}" in API group "{wanted.group}" {where}'
