"""What Kubernetes fills in when the author of an object left it out."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from paceline.apimachinery.builtin.qos import qos_class
from paceline.apimachinery.builtin.taints import NOT_READY
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.pods import spec_containers

_FILE_MODE = 0o644
_HOUR_SECONDS = 3600
_AFFINITY_SECONDS = 10800
_STAY_SECONDS = 300
_UNWELL = (NOT_READY, "node.kubernetes.io/unreachable")
_MODE_OF = ("configMap", "downwardAPI", "projected", "secret")


def pod_defaults(pod: Object) -> None:
    """Complete a pod in place, its status too while it has none.

    No volume with a token is added: nothing in a pod of the embedded cluster is to reach its API by itself.
    """
    spec = pod.setdefault("spec", {})
    if isinstance(spec, dict):
        pod_spec_defaults(spec)
        spec.setdefault("enableServiceLinks", True)
        grace = spec["terminationGracePeriodSeconds"]
        if isinstance(grace, int) and grace < 0:
            # Less than nothing means the shortest time there is.
            spec["terminationGracePeriodSeconds"] = 1
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = account
        _toleration_defaults(spec)
        for container in _dicts(spec.get("containers")):
            # Only those that run first may say it for themselves.
            container.pop("restartPolicy", None)
        for container in spec_containers(spec):
            _request_defaults(container)
            if spec.get("hostNetwork"):
                for port in _dicts(container.get("ports")):
                    port.setdefault("hostPort", port.get("containerPort"))
    if not pod.get("status"):
        pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod)}
        if isinstance(spec, dict) and spec.get("schedulingGates"):
            pod["status"]["conditions"] = [_gated(pod)]


def _gated(pod: Object) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": pod.get("metadata", {}).get("creationTimestamp"),
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def pod_spec_defaults(spec: Object) -> None:
    """Complete what a pod, or the template of one, says it runs."""
    for name, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ):
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    for container in spec_containers(spec):
        _container_defaults(container)
    for volume in _dicts(spec.get("volumes")):
        _volume_defaults(volume)
    for constraint in _dicts(spec.get("topologySpreadConstraints")):
        constraint.setdefault("nodeAffinityPolicy", "Honor")
        constraint.setdefault("nodeTaintsPolicy", "Ignore")


def _toleration_defaults(spec: Object) -> None:
    """Let a pod stay for a while on a node that is not well, unless it says how long itself."""
    tolerations = list(_dicts(spec.get("tolerations")))
    for key in _UNWELL:
        said = (each.get("key", key) == key and each.get("effect", "NoExecute") == "NoExecute" for each in tolerations)
        if not any(said):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAY_SECONDS}
            tolerations.append(toleration)
    spec["tolerations"] = tolerations


def _request_defaults(container: Object) -> None:
    resources = container.get("resources")
    if not isinstance(resources, dict) or not isinstance(resources.get("limits"), dict):
        return
    asked = resources.setdefault("requests", {})
    if isinstance(asked, dict):
        for name, amount in resources["limits"].items():
            asked.setdefault(name, amount)


def _container_defaults(container: Object) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(str(container.get("image") or "")))
    for port in _dicts(container.get("ports")):
        port.setdefault("protocol", "TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _probe_defaults(container[probe])
    lifecycle = container.get("lifecycle")
    if isinstance(lifecycle, dict):
        for handler in _dicts(list(lifecycle.values())):
            _handler_defaults(handler)
    for variable in _dicts(container.get("env")):
        _field_defaults(variable.get("valueFrom"))


def _field_defaults(source: Any) -> None:
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
    _handler_defaults(probe)


def _handler_defaults(handler: Object) -> None:
    if isinstance(handler.get("httpGet"), dict):
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")
    if isinstance(handler.get("grpc"), dict):
        handler["grpc"].setdefault("service", "")


def _volume_defaults(volume: Object) -> None:
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for source in _MODE_OF:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    down = volume.get("downwardAPI")
    for item in _dicts(down.get("items")) if isinstance(down, dict) else ():
        _field_defaults(item)
    projected = volume.get("projected")
    for part in _dicts(projected.get("sources")) if isinstance(projected, dict) else ():
        _projection_defaults(part)


def _projection_defaults(source: Object) -> None:
    if isinstance(source.get("serviceAccountToken"), dict):
        source["serviceAccountToken"].setdefault("expirationSeconds", _HOUR_SECONDS)
    down = source.get("downwardAPI")
    for item in _dicts(down.get("items")) if isinstance(down, dict) else ():
        _field_defaults(item)


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
    """Complete a service in place, but for the addresses and ports that it shares out with others."""
    spec = service.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    kind = spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
    if kind in {"LoadBalancer", "NodePort"} or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in _dicts(spec.get("ports")):
        port.setdefault("protocol", "TCP")
        if "port" in port and port.get("targetPort") in {None, 0, ""}:
            port["targetPort"] = port["port"]
    if not service.get("status"):
        service["status"] = {"loadBalancer": {}}
    _reached(service["status"])


def _reached(status: Any) -> None:
    balanced = status.get("loadBalancer") if isinstance(status, dict) else None
    for way in _dicts(balanced.get("ingress") if isinstance(balanced, dict) else None):
        if way.get("ip"):
            way.setdefault("ipMode", "VIP")


def endpoints_defaults(endpoints: Object) -> None:
    """Complete the addresses behind a service in place."""
    for subset in _dicts(endpoints.get("subsets")):
        for port in _dicts(subset.get("ports")):
            port.setdefault("protocol", "TCP")


def slice_defaults(piece: Object) -> None:
    """Complete a slice of the addresses behind a service in place."""
    for port in _dicts(piece.get("ports")):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def class_defaults(storage_class: Object) -> None:
    """Complete a storage class in place."""
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def priority_defaults(priority: Object) -> None:
    """Complete a priority class in place."""
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")


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
        if isinstance(spec.get("hostPath"), dict):
            spec["hostPath"].setdefault("type", "")
    if not volume.get("status"):
        volume["status"] = {"phase": "Pending"}
        if since := volume["metadata"].get("creationTimestamp"):
            volume["status"]["lastPhaseTransitionTime"] = since


def node_defaults(node: Object) -> None:
    """Complete a node in place: what is not kept back is for pods."""
    status = node.get("status")
    if isinstance(status, dict) and status.get("capacity"):
        status.setdefault("allocatable", status["capacity"])


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
    ("", "Endpoints"): endpoints_defaults,
    ("", "Namespace"): namespace_defaults,
    ("", "Node"): node_defaults,
    ("", "PersistentVolume"): volume_defaults,
    ("", "PersistentVolumeClaim"): claim_defaults,
    ("", "Pod"): pod_defaults,
    ("", "Secret"): secret_defaults,
    ("", "Service"): service_defaults,
    ("discovery.k8s.io", "EndpointSlice"): slice_defaults,
    ("scheduling.k8s.io", "PriorityClass"): priority_defaults,
    ("storage.k8s.io", "StorageClass"): class_defaults,
}
