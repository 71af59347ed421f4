"""What `kubectl get` shows of built-in kinds, as its users know it."""

from collections.abc import Mapping
from typing import Any

from paceline.objects.builtin.pod_cells import POD_COLUMNS, pod_cells
from paceline.objects.meta import Object, labels_of, name_of
from paceline.objects.scheme import Cells, Column
from paceline.objects.table import AGE, NONE, UNKNOWN, age

_ROLE = "node-role.kubernetes.io/"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def columns(*shown: str, wide: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Name the columns of a kind whose cells are worked out; the last ones only with `-o wide`."""
    plain = (Column(name=name, path="") for name in shown)
    return (*plain, *(Column(name=name, path="", priority=1) for name in wide))


def _created(obj: Object, now: str) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def node_cells(node: Object, now: str) -> tuple[Any, ...]:
    """Show a node."""
    status, info = node.get("status") or {}, (node.get("status") or {}).get("nodeInfo") or {}
    ready = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    words = {"True": "Ready", "False": "NotReady"}
    shown = [words.get(str(ready.get("Ready")), "Unknown")]
    if (node.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    roles = sorted(key.removeprefix(_ROLE) for key in labels_of(node) if key.startswith(_ROLE))
    addresses = {each.get("type"): each.get("address") for each in status.get("addresses") or ()}
    return (
        name_of(node),
        ",".join(shown),
        ",".join(roles) or NONE,
        _created(node, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    )


def event_cells(event: Object, now: str) -> tuple[Any, ...]:
    """Show an event."""
    series = event.get("series") or {}
    created = event["metadata"].get("creationTimestamp")
    first = event.get("firstTimestamp") or event.get("eventTime") or created
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    seen, count = age(last, now), series.get("count") or event.get("count") or 1
    if count > 1:
        seen = f"{seen} (x{count} over {age(first, now)})"
    about, source = event.get("involvedObject") or {}, event.get("source") or {}
    from_whom = (source.get("component") or event.get("reportingComponent"), source.get("host"))
    return (
        seen,
        event.get("type") or "",
        event.get("reason") or "",
        f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}",
        about.get("fieldPath") or "",
        ", ".join(part for part in from_whom if part),
        (event.get("message") or "").strip(),
        age(first, now),
        count,
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
        _created(claim, now),
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
        _created(volume, now),
        spec.get("volumeMode") or "<unset>",
    )


def service_cells(service: Object, now: str) -> tuple[Any, ...]:
    """Show a service."""
    spec = service.get("spec") or {}
    ports = (
        f"{port.get('port')}"
        + (f":{port['nodePort']}" if port.get("nodePort") else "")
        + f"/{port.get('protocol') or 'TCP'}"
        for port in spec.get("ports") or ()
    )
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return (
        name_of(service),
        spec.get("type") or "ClusterIP",
        spec.get("clusterIP") or NONE,
        ",".join(spec.get("externalIPs") or ()) or NONE,
        ",".join(ports) or NONE,
        _created(service, now),
        selector or NONE,
    )


def namespace_cells(namespace: Object, now: str) -> tuple[Any, ...]:
    """Show a namespace."""
    phase = (namespace.get("status") or {}).get("phase") or ""
    return name_of(namespace), phase, _created(namespace, now)


def config_map_cells(config_map: Object, now: str) -> tuple[Any, ...]:
    """Show a config map."""
    count = len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ())
    return name_of(config_map), count, _created(config_map, now)


def secret_cells(secret: Object, now: str) -> tuple[Any, ...]:
    """Show a secret, never what it holds."""
    return name_of(secret), secret.get("type") or "", len(secret.get("data") or ()), _created(secret, now)


def account_cells(account: Object, now: str) -> tuple[Any, ...]:
    """Show a service account."""
    return name_of(account), len(account.get("secrets") or ()), _created(account, now)


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

PRINTED: Mapping[tuple[str, str], tuple[tuple[Column, ...], Cells | None]] = {
    ("", "ConfigMap"): (columns("Name", "Data", "Age"), config_map_cells),
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
    ("coordination.k8s.io", "Lease"): (
        (Column(name="Holder", path=".spec.holderIdentity"), AGE),
        None,
    ),
}
