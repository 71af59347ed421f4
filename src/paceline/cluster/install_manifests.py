"""The manifests that install our kinds in a Kubernetes cluster: CRDs, and the controllers with their RBAC rules."""

from collections.abc import Iterable, Iterator
from typing import Any

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.apimachinery.meta import Object
from paceline.cluster.external_controllers import HOME, LEASE
from paceline.cluster.rbac import Right, lease_rights, rights
from paceline.kinds import registry

ACCOUNT = "paceline-controller"
_LABELS = {"app.kubernetes.io/name": "paceline", "app.kubernetes.io/component": "controller"}
_RBAC = "rbac.authorization.k8s.io"
# Aggregated to the default roles of users.
_READ, _WRITE = ("get", "list", "watch"), ("create", "delete", "deletecollection", "patch", "update")
_ROLES = {"view": _READ, "edit": (*_READ, *_WRITE)}


def definitions() -> tuple[Object, ...]:
    """Return the CRDs of all our kinds."""
    return registry.crds(builtin_components())


def controller_manifests(image: str, namespace: str = "") -> Iterator[Object]:
    """Yield the manifests that run the controllers in a cluster, with exactly the permissions that they use.

    With a namespace the controllers run there and manage only that namespace; without one they manage all of them.
    """
    home = namespace or HOME
    if not namespace:
        yield _manifest("v1", "Namespace", home)
    yield _manifest("v1", "ServiceAccount", ACCOUNT, home)
    scope = "Role" if namespace else "ClusterRole"
    yield from _granted(scope, ACCOUNT, home, rights())
    yield from _granted("Role", f"{ACCOUNT}-lease", home, lease_rights(LEASE))
    if not namespace:
        yield from _roles_of_people()
    yield _deployment(image, home, ("--namespace", namespace) if namespace else ())


def _granted(scope: str, name: str, home: str, rules: Iterable[Right]) -> Iterator[Object]:
    """Yield a role, and the binding to our service account."""
    where = home if scope == "Role" else ""
    yield _manifest(f"{_RBAC}/v1", scope, name, where, rules=[right.rule() for right in rules])
    yield _manifest(
        f"{_RBAC}/v1",
        f"{scope}Binding",
        name,
        where,
        roleRef={"apiGroup": _RBAC, "kind": scope, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home}],
    )


def _roles_of_people() -> Iterator[Object]:
    """Yield roles that add our kinds to the default ones of every cluster: view, edit and admin."""
    plurals: dict[str, list[str]] = {}
    for definition in definitions():
        plurals.setdefault(str(definition["spec"]["group"]), []).append(str(definition["spec"]["names"]["plural"]))
    for role, verbs in _ROLES.items():
        rules = [Right(group=group, resources=tuple(names), verbs=verbs).rule() for group, names in plurals.items()]
        manifest = _manifest(f"{_RBAC}/v1", "ClusterRole", f"paceline-{role}", rules=rules)
        into = ("view", "edit", "admin") if role == "view" else ("edit", "admin")
        manifest["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{definition}": "true" for definition in into}
        yield manifest


def _deployment(image: str, home: str, args: tuple[str, ...]) -> Object:
    container = {
        "name": "controller",
        "image": image,
        "command": ["paceline", "kube", "controller", *args],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "serviceAccountName": ACCOUNT,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    return _manifest(
        "apps/v1",
        "Deployment",
        ACCOUNT,
        home,
        spec={
            # One leads; the other waits for the lease.
            "replicas": 2,
            "selector": {"matchLabels": dict(_LABELS)},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": pod},
        },
    )


def _manifest(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    where = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, **where, "labels": dict(_LABELS)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
