"""Parts that the templates of controllers and console share: labels, unprivileged pods, probes."""

from typing import Any

from paceline.apimachinery.meta import Object
from paceline.cluster.installation.template import Ref, value

CONTROLLER, CONSOLE = "controller", "console"
ACCOUNT = "paceline-controller"
# The user of the image.
USER = 65532
PORT, PORT_NAME = 8080, "http"


def labels_of(component: str) -> dict[str, str]:
    """Return the labels of a component, by which its pods are selected; they stay the same in every version."""
    return {"app.kubernetes.io/name": "paceline", "app.kubernetes.io/component": component}


def manifest(
    api_version: str, kind: str, name: str, component: str, *, namespace: Ref | None = None, **fields: Any
) -> Object:
    """Return a manifest with the labels of a component."""
    where = {} if namespace is None else {"namespace": namespace}
    metadata = {"name": name, **where, "labels": labels_of(component)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def pod_template(component: str, container: Object, spec: Object) -> Object:
    """Return the template of a pod with one container of our image, as the strictest Pod Security level asks for it."""
    scratch = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - a volume of the pod
    return {
        "metadata": {"labels": labels_of(component)},
        "spec": {
            "imagePullSecrets": value("imagePullSecrets"),
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **spec,
            "containers": [
                {
                    "name": component,
                    "image": value("image"),
                    "imagePullPolicy": value("imagePullPolicy"),
                    "ports": [{"name": PORT_NAME, "containerPort": PORT}],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                    **container,
                    "volumeMounts": [scratch, *container.get("volumeMounts", ())],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}, *spec.get("volumes", ())],
        },
    }


def probe(path: str) -> Object:
    """Return a probe of the container's port."""
    return {"httpGet": {"path": path, "port": PORT_NAME}, "timeoutSeconds": 5}


def network_policy(name: str, component: str, namespace: Ref, port: int | str = PORT_NAME) -> Object:
    """Return a policy that admits connections to one port of a component, and to no other."""
    return manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        component,
        namespace=namespace,
        spec={
            "podSelector": {"matchLabels": labels_of(component)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": port}]}],
        },
    )
