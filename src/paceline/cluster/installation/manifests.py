"""The templates of an installation: namespace, permissions, controllers and what an operator needs beside them."""

from collections.abc import Iterable, Iterator
from typing import Any

from paceline import __version__
from paceline.apimachinery.builtin.registry import builtin_components
from paceline.apimachinery.meta import Object
from paceline.cluster.external_controllers import HOME, LEASE
from paceline.cluster.installation.console_manifests import console_documents
from paceline.cluster.installation.crd_marks import marked
from paceline.cluster.installation.parts import (
    ACCOUNT,
    CONTROLLER,
    PORT,
    PORT_NAME,
    labels_of,
    manifest,
    network_policy,
    pod_template,
    probe,
)
from paceline.cluster.installation.template import ITEM, NAMESPACE, ManifestTemplate, Ref, Text, render, value
from paceline.cluster.installation.values import InstallValues, complete_values
from paceline.cluster.rbac import Right, cluster_rights, lease_rights, rights
from paceline.cluster.webhook import manifests as webhook
from paceline.kinds import registry

_RBAC = "rbac.authorization.k8s.io"
_ALL: dict[str, Any] = {"unless": ("Values.namespaces",)}
_LISTED: dict[str, Any] = {"range_over": "Values.namespaces"}
# Aggregated to the default roles of users.
_READ, _WRITE = ("get", "list", "watch"), ("create", "delete", "deletecollection", "patch", "update")
_ROLES = {"view": _READ, "edit": (*_READ, *_WRITE)}
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}


def definitions() -> tuple[Object, ...]:
    """Return the CRDs of all our kinds, with the marks of their owner and version."""
    return tuple(marked(definition) for definition in registry.crds(builtin_components()))


def namespace_manifest(name: str) -> Object:
    """Return the namespace of the controllers, which admits restricted pods only."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _RESTRICTED}}


def installation(values: InstallValues, namespace: str = HOME) -> Iterator[Object]:
    """Yield the manifests that run Paceline in a cluster, without namespace and CRDs."""
    scope = {
        "Values": complete_values(values),
        "Release": {"Namespace": namespace},
        "Chart": {"Version": __version__},
    }
    return render(documents(), scope)


def documents() -> Iterator[ManifestTemplate]:
    """Yield the templates of everything but namespace and CRDs."""
    yield ManifestTemplate(
        file="rbac", manifest=manifest("v1", "ServiceAccount", ACCOUNT, CONTROLLER, namespace=NAMESPACE)
    )
    yield from _granted("ClusterRole", ACCOUNT, rights(), **_ALL)
    yield from _granted("Role", ACCOUNT, rights(), namespace=Ref(path=ITEM), **_LISTED)
    yield from _granted("ClusterRole", f"{ACCOUNT}-cluster", cluster_rights())
    yield from _granted("Role", f"{ACCOUNT}-lease", lease_rights(LEASE), namespace=NAMESPACE)
    yield from _roles_of_people()
    yield ManifestTemplate(file="controller", manifest=_deployment())
    yield ManifestTemplate(
        file="controller",
        when=("Values.controller.podDisruptionBudget",),
        manifest=manifest(
            "policy/v1",
            "PodDisruptionBudget",
            ACCOUNT,
            CONTROLLER,
            namespace=NAMESPACE,
            spec={"maxUnavailable": 1, "selector": {"matchLabels": labels_of(CONTROLLER)}},
        ),
    )
    policy = network_policy(ACCOUNT, CONTROLLER, NAMESPACE)
    yield ManifestTemplate(file="controller", when=("Values.networkPolicy",), manifest=policy)
    yield from _metrics()
    yield from _webhook()
    yield from console_documents()


def _granted(
    scope: str, name: str, rules: Iterable[Right], *, namespace: Ref | None = None, **choice: Any
) -> Iterator[ManifestTemplate]:
    """Yield a role, and the binding to our service account."""
    role = manifest(
        f"{_RBAC}/v1", scope, name, CONTROLLER, namespace=namespace, rules=[right.rule() for right in rules]
    )
    binding = manifest(
        f"{_RBAC}/v1",
        f"{scope}Binding",
        name,
        CONTROLLER,
        namespace=namespace,
        roleRef={"apiGroup": _RBAC, "kind": scope, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    )
    for part in (role, binding):
        yield ManifestTemplate(file="rbac", manifest=part, **choice)


def _roles_of_people() -> Iterator[ManifestTemplate]:
    """Yield roles that add our kinds to the default ones of every cluster: view, edit and admin."""
    plurals: dict[str, list[str]] = {}
    for kind in registry.every_kind():
        plurals.setdefault(kind.group, []).append(kind.plural)
    for role, verbs in _ROLES.items():
        rules = [Right(group=group, resources=tuple(names), verbs=verbs).rule() for group, names in plurals.items()]
        part = manifest(f"{_RBAC}/v1", "ClusterRole", f"paceline-{role}", CONTROLLER, rules=rules)
        into = ("view", "edit", "admin") if role == "view" else ("edit", "admin")
        part["metadata"]["labels"] |= {f"{_RBAC}/aggregate-to-{name}": "true" for name in into}
        yield ManifestTemplate(file="people", manifest=part, unless=("Values.namespaces",))


def _deployment() -> Object:
    podtools = {
        "image": value("podtools.image", fallback="Values.image"),
        "pull-policy": value("podtools.pullPolicy"),
        "pull-secrets": value("podtools.pullSecrets", is_joined=True),
    }
    command = [
        *("paceline", "kube", "controller"),
        Text("--namespace=", value("namespaces", is_joined=True)),
        Text("--lease-namespace=", NAMESPACE),
        *(Text(f"--podtools-{name}=", ref) for name, ref in podtools.items()),
        f"--metrics-bind-address=:{PORT}",
        Text("--webhook-bind-address=", value("webhook.bindAddress")),
        "--log-format=json",
    ]
    container = {
        "command": command,
        "resources": value("controller.resources"),
        "livenessProbe": {**probe("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**probe("/readyz"), "periodSeconds": 5},
    }
    pod = {
        "serviceAccountName": ACCOUNT,
        "priorityClassName": value("controller.priorityClassName"),
        "nodeSelector": value("controller.nodeSelector"),
        "tolerations": value("controller.tolerations"),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels_of(CONTROLLER)},
            }
        ],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        ACCOUNT,
        CONTROLLER,
        namespace=NAMESPACE,
        spec={
            "replicas": value("controller.replicas"),
            "selector": {"matchLabels": labels_of(CONTROLLER)},
            "template": pod_template(CONTROLLER, container, pod),
        },
    )


def _webhook() -> Iterator[ManifestTemplate]:
    """Yield the validating webhook, which checks what the rules in the CRDs cannot."""
    choice: dict[str, Any] = {"when": ("Values.webhook.bindAddress",)}
    labels = labels_of(CONTROLLER)
    for part in webhook.webhook_manifests(NAMESPACE, labels, labels):
        yield ManifestTemplate(file="webhook", manifest=part, **choice)
    # Policies add up: the port is closed where there is no webhook.
    policy = network_policy(f"{ACCOUNT}-webhook", CONTROLLER, NAMESPACE, webhook.PORT)
    yield ManifestTemplate(file="webhook", manifest=policy, when=(*choice["when"], "Values.networkPolicy"))
    yield from _granted("ClusterRole", f"{ACCOUNT}-webhook", webhook.webhook_rights(), **choice)


def _metrics() -> Iterator[ManifestTemplate]:
    name = f"{ACCOUNT}-metrics"
    ports = [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME}]
    spec = {"selector": labels_of(CONTROLLER), "ports": ports}
    yield ManifestTemplate(
        file="metrics", manifest=manifest("v1", "Service", name, CONTROLLER, namespace=NAMESPACE, spec=spec)
    )
    monitor = manifest(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        name,
        CONTROLLER,
        namespace=NAMESPACE,
        spec={"selector": {"matchLabels": labels_of(CONTROLLER)}, "endpoints": [{"port": PORT_NAME}]},
    )
    monitor["metadata"]["labels"] = value("metrics.labels")
    yield ManifestTemplate(file="metrics", when=("Values.metrics.serviceMonitor",), manifest=monitor)
