"""What Kubernetes fills in when the author of an object left it out."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from paceline.objects.builtin.resources import qos_class
from paceline.objects.meta import Object, name_of

_FILE_MODE = 0o644
_MODE_OF = ("configMap", "downwardAPI", "projected", "secret")


def pod_defaults(pod: Object) -> None:
    """Complete a pod in place, its status too while it has none."""
    spec = pod.setdefault("spec", {})
    if isinstance(spec, dict):
        pod_spec_defaults(spec)
    status = pod.get("status")
    if not status:
        pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod)}


def pod_spec_defaults(spec: Object) -> None:
    """Complete what a pod, or the template of one, says it runs."""
    for name, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("enableServiceLinks", True),
    ):
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    for container in (*_dicts(spec.get("initContainers")), *_dicts(spec.get("containers"))):
        _container_defaults(container)
    for volume in _dicts(spec.get("volumes")):
        _volume_defaults(volume)


def _container_defaults(container: Object) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    resources = container["resources"]
    if isinstance(resources, dict) and isinstance(resources.get("limits"), dict):
        asked = resources.setdefault("requests", {})
        if isinstance(asked, dict):
            for name, amount in resources["limits"].items():
                asked.setdefault(name, amount)
    for port in _dicts(container.get("ports")):
        port.setdefault("protocol", "TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _probe_defaults(container[probe])
    for variable in _dicts(container.get("env")):
        source = variable.get("valueFrom")
        reference = source.get("fieldRef") if isinstance(source, dict) else None
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    name, _, tag = image.rpartition("/")[2].partition("@")[0].partition(":")
    pinned = "@" in image or (tag and tag != "latest")
    return "IfNotPresent" if pinned or not name else "Always"


def _probe_defaults(probe: Object) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(name, value)
    if isinstance(probe.get("httpGet"), dict):
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _volume_defaults(volume: Object) -> None:
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for source in _MODE_OF:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def namespace_defaults(namespace: Object) -> None:
    """Complete a namespace in place."""
    metadata = namespace["metadata"]
    if isinstance(metadata, dict) and name_of(namespace):
        labels = metadata.setdefault("labels", {})
        if isinstance(labels, dict):
            labels["kubernetes.io/metadata.name"] = name_of(namespace)
    if not namespace.get("status"):
        namespace["status"] = {"phase": "Active"}
        # Taken off once nothing is left in the namespace; until then it stays.
        namespace["spec"] = {"finalizers": ["kubernetes"]}


def service_defaults(service: Object) -> None:
    """Complete a service in place; no address is given out, names lead straight to pods."""
    spec = service.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] == "ClusterIP":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec.get("clusterIP") == "None":
        spec.setdefault("clusterIPs", ["None"])
    for port in _dicts(spec.get("ports")):
        port.setdefault("protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])
    if not service.get("status"):
        service["status"] = {"loadBalancer": {}}


def claim_defaults(claim: Object) -> None:
    """Complete a claim in place."""
    spec = claim.setdefault("spec", {})
    if isinstance(spec, dict):
        spec.setdefault("volumeMode", "Filesystem")
    if not claim.get("status"):
        claim["status"] = {"phase": "Pending"}


def volume_defaults(volume: Object) -> None:
    """Complete a persistent volume in place."""
    spec = volume.setdefault("spec", {})
    if isinstance(spec, dict):
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
    if not volume.get("status"):
        volume["status"] = {"phase": "Pending"}


def secret_defaults(secret: Object) -> None:
    """Complete a secret in place; what was written as text is kept as bytes in base64."""
    secret.setdefault("type", "Opaque")
    written = secret.pop("stringData", None)
    if isinstance(written, dict):
        data = secret.setdefault("data", {})
        if isinstance(data, dict):
            for name, text in written.items():
                data[name] = b64encode(str(text).encode()).decode()


def _dicts(value: Any) -> tuple[Object, ...]:
    # Defaults come before the check, so nothing is known yet about what is where.
    return tuple(each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


DEFAULTS: Mapping[tuple[str, str], Callable[[Object], None]] = {
    ("", "Namespace"): namespace_defaults,
    ("", "PersistentVolume"): volume_defaults,
    ("", "PersistentVolumeClaim"): claim_defaults,
    ("", "Pod"): pod_defaults,
    ("", "Secret"): secret_defaults,
    ("", "Service"): service_defaults,
}
