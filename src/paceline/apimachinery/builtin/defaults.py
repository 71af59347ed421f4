"""Default values of the built-in kinds. They are set before validation, so any value may have the wrong type."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from paceline.apimachinery.builtin.scheduling import NOT_READY, qos_class
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.pods import spec_containers

_FILE_MODE = 0o644
_HOUR_SECONDS = 3600
_AFFINITY_SECONDS = 10800
_TOLERATION_SECONDS = 300
_TOLERATED = (NOT_READY, "node.kubernetes.io/unreachable")
_POD_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_SPREAD = {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}


def _set(holder: Any, values: Mapping[str, Any]) -> None:
    """Set the fields that an object does not have; anything but an object is left alone."""
    if isinstance(holder, dict):
        for name, value in values.items():
            holder.setdefault(name, value)


def _dicts(holder: Any, field: str) -> tuple[Object, ...]:
    """Return the objects in a list of an object."""
    items = holder.get(field) if isinstance(holder, dict) else None
    return tuple(item for item in items if isinstance(item, dict)) if isinstance(items, list) else ()


def _pod_defaults(pod: Object) -> None:
    """Set the defaults of a pod, and the status of a new one."""
    spec = pod.setdefault("spec", {})
    if isinstance(spec, dict):
        _pod_spec_defaults(spec)
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


def _pod_spec_defaults(spec: Object) -> None:
    _set(spec, {**_POD_SPEC, "securityContext": {}})
    grace = spec["terminationGracePeriodSeconds"]
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _dicts(spec, "containers"):
        # Only init containers may have their own restart policy.
        container.pop("restartPolicy", None)
    for container in spec_containers(spec):
        _container_defaults(container)
        if spec.get("hostNetwork"):
            for port in _dicts(container, "ports"):
                port.setdefault("hostPort", port.get("containerPort"))
    for volume in _dicts(spec, "volumes"):
        _volume_defaults(volume)
    for constraint in _dicts(spec, "topologySpreadConstraints"):
        _set(constraint, _SPREAD)
    _toleration_defaults(spec)


def _toleration_defaults(spec: Object) -> None:
    """Let a pod stay for some minutes on a node that is not ready, unless it has its own tolerations for that."""
    tolerations = list(_dicts(spec, "tolerations"))
    for key in _TOLERATED:
        if not any(
            toleration.get("key", key) == key and toleration.get("effect", "NoExecute") == "NoExecute"
            for toleration in tolerations
        ):
            default = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**default, "tolerationSeconds": _TOLERATION_SECONDS})
    spec["tolerations"] = tolerations


def _container_defaults(container: Object) -> None:
    policy = _pull_policy(str(container.get("image") or ""))
    _set(container, {"resources": {}, **_CONTAINER, "imagePullPolicy": policy})
    resources = container["resources"]
    if isinstance(resources, dict) and isinstance(limits := resources.get("limits"), dict):
        _set(resources.setdefault("requests", {}), limits)
    for port in _dicts(container, "ports"):
        port.setdefault("protocol", "TCP")
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(field), dict):
            _set(probe, _PROBE)
            _handler_defaults(probe)
    lifecycle = container.get("lifecycle")
    for handler in lifecycle.values() if isinstance(lifecycle, dict) else ():
        if isinstance(handler, dict):
            _handler_defaults(handler)
    for variable in _dicts(container, "env"):
        _field_defaults(variable.get("valueFrom"))


def _field_defaults(source: Any) -> None:
    if isinstance(source, dict):
        _set(source.get("fieldRef"), {"apiVersion": "v1"})


def _pull_policy(image: str) -> str:
    name, _, tag = image.rpartition("/")[2].partition("@")[0].partition(":")
    pinned = "@" in image or (tag and tag != "latest")
    return "IfNotPresent" if pinned or not name else "Always"


def _handler_defaults(handler: Object) -> None:
    _set(handler.get("httpGet"), {"path": "/", "scheme": "HTTP"})
    _set(handler.get("grpc"), {"service": ""})


def _volume_defaults(volume: Object) -> None:
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for field in ("configMap", "downwardAPI", "projected", "secret"):
        _set(volume.get(field), {"defaultMode": _FILE_MODE})
    _set(volume.get("hostPath"), {"type": ""})
    for source in (volume, *_dicts(volume.get("projected"), "sources")):
        _set(source.get("serviceAccountToken"), {"expirationSeconds": _HOUR_SECONDS})
        for item in _dicts(source.get("downwardAPI"), "items"):
            _field_defaults(item)


def _namespace_defaults(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if isinstance(metadata, dict) and name_of(namespace):
        labels = metadata.setdefault("labels", {})
        if isinstance(labels, dict):
            labels["kubernetes.io/metadata.name"] = name_of(namespace)
    if not namespace.get("status"):
        namespace["status"] = {"phase": "Active"}
        # Removed by the namespace controller once the namespace is empty.
        namespace["spec"] = {"finalizers": ["kubernetes"]}


def _service_defaults(service: Object) -> None:
    """Set the defaults of a service, except for allocated addresses and ports."""
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
    for port in _dicts(spec, "ports"):
        port.setdefault("protocol", "TCP")
        if "port" in port and port.get("targetPort") in {None, 0, ""}:
            port["targetPort"] = port["port"]
    if not service.get("status"):
        service["status"] = {"loadBalancer": {}}
    _ingress_defaults(service["status"])


def _ingress_defaults(status: Any) -> None:
    for ingress in _dicts(status.get("loadBalancer") if isinstance(status, dict) else None, "ingress"):
        if ingress.get("ip"):
            ingress.setdefault("ipMode", "VIP")


def _endpoints_defaults(endpoints: Object) -> None:
    for subset in _dicts(endpoints, "subsets"):
        for port in _dicts(subset, "ports"):
            port.setdefault("protocol", "TCP")


def _slice_defaults(endpoint_slice: Object) -> None:
    for port in _dicts(endpoint_slice, "ports"):
        _set(port, {"name": "", "protocol": "TCP"})


def _storage_class_defaults(storage_class: Object) -> None:
    _set(storage_class, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _priority_class_defaults(priority: Object) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _claim_defaults(claim: Object) -> None:
    _set(claim.setdefault("spec", {}), {"volumeMode": "Filesystem"})
    if not claim.get("status"):
        claim["status"] = {"phase": "Pending"}


def _persistent_volume_defaults(volume: Object) -> None:
    spec = volume.setdefault("spec", {})
    if isinstance(spec, dict):
        _set(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
        _set(spec.get("hostPath"), {"type": ""})
    if not volume.get("status"):
        volume["status"] = {"phase": "Pending"}
        if since := volume["metadata"].get("creationTimestamp"):
            volume["status"]["lastPhaseTransitionTime"] = since


def _node_defaults(node: Object) -> None:
    status = node.get("status")
    if isinstance(status, dict) and status.get("capacity"):
        status.setdefault("allocatable", status["capacity"])


def _secret_defaults(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if isinstance(texts, dict):
        data = secret.setdefault("data", {})
        if isinstance(data, dict):
            data.update((name, b64encode(str(text).encode()).decode()) for name, text in texts.items())


DEFAULTS: Mapping[tuple[str, str], Callable[[Object], None]] = {
    ("", "Endpoints"): _endpoints_defaults,
    ("", "Namespace"): _namespace_defaults,
    ("", "Node"): _node_defaults,
    ("", "PersistentVolume"): _persistent_volume_defaults,
    ("", "PersistentVolumeClaim"): _claim_defaults,
    ("", "Pod"): _pod_defaults,
    ("", "Secret"): _secret_defaults,
    ("", "Service"): _service_defaults,
    ("discovery.k8s.io", "EndpointSlice"): _slice_defaults,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class_defaults,
    ("storage.k8s.io", "StorageClass"): _storage_class_defaults,
}
