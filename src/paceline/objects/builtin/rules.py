"""Rules between the fields of built-in kinds that their schemas cannot say."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paceline.errors import Fault
from paceline.objects.faults import duplicate, forbidden, invalid, not_found, required
from paceline.objects.meta import Object
from paceline.objects.names import label_problem
from paceline.objects.quantity import parse
from paceline.objects.scheme import Lookup

_HIGHEST_PORT = 65535
_MAX_SECRET_BYTES = 1024 * 1024
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def pod_faults(pod: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a pod that its schema allows."""
    return tuple(pod_spec_faults(pod.get("spec") or {}, "spec"))


def pod_spec_faults(spec: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with what a pod runs; also for the template of a pod, wherever it lies."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume_faults(volume, f"{path}.volumes[{index}]", volumes)
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            yield from _name_faults(container["name"], f"{where}.name", names)
            yield from _container_faults(container, where)
            yield from _mount_faults(container, where, volumes)
    for field in ("hostname", "subdomain"):
        if spec.get(field) and (wrong := label_problem(spec[field])):
            yield invalid(f"{path}.{field}", spec[field], wrong)
    for field, lowest in (("terminationGracePeriodSeconds", 0), ("activeDeadlineSeconds", 1)):
        if spec.get(field) is not None and spec[field] < lowest:
            yield invalid(f"{path}.{field}", spec[field], _at_least(lowest))


def _name_faults(name: str, path: str, taken: set[str]) -> Iterator[Fault]:
    if not name:
        yield required(path)
    elif wrong := label_problem(name):
        yield invalid(path, name, wrong)
    elif name in taken:
        yield duplicate(path, name)
    taken.add(name)


def _volume_faults(volume: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    yield from _name_faults(volume["name"], f"{path}.name", taken)
    sources = [name for name in volume if name != "name"]
    if len(sources) > 1:
        yield forbidden(f"{path}.{sources[1]}", "may not specify more than 1 volume type")
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and not claim.get("claimName"):
        yield required(f"{path}.persistentVolumeClaim.claimName")


def _container_faults(container: Object, path: str) -> Iterator[Fault]:
    if not container.get("image"):
        yield required(f"{path}.image")
    elif container["image"] != container["image"].strip():
        hint = "must not have leading or trailing whitespace"
        yield invalid(f"{path}.image", container["image"], hint)
    ports: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port_faults(port, f"{path}.ports[{index}]", ports)
    for index, variable in enumerate(container.get("env") or ()):
        where = f"{path}.env[{index}]"
        if not variable.get("name"):
            yield required(f"{where}.name")
        elif "=" in variable["name"]:
            hint = "a valid environment variable name must not contain '='"
            yield invalid(f"{where}.name", variable["name"], hint)
        if variable.get("value") and variable.get("valueFrom"):
            hint = "may not be specified when `value` is not empty"
            yield invalid(f"{where}.valueFrom", "", hint)
    yield from _resource_faults(container.get("resources") or {}, f"{path}.resources")


def _port_faults(port: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    for field in ("containerPort", "hostPort"):
        number = port.get(field)
        if number is not None and not 0 < number <= _HIGHEST_PORT:
            hint = f"must be between 1 and {_HIGHEST_PORT}, inclusive"
            yield invalid(f"{path}.{field}", number, hint)
    if (name := port.get("name")) in taken:
        yield duplicate(f"{path}.name", name)
    elif name:
        taken.add(name)


def _resource_faults(resources: Mapping[str, Any], path: str) -> Iterator[Fault]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for which, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if parse(amount) < 0:
                yield invalid(f"{path}.{which}[{name}]", amount, _at_least(0))
    for name, amount in requests.items():
        if name in limits and parse(amount) > parse(limits[name]):
            hint = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(amount), hint)


def _mount_faults(container: Object, path: str, volumes: set[str]) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{index}]"
        if mount["name"] not in volumes:
            yield not_found(f"{where}.name", mount["name"])
        if mount["mountPath"] in taken:
            hint = "must be unique"
            yield invalid(f"{where}.mountPath", mount["mountPath"], hint)
        if ".." in str(mount.get("subPath") or "").split("/"):
            yield invalid(f"{where}.subPath", mount["subPath"], "must not contain '..'")
        taken.add(mount["mountPath"])


def claim_faults(claim: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a claim that its schema allows."""
    spec = claim.get("spec") or {}
    found: list[Fault] = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes", "at least 1 access mode is required"))
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        found.append(required("spec.resources[storage]"))
    elif parse(storage) <= 0:
        found.append(invalid("spec.resources[storage]", storage, "must be greater than zero"))
    return tuple(found)


def secret_faults(secret: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a secret that its schema allows."""
    found: list[Fault] = []
    size = 0
    for name, text in (secret.get("data") or {}).items():
        try:
            size += len(b64decode(text, validate=True))
        except (NotBase64, ValueError):
            # The value itself stays out of the message: it may be the secret.
            hint = "must be base64; text goes into stringData as it is"
            found.append(invalid(f"data[{name}]", "…", hint))
    if size > _MAX_SECRET_BYTES:
        found.append(forbidden("data", f"may have at most {_MAX_SECRET_BYTES} bytes, not {size}"))
    return tuple(found) + _data_key_faults(secret)


def config_map_faults(config_map: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a config map that its schema allows."""
    return _data_key_faults(config_map)


def _data_key_faults(holder: Object) -> tuple[Fault, ...]:
    hint = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    keys = (*(holder.get("data") or ()), *(holder.get("binaryData") or ()))
    wrong = (key for key in keys if not _DATA_KEY.fullmatch(key))
    return tuple(invalid(f"data[{key}]", key, hint) for key in wrong)


def service_faults(service: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a service that its schema allows."""
    spec = service.get("spec") or {}
    found: list[Fault] = []
    ports = spec.get("ports") or ()
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        found.append(required("spec.ports"))
    for index, port in enumerate(ports):
        if not 0 < port["port"] <= _HIGHEST_PORT:
            hint = f"must be between 1 and {_HIGHEST_PORT}, inclusive"
            found.append(invalid(f"spec.ports[{index}].port", port["port"], hint))
        if len(ports) > 1 and not port.get("name"):
            found.append(required(f"spec.ports[{index}].name"))
    return tuple(found)


def event_faults(event: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with an event: it lives where the object lives that it is about."""
    about = event.get("involvedObject") or {}
    lives_in, own = about.get("namespace") or "default", event["metadata"].get("namespace")
    if own and lives_in != own:
        return (invalid("involvedObject.namespace", lives_in, "does not match event.namespace"),)
    return ()


def lease_faults(lease: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a lease that its schema allows."""
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        return (invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"),)
    return ()


def _at_least(lowest: int) -> str:
    return f"must be greater than or equal to {lowest}"


CHECKS: Mapping[tuple[str, str], Callable[[Object, Lookup], tuple[Fault, ...]]] = {
    ("", "ConfigMap"): config_map_faults,
    ("", "Event"): event_faults,
    ("", "PersistentVolumeClaim"): claim_faults,
    ("", "Pod"): pod_faults,
    ("", "Secret"): secret_faults,
    ("", "Service"): service_faults,
    ("coordination.k8s.io", "Lease"): lease_faults,
}
