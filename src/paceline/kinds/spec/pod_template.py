"""Pod templates: decoding the fields that every kind reads, and returning changed copies.

In     a template as written.
Out    its faults, its claims, or a new template; the one passed in is never changed.
Never  knows a framework.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.apimachinery.field_errors import did_you_mean, duplicate, invalid, not_found
from paceline.apimachinery.quantity import parse
from paceline.errors import Fault
from paceline.kinds.decode import decode, misfits
from paceline.kinds.spec.fields import DNS_LABEL, Free

Name = Annotated[str, Meta(pattern=DNS_LABEL, max_length=63)]
Words = tuple[str, ...]
# More than any pod has; bounded, so that an API server knows the cost of rules about them.
MAX_CONTAINERS = 64


class _Loose(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the parts of a pod of which we read only some fields; the API server validates the others."""


class EnvVar(_Loose, frozen=True, kw_only=True):
    name: str
    value: str | None = None


class Mount(_Loose, frozen=True, kw_only=True):
    name: str
    mount_path: str


class Port(_Loose, frozen=True, kw_only=True):
    container_port: Annotated[int, Meta(ge=1, le=65535)]
    name: str | None = None


class Resources(_Loose, frozen=True, kw_only=True):
    requests: Free | None = None
    limits: Free | None = None


class Container(_Loose, frozen=True, kw_only=True):
    name: Name
    image: str
    command: Words | None = None
    args: Words | None = None
    working_dir: str | None = None
    ports: tuple[Port, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    resources: Resources | None = None
    volume_mounts: tuple[Mount, ...] | None = None


class ClaimSource(_Loose, frozen=True, kw_only=True):
    claim_name: str


class Volume(_Loose, frozen=True, kw_only=True):
    name: Name
    persistent_volume_claim: ClaimSource | None = None


class PodSpec(_Loose, frozen=True, kw_only=True):
    containers: Annotated[tuple[Container, ...], Meta(min_length=1, max_length=MAX_CONTAINERS)]
    init_containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None


class Metadata(_Loose, frozen=True, kw_only=True):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodTemplate(_Loose, frozen=True, kw_only=True):
    spec: PodSpec
    metadata: Metadata | None = None


class SketchedContainer(_Loose, frozen=True, kw_only=True):
    name: Name


class SketchedSpec(_Loose, frozen=True, kw_only=True):
    containers: Annotated[tuple[SketchedContainer, ...], Meta(max_length=MAX_CONTAINERS)] | None = None


class SketchedTemplate(_Loose, frozen=True, kw_only=True):
    spec: SketchedSpec | None = None
    metadata: Metadata | None = None


def read(template: Mapping[str, Any]) -> PodTemplate:
    """Return the decoded template; it must be valid."""
    return decode(template, PodTemplate)


def check_template(template: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
    """Return the faults that would prevent the template's pods from being created or started."""
    if malformed := misfits(template, PodTemplate, path):
        return malformed
    return tuple(_check(read(template).spec, f"{path}.spec"))


def claims_in(template: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield the claims that a valid template mounts, each with the path that names it."""
    for index, volume in enumerate(read(template).spec.volumes or ()):
        if volume.persistent_volume_claim is not None:
            where = f"{path}.spec.volumes[{index}].persistentVolumeClaim.claimName"
            yield where, volume.persistent_volume_claim.claim_name


def with_container(template: Mapping[str, Any], index: int, **changes: object) -> Free:
    """Return a copy of a template with fields of one container set, or removed if the value is None."""
    spec = template["spec"]
    containers = [dict(container) for container in spec["containers"]]
    changed = {**containers[index], **changes}
    containers[index] = {key: value for key, value in changed.items() if value is not None}
    return {**template, "spec": {**spec, "containers": containers}}


def with_env(template: Mapping[str, Any], env: Mapping[str, str]) -> Free:
    """Return a copy of a template with environment variables added to all containers and init containers.

    They come before the container's own, because Kubernetes expands `$(NAME)` only from variables defined earlier. A
    variable of the same name in the container is kept and wins.
    """

    def extended(container: Mapping[str, Any]) -> Free:
        existing = container.get("env") or []
        names = {variable["name"] for variable in existing}
        added = [{"name": name, "value": value} for name, value in env.items() if name not in names]
        return {**container, "env": [*added, *existing]}

    return each_container(template, extended)


def literal(text: str) -> str:
    """Return text escaped for a command, where Kubernetes would expand `$(NAME)`."""
    return text.replace("$", "$$")


def with_labels(template: Mapping[str, Any], labels: Mapping[str, str]) -> Free:
    """Return a copy of a template with labels added to its pods."""
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def each_container(template: Mapping[str, Any], change: Any) -> Free:
    """Return a copy of a template with `change` applied to all containers and init containers."""
    spec = dict(template["spec"])
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [change(container) for container in spec[key]]
    return {**template, "spec": spec}


def with_one_volume_per_claim(template: Mapping[str, Any]) -> Free:
    """Return a copy of a template in which no two volumes name the same claim; the mounts share the first of them.

    A kubelet never mounts the second one (kubernetes#127004): the pod would hang without an event. A mount of a volume
    that was read-only becomes read-only itself.
    """
    volumes_by_claim: dict[str, list[Free]] = {}
    for volume in template["spec"].get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            volumes_by_claim.setdefault(claim, []).append(volume)
    shared = [volumes for volumes in volumes_by_claim.values() if len(volumes) > 1]
    if not shared:
        return dict(template)
    merged = {volumes[0]["name"]: _merged(volumes) for volumes in shared}
    first_names = {volume["name"]: volumes[0]["name"] for volumes in shared for volume in volumes}
    read_only = {volume["name"] for volumes in shared for volume in volumes if _is_read_only(volume)}

    def renamed(mount: Free, **fields: Any) -> Free:
        return {**mount, "name": first_names.get(mount["name"], mount["name"]), **fields}

    def remounted(container: Mapping[str, Any]) -> Free:
        mounts = [
            renamed(mount, **({"readOnly": True} if mount["name"] in read_only else {}))
            for mount in container.get("volumeMounts") or ()
        ]
        devices = [renamed(device) for device in container.get("volumeDevices") or ()]
        changes = {"volumeMounts": mounts, "volumeDevices": devices}
        return {**container, **{key: value for key, value in changes.items() if value}}

    changed = each_container(template, remounted)
    volumes = [
        merged.get(volume["name"], volume)
        for volume in template["spec"]["volumes"]
        if first_names.get(volume["name"], volume["name"]) == volume["name"]
    ]
    return {**changed, "spec": {**changed["spec"], "volumes": volumes}}


def _merged(volumes: list[Free]) -> Free:
    """Return the first of several volumes of a claim; it can be written to if one of them can."""
    source = {key: value for key, value in volumes[0]["persistentVolumeClaim"].items() if key != "readOnly"}
    if all(_is_read_only(volume) for volume in volumes):
        source["readOnly"] = True
    return {**volumes[0], "persistentVolumeClaim": source}


def _is_read_only(volume: Mapping[str, Any]) -> bool:
    return bool(volume["persistentVolumeClaim"].get("readOnly"))


def without_init(template: Mapping[str, Any]) -> Free:
    """Return a copy of a template without its init containers."""
    spec = {key: value for key, value in template["spec"].items() if key != "initContainers"}
    return {**template, "spec": spec}


def _check(spec: PodSpec, path: str) -> Iterator[Fault]:
    volumes = spec.volumes or ()
    yield from check_unique([volume.name for volume in volumes], f"{path}.volumes")
    groups = {"initContainers": spec.init_containers or (), "containers": spec.containers}
    for group, containers in groups.items():
        yield from check_unique([container.name for container in containers], f"{path}.{group}")
        for index, container in enumerate(containers):
            container_path = f"{path}.{group}[{index}]"
            yield from _check_mounts(container, {volume.name for volume in volumes}, container_path)
            yield from _check_resources(container.resources or Resources(), f"{container_path}.resources")


def check_unique(names: Iterable[str], path: str, field: str = "name") -> Iterator[Fault]:
    """Yield a fault for each entry of a list whose field has the value of an earlier entry."""
    earlier_names: set[str] = set()
    for index, name in enumerate(names):
        if name in earlier_names:
            yield duplicate(f"{path}[{index}].{field}", name)
        earlier_names.add(name)


def _check_mounts(container: Container, volumes: set[str], path: str) -> Iterator[Fault]:
    for index, mount in enumerate(container.volume_mounts or ()):
        if mount.name not in volumes:
            near = did_you_mean(mount.name, volumes)
            hint = f"the pod has no volume of this name{near or '; declare it under volumes'}"
            yield not_found(f"{path}.volumeMounts[{index}].name", mount.name, hint)


def _check_resources(resources: Resources, path: str) -> Iterator[Fault]:
    requests, limits = resources.requests or {}, resources.limits or {}
    for group, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            yield from _check_amount(name, value, f"{path}.{group}.{name}")
    for name, value in requests.items():
        yield from _check_request(name, value, limits, f"{path}.requests.{name}")


def _check_amount(name: str, value: object, path: str) -> Iterator[Fault]:
    try:
        amount = parse(str(value))
    except ValueError as error:
        yield invalid(path, value, str(error))
        return
    if amount < 0:
        yield invalid(path, value, "must be at least 0")
    elif _is_device(name) and amount != int(amount):
        yield invalid(path, value, "must be a whole number, because it counts devices")


def _check_request(name: str, value: object, limits: Free, path: str) -> Iterator[Fault]:
    if name not in limits:
        if _is_device(name):
            yield invalid(path, value, "set the device in limits; its request then defaults to the limit")
        return
    try:
        request, limit = parse(str(value)), parse(str(limits[name]))
    except ValueError:
        # _check_amount has already reported it.
        return
    if _is_device(name) and request != limit:
        yield invalid(path, value, f"the request of a device must equal its limit, {limits[name]}")
    elif request > limit:
        yield invalid(path, value, f"must not exceed the limit, {limits[name]}; lower the request or raise the limit")


def _is_device(name: str) -> bool:
    """Return whether a resource is an extended one (nvidia.com/gpu), not one of Kubernetes itself."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
