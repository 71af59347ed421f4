"""Table columns and cells of the built-in kinds, as `kubectl get` prints them."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.apimachinery.builtin.pod_printer import POD_COLUMNS, pod_cells
from paceline.apimachinery.builtin.storage_annotations import is_default_class
from paceline.apimachinery.meta import Object, condition_of, is_deleting, labels_of, name_of
from paceline.apimachinery.scheme import Cells, Column
from paceline.apimachinery.table import NONE, UNKNOWN, age, created

_ROLE = "node-role.kubernetes.io/"
_UNSET = "<unset>"
_SHOWN = 3
# Columns whose cells are not text.
_TYPES = {"Global-Default": "boolean", "Value": "integer"}
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def node_cells(node: Object, now: str) -> tuple[Any, ...]:
    """Return the cells of a node."""
    status = node.get("status") or {}
    info, condition = status.get("nodeInfo") or {}, condition_of(node, "Ready")
    ready = "Unknown" if condition is None else "Ready" if condition.get("status") == "True" else "NotReady"
    is_cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    labels = labels_of(node)
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get("kubernetes.io/role")}
    addresses = {address.get("type"): address.get("address") for address in status.get("addresses") or ()}
    return (
        name_of(node),
        f"{ready},SchedulingDisabled" if is_cordoned else ready,
        ",".join(sorted(filter(None, roles))) or NONE,
        created(node, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    )


def event_cells(event: Object, now: str) -> tuple[Any, ...]:
    """Return the cells of an event."""
    series, involved = event.get("series") or {}, event.get("involvedObject") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance")
    kind, name = str(involved.get("kind") or "").lower(), involved.get("name")
    return (
        age(last, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath") or "",
        f"{component}, {host}" if host else component,
        (event.get("message") or "").strip(),
        age(first, now),
        series.get("count") or event.get("count") or 1,
        name_of(event),
    )


def _claim_cells(claim: Object, now: str) -> tuple[Any, ...]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    bound = bool(spec.get("volumeName"))
    capacity = (status.get("capacity") or {}).get("storage") or ""
    return (
        name_of(claim),
        _phase(claim),
        spec.get("volumeName") or "",
        capacity if bound else "",
        _modes(status) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        created(claim, now),
        spec.get("volumeMode") or _UNSET,
    )


def _volume_cells(volume: Object, now: str) -> tuple[Any, ...]:
    spec, status = volume.get("spec") or {}, volume.get("status") or {}
    claim = spec.get("claimRef") or {}
    return (
        name_of(volume),
        (spec.get("capacity") or {}).get("storage") or "",
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(volume),
        f"{claim.get('namespace')}/{claim.get('name')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        status.get("reason") or "",
        created(volume, now),
        spec.get("volumeMode") or _UNSET,
    )


def _namespace_cells(namespace: Object, now: str) -> tuple[Any, ...]:
    return name_of(namespace), (namespace.get("status") or {}).get("phase") or "", created(namespace, now)


def _config_map_cells(config_map: Object, now: str) -> tuple[Any, ...]:
    count = len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())
    return name_of(config_map), count, created(config_map, now)


def _secret_cells(secret: Object, now: str) -> tuple[Any, ...]:
    return name_of(secret), secret.get("type") or "", len(secret.get("data") or ()), created(secret, now)


def _service_account_cells(account: Object, now: str) -> tuple[Any, ...]:
    return name_of(account), len(account.get("secrets") or ()), created(account, now)


def _storage_class_cells(storage_class: Object, now: str) -> tuple[Any, ...]:
    suffix = " (default)" if is_default_class(storage_class) else ""
    return (
        name_of(storage_class) + suffix,
        storage_class.get("provisioner") or "",
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or "Immediate",
        bool(storage_class.get("allowVolumeExpansion")),
        created(storage_class, now),
    )


def _priority_class_cells(priority: Object, now: str) -> tuple[Any, ...]:
    value, is_default = priority.get("value") or 0, bool(priority.get("globalDefault"))
    return name_of(priority), value, is_default, created(priority, now), priority.get("preemptionPolicy") or ""


def _lease_cells(lease: Object, now: str) -> tuple[Any, ...]:
    return name_of(lease), (lease.get("spec") or {}).get("holderIdentity") or "", created(lease, now)


def _phase(obj: Object) -> str:
    return "Terminating" if is_deleting(obj) else (obj.get("status") or {}).get("phase") or ""


def _modes(holder: Mapping[str, Any]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in holder.get("accessModes") or ())


def _service_cells(service: Object, now: str) -> tuple[Any, ...]:
    labels = (service.get("spec") or {}).get("selector") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return name_of(service), *service_address_cells(service), created(service, now), selector or NONE


def service_address_cells(service: Object) -> tuple[str, str, str, str]:
    """Return the type, the cluster and external addresses and the ports of a service."""
    spec = service.get("spec") or {}
    ports = (
        f"{port.get('port')}"
        + (f":{port['nodePort']}" if port.get("nodePort") else "")
        + f"/{port.get('protocol') or 'TCP'}"
        for port in spec.get("ports") or ()
    )
    return (
        str(spec.get("type") or ""),
        str(next(iter(spec.get("clusterIPs") or ()), NONE)),
        _external_addresses(spec, service.get("status") or {}),
        ",".join(ports) or NONE,
    )


def _external_addresses(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    external_ips = spec.get("externalIPs") or ()
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case "LoadBalancer":
            ingresses = (status.get("loadBalancer") or {}).get("ingress") or ()
            addresses = {ingress.get("ip") or ingress.get("hostname") or "" for ingress in ingresses} - {""}
            return ",".join((*sorted(addresses), *external_ips)) or "<pending>"
        case _:
            return ",".join(external_ips) or NONE


def _endpoints_cells(endpoints: Object, now: str) -> tuple[Any, ...]:
    shown: list[str] = []
    for subset in endpoints.get("subsets") or ():
        hosts = [str(address.get("ip")) for address in subset.get("addresses") or ()]
        ports = [port.get("port") for port in subset.get("ports") or ()]
        shown += [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for port in ports for host in hosts]
        shown += [] if ports else hosts
    return name_of(endpoints), _abridged(shown) if endpoints.get("subsets") else NONE, created(endpoints, now)


def _slice_cells(endpoint_slice: Object, now: str) -> tuple[Any, ...]:
    ports = (str(port.get("port") or port.get("name") or "*") for port in endpoint_slice.get("ports") or ())
    endpoints = endpoint_slice.get("endpoints") or ()
    addresses = (address for endpoint in endpoints for address in endpoint.get("addresses") or ())
    kind = endpoint_slice.get("addressType") or ""
    shown = _abridged(ports) or _UNSET, _abridged(addresses) or _UNSET
    return name_of(endpoint_slice), kind, *shown, created(endpoint_slice, now)


def _abridged(values: Iterable[str]) -> str:
    """Return the first values, and the number of the others."""
    listed = list(values)
    suffix = f" + {len(listed) - _SHOWN} more..." if len(listed) > _SHOWN else ""
    return ",".join(listed[:_SHOWN]) + suffix


def _columns(names: str, wide: str = "") -> tuple[Column, ...]:
    """Return the columns of a kind with a cells function; `wide` ones are shown only with `-o wide`."""
    listed = [(name, 0) for name in names.split("|")] + [(name, 1) for name in wide.split("|") if wide]
    return tuple(
        Column(name=name, path="", type=_TYPES.get(name, "string"), priority=priority) for name, priority in listed
    )


# In the order of their cells, so not all wide columns are last.
_EVENT_COLUMNS = tuple(
    Column(name=name.rstrip("*"), path="", priority=int(name.endswith("*")))
    for name in (
        *("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*"),
        "Name*",
    )
)
_NODE_COLUMNS = _columns(
    "Name|Status|Roles|Age|Version", wide="Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime"
)
_VOLUME_COLUMNS = _columns(
    "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age",
    wide="VolumeMode",
)
_CLAIM_COLUMNS = _columns(
    "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age", wide="VolumeMode"
)
_SERVICE_COLUMNS = _columns("Name|Type|Cluster-IP|External-IP|Port(s)|Age", wide="Selector")
_STORAGE_CLASS_COLUMNS = _columns("Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age")
_PRIORITY_CLASS_COLUMNS = _columns("Name|Value|Global-Default|Age|PreemptionPolicy")

PRINTED: Mapping[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {
    ("", "ConfigMap"): (_columns("Name|Data|Age"), _config_map_cells),
    ("", "Endpoints"): (_columns("Name|Endpoints|Age"), _endpoints_cells),
    ("", "Event"): (_EVENT_COLUMNS, event_cells),
    ("", "Namespace"): (_columns("Name|Status|Age"), _namespace_cells),
    ("", "Node"): (_NODE_COLUMNS, node_cells),
    ("", "PersistentVolume"): (_VOLUME_COLUMNS, _volume_cells),
    ("", "PersistentVolumeClaim"): (_CLAIM_COLUMNS, _claim_cells),
    ("", "Pod"): (POD_COLUMNS, pod_cells),
    ("", "Secret"): (_columns("Name|Type|Data|Age"), _secret_cells),
    ("", "Service"): (_SERVICE_COLUMNS, _service_cells),
    ("", "ServiceAccount"): (_columns("Name|Secrets|Age"), _service_account_cells),
    ("coordination.k8s.io", "Lease"): (_columns("Name|Holder|Age"), _lease_cells),
    ("events.k8s.io", "Event"): (_EVENT_COLUMNS, event_cells),
    ("discovery.k8s.io", "EndpointSlice"): (_columns("Name|AddressType|Ports|Endpoints|Age"), _slice_cells),
    ("scheduling.k8s.io", "PriorityClass"): (_PRIORITY_CLASS_COLUMNS, _priority_class_cells),
    ("storage.k8s.io", "StorageClass"): (_STORAGE_CLASS_COLUMNS, _storage_class_cells),
}
