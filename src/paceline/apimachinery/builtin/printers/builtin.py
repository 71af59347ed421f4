"""What `kubectl get` shows of built-in kinds, as its users know it."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.builtin.printers.network import endpoints_cells, service_cells, slice_cells
from paceline.apimachinery.builtin.printers.pod import POD_COLUMNS, pod_cells
from paceline.apimachinery.builtin.storage_annotations import is_default_class
from paceline.apimachinery.meta import Object, labels_of, name_of
from paceline.apimachinery.scheme import Cells, Column
from paceline.apimachinery.table import NONE, UNKNOWN, age, created

_ROLE = "node-role.kubernetes.io/"
# Which columns hold no text.
_TYPES = {"Global-Default": "boolean", "Value": "integer"}
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def columns(*shown: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Name the columns of a kind whose cells are worked out; the last ones only with `-o wide`."""
    plain = (Column(name=name, path="", type=_TYPES.get(name, "string")) for name in shown)
    return (*plain, *(Column(name=name, path="", priority=1) for name in wide))


def node_cells(node: Object, now: str) -> tuple[Any, ...]:
    """Show a node."""
    status, info = node.get("status") or {}, (node.get("status") or {}).get("nodeInfo") or {}
    said = [each.get("status") for each in status.get("conditions") or () if each.get("type") == "Ready"]
    shown = [("Ready" if said[-1] == "True" else "NotReady") if said else "Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    roles = sorted(_roles_of(labels_of(node)))
    addresses = {each.get("type"): each.get("address") for each in status.get("addresses") or ()}
    return (
        name_of(node),
        ",".join(shown),
        ",".join(roles) or NONE,
        created(node, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    )


def _roles_of(labels: Mapping[str, str]) -> set[str]:
    named = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    return (named | {labels.get("kubernetes.io/role", "")}) - {""}


def event_cells(event: Object, now: str) -> tuple[Any, ...]:
    """Show an event."""
    series, about = event.get("series") or {}, event.get("involvedObject") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent")
    host = source.get("host") or event.get("reportingInstance")
    kind, name = str(about.get("kind") or "").lower(), about.get("name")
    return (
        age(last, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath") or "",
        ", ".join((component or "", host)) if host else component or "",
        (event.get("message") or "").strip(),
        age(first, now),
        series.get("count") or event.get("count") or 1,
        name_of(event),
    )


def claim_cells(claim: Object, now: str) -> tuple[Any, ...]:
    """Show a claim."""
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
        spec.get("volumeAttributesClassName") or "<unset>",
        created(claim, now),
        spec.get("volumeMode") or "<unset>",
    )


def volume_cells(volume: Object, now: str) -> tuple[Any, ...]:
    """Show a persistent volume."""
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
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason") or "",
        created(volume, now),
        spec.get("volumeMode") or "<unset>",
    )


def namespace_cells(namespace: Object, now: str) -> tuple[Any, ...]:
    """Show a namespace."""
    phase = (namespace.get("status") or {}).get("phase") or ""
    return name_of(namespace), phase, created(namespace, now)


def config_map_cells(config_map: Object, now: str) -> tuple[Any, ...]:
    """Show a config map."""
    count = len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())
    return name_of(config_map), count, created(config_map, now)


def secret_cells(secret: Object, now: str) -> tuple[Any, ...]:
    """Show a secret, never what it holds."""
    return name_of(secret), secret.get("type") or "", len(secret.get("data") or ()), created(secret, now)


def account_cells(account: Object, now: str) -> tuple[Any, ...]:
    """Show a service account."""
    return name_of(account), len(account.get("secrets") or ()), created(account, now)


def class_cells(storage_class: Object, now: str) -> tuple[Any, ...]:
    """Show a storage class."""
    mark = " (default)" if is_default_class(storage_class) else ""
    return (
        name_of(storage_class) + mark,
        storage_class.get("provisioner") or "",
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or "Immediate",
        bool(storage_class.get("allowVolumeExpansion")),
        created(storage_class, now),
    )


def priority_cells(priority: Object, now: str) -> tuple[Any, ...]:
    """Show a priority class."""
    return (
        name_of(priority),
        priority.get("value") or 0,
        bool(priority.get("globalDefault")),
        created(priority, now),
        priority.get("preemptionPolicy") or "",
    )


def lease_cells(lease: Object, now: str) -> tuple[Any, ...]:
    """Show a lease."""
    return name_of(lease), (lease.get("spec") or {}).get("holderIdentity") or "", created(lease, now)


def _phase(obj: Object) -> str:
    going = "Terminating" if obj["metadata"].get("deletionTimestamp") else ""
    return going or (obj.get("status") or {}).get("phase") or ""


def _modes(holder: Mapping[str, Any]) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in holder.get("accessModes") or ())


_EVENT_COLUMNS: tuple[Column, ...] = tuple(
    Column(name=name, path="", priority=priority)
    for name, priority in (
        ("Last Seen", 0),
        ("Type", 0),
        ("Reason", 0),
        ("Object", 0),
        ("Subobject", 1),
        ("Source", 1),
        ("Message", 0),
        ("First Seen", 1),
        ("Count", 1),
        ("Name", 1),
    )
)
_CLASSES = ("StorageClass", "VolumeAttributesClass")

PRINTED: Mapping[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {
    ("", "ConfigMap"): (columns("Name", "Data", "Age"), config_map_cells),
    ("", "Endpoints"): (columns("Name", "Endpoints", "Age"), endpoints_cells),
    ("", "Event"): (_EVENT_COLUMNS, event_cells),
    ("", "Namespace"): (columns("Name", "Status", "Age"), namespace_cells),
    ("", "Node"): (
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ),
        node_cells,
    ),
    ("", "PersistentVolume"): (
        columns(
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            *_CLASSES,
            "Reason",
            "Age",
            wide=("VolumeMode",),
        ),
        volume_cells,
    ),
    ("", "PersistentVolumeClaim"): (
        columns("Name", "Status", "Volume", "Capacity", "Access Modes", *_CLASSES, "Age", wide=("VolumeMode",)),
        claim_cells,
    ),
    ("", "Pod"): (POD_COLUMNS, pod_cells),
    ("", "Secret"): (columns("Name", "Type", "Data", "Age"), secret_cells),
    ("", "Service"): (
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
        service_cells,
    ),
    ("", "ServiceAccount"): (columns("Name", "Secrets", "Age"), account_cells),
    ("coordination.k8s.io", "Lease"): (columns("Name", "Holder", "Age"), lease_cells),
    ("events.k8s.io", "Event"): (_EVENT_COLUMNS, event_cells),
    ("discovery.k8s.io", "EndpointSlice"): (
        columns("Name", "AddressType", "Ports", "Endpoints", "Age"),
        slice_cells,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        columns("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"),
        priority_cells,
    ),
    ("storage.k8s.io", "StorageClass"): (
        columns("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        class_cells,
    ),
}
