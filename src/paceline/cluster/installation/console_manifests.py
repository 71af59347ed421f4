"""The templates of the web console: a Deployment that has no permissions, in which people use their own tokens."""

from collections.abc import Iterator

from paceline.cluster.installation.parts import (
    CONSOLE,
    PORT,
    PORT_NAME,
    labels_of,
    manifest,
    network_policy,
    pod_template,
    probe,
)
from paceline.cluster.installation.template import NAMESPACE, ManifestTemplate, value

_NAME = "paceline-console"
_WHEN = ("Values.console.enabled",)
# Where programs in pods look for the API server's certificate authority; the console gets that, and no token.
_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def console_documents() -> Iterator[ManifestTemplate]:
    """Yield the templates."""
    account = manifest("v1", "ServiceAccount", _NAME, CONSOLE, namespace=NAMESPACE, automountServiceAccountToken=False)
    ports = [{"name": PORT_NAME, "port": 80, "targetPort": PORT_NAME}]
    service = manifest(
        "v1",
        "Service",
        _NAME,
        CONSOLE,
        namespace=NAMESPACE,
        spec={"type": value("console.serviceType"), "selector": labels_of(CONSOLE), "ports": ports},
    )
    deployment = manifest(
        "apps/v1",
        "Deployment",
        _NAME,
        CONSOLE,
        namespace=NAMESPACE,
        spec={
            "replicas": value("console.replicas"),
            "selector": {"matchLabels": labels_of(CONSOLE)},
            "template": _template(),
        },
    )
    for part in (account, service, deployment):
        yield ManifestTemplate(file="console", manifest=part, when=_WHEN)
    policy = network_policy(_NAME, CONSOLE, NAMESPACE)
    yield ManifestTemplate(file="console", manifest=policy, when=(*_WHEN, "Values.networkPolicy"))


def _template() -> dict[str, object]:
    authority = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    fields = [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
    volume = {"name": "authority", "projected": {"sources": [authority, {"downwardAPI": {"items": fields}}]}}
    container = {
        "command": ["paceline", "kube", "console", "--listen", f"0.0.0.0:{PORT}"],
        "resources": value("console.resources"),
        "readinessProbe": {**probe("/healthz"), "periodSeconds": 5},
        "volumeMounts": [{"name": "authority", "mountPath": _FOLDER, "readOnly": True}],
    }
    pod = {"serviceAccountName": _NAME, "automountServiceAccountToken": False, "volumes": [volume]}
    return pod_template(CONSOLE, container, pod)
