"""Authorization of service accounts: read in their own namespace, and write there with the write annotation.

Every other user may do everything. Roles (RBAC) are not supported yet; they belong here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.apiserver.http_types import Account
from paceline.apiserver.paths import Target

READ_VERBS = frozenset({"get", "list", "watch"})
# Groups of the reviews of one's own permissions.
_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
# Readable resources by group, besides custom resources. No secrets, and nothing about the node.
READABLE: Mapping[str, frozenset[str]] = {
    "": frozenset({"configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "services"}),
    "coordination.k8s.io": frozenset({"leases"}),
    "discovery.k8s.io": frozenset({"endpointslices"}),
    "events.k8s.io": frozenset({"events"}),
    "metrics.k8s.io": frozenset({"pods"}),
}
# Writable resources by group. An account that may create pods can mount host directories.
WRITABLE: Mapping[str, frozenset[str]] = {
    "": frozenset({"configmaps", "events", "persistentvolumeclaims", "pods", "services"}),
    "coordination.k8s.io": frozenset({"leases"}),
    "events.k8s.io": frozenset({"events"}),
}
_READABLE_SUBRESOURCES = frozenset({"", "log", "scale", "status"})
_WRITABLE_SUBRESOURCES = frozenset({"", "eviction", "scale"})
# Subresources that connect to a pod: using them requires write permission, whatever the method.
_CONNECT_SUBRESOURCES = frozenset({"attach", "exec", "portforward", "proxy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthzAttributes:
    """The attributes of a request, as in SubjectAccessReview."""

    verb: str
    group: str
    plural: str
    subresource: str = ""
    namespace: str = ""
    # Whether it is a custom resource.
    is_custom: bool = False


def attributes_of(verb: str, target: Target) -> AuthzAttributes:
    return AuthzAttributes(
        verb=verb,
        group=target.resource.group,
        plural=target.resource.plural,
        subresource=target.subresource,
        namespace=target.namespace,
        is_custom=not target.resource.is_builtin,
    )


def is_allowed(account: Account, attributes: AuthzAttributes) -> bool:
    if attributes.group in _REVIEWS:
        return attributes.verb == "create"
    if attributes.namespace != account.namespace:
        return False
    if attributes.subresource in _CONNECT_SUBRESOURCES:
        return account.may_write and attributes.plural in {"pods", "services"}
    if attributes.verb in READ_VERBS:
        return attributes.subresource in _READABLE_SUBRESOURCES and (
            attributes.is_custom or attributes.plural in READABLE.get(attributes.group, ())
        )
    is_writable = attributes.is_custom or attributes.plural in WRITABLE.get(attributes.group, ())
    return account.may_write and is_writable and attributes.subresource in _WRITABLE_SUBRESOURCES


def denial_message(name: str, attributes: AuthzAttributes) -> str:
    """Return Kubernetes' message for a denied request."""
    plural = f"{attributes.plural}/{attributes.subresource}" if attributes.subresource else attributes.plural
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'User "{name}" cannot {attributes.verb} resource "{plural}" in API group "{attributes.group}" {where}'
