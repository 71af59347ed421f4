"""The manifests of the webhook: the configuration that API servers read, its Service, and the rights to update it."""

from collections.abc import Iterator
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.cluster.rbac import Right
from paceline.cluster.webhook.server import CONFIGURATIONS, NAME, PATH, SERVICE
from paceline.kinds import registry

PORT = 9443
# The name of the webhook, which the API server mentions when it refuses an object.
WEBHOOK = "validate.paceline.dev"


def webhook_rights() -> tuple[Right, ...]:
    """Return the cluster-wide permissions that the webhook needs beside those of the controllers."""
    return (Right(group=CONFIGURATIONS.group, resources=(CONFIGURATIONS.plural,), verbs=("get", "update"), name=NAME),)


def webhook_manifests(
    namespace: Any, labels: dict[str, str], selector: dict[str, str], *, namespaces: tuple[str, ...] = ()
) -> Iterator[Object]:
    """Yield Service and configuration of controllers that run in `namespace`; they add their certificates themselves.

    `namespace` is a name, or a reference of a template to one. `selector` selects the pods of the controllers, which
    must have `--webhook-bind-address 0.0.0.0:9443`. With `namespaces`, only objects there are validated.
    """
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": namespace, "labels": labels},
        "spec": {"selector": selector, "ports": [{"name": "webhook", "port": 443, "targetPort": PORT}]},
    }
    client = {"service": {"namespace": namespace, "name": SERVICE, "path": PATH, "port": 443}}
    yield configuration(client, labels, namespaces=namespaces)


def configuration(client: Object, labels: dict[str, str], *, namespaces: tuple[str, ...] = ()) -> Object:
    """Return the ValidatingWebhookConfiguration; `client` says where the webhook is: a Service, or a url."""
    webhook: Object = {
        "name": WEBHOOK,
        "clientConfig": client,
        "rules": list(_rules()),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # The CRDs refuse most faults by themselves: without the webhook, a job says in its status what is wrong.
        "failurePolicy": "Ignore",
        "timeoutSeconds": 5,
    }
    if namespaces:
        listed = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
        webhook["namespaceSelector"] = {"matchExpressions": [listed]}
    return {
        "apiVersion": f"{CONFIGURATIONS.group}/{CONFIGURATIONS.version}",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": labels},
        "webhooks": [webhook],
    }


def _rules() -> Iterator[Object]:
    """Yield one rule per group; subresources and deletions are not sent to the webhook."""
    plurals: dict[tuple[str, str], list[str]] = {}
    for resource in registry.resources():
        plurals.setdefault((resource.group, resource.version), []).append(resource.plural)
    for (group, version), names in plurals.items():
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": names,
            "operations": ["CREATE", "UPDATE"],
            "scope": "Namespaced",
        }
