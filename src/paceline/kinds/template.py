"""Pod templates: reading the parts that every kind looks at, and writing changed copies.

In     a template as written.
Out    its faults, its claims, or a new template; the one that came in is never changed.
Never  knows a framework.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.decode import decode, misfits
from paceline.kinds.fields import DNS_LABEL, Free
from paceline.objects.faults import did_you_mean, duplicate, invalid, not_found
from paceline.objects.quantity import parse

Name = Annotated[str, Meta(pattern=DNS_LABEL, max_length=63)]
Words = tuple[str, ...]


class _Loose(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a pod of which we read some fields; the API server knows the others."""


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
    containers: Annotated[tuple[Container, ...], Meta(min_length=1)]
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
    containers: tuple[SketchedContainer, ...] | None = None


class SketchedTemplate(_Loose, frozen=True, kw_only=True):
    spec: SketchedSpec | None = None
    metadata: Metadata | None = None


def check_sketch(template: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
    """Name what would keep a template that holds only what differs from being filled in."""
    return misfits(template, SketchedTemplate, path)


def read(template: Mapping[str, Any]) -> PodTemplate:
    """Read a template that has no faults."""
    return decode(template, PodTemplate)


def check_template(template: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
    """Name what would keep the template's pods from being made or from starting."""
    if wrong := misfits(template, PodTemplate, path):
        return wrong
    return tuple(_check(read(template).spec, f"{path}.spec"))


def claims_in(template: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Give the claims a faultless template mounts, each with the path that names it."""
    for index, volume in enumerate(read(template).spec.volumes or ()):
        if volume.persistent_volume_claim is not None:
            where = f"{path}.spec.volumes[{index}].persistentVolumeClaim.claimName"
            yield where, volume.persistent_volume_claim.claim_name


def with_container(template: Mapping[str, Any], index: int, **changes: object) -> Free:
    """Copy a template with fields of one container set, or taken out where the change is None."""
    spec = template["spec"]
    containers = [dict(each) for each in spec["containers"]]
    changed = {**containers[index], **changes}
    containers[index] = {key: value for key, value in changed.items() if value is not None}
    return {**template, "spec": {**spec, "containers": containers}}


def with_env(template: Mapping[str, Any], env: Mapping[str, str]) -> Free:
    """Copy a template with variables for every container, init containers too.

    They come before the container's own, because Kubernetes expands `$(NAME)` only from variables defined earlier. A
    container's own variable of the same name stays and wins.
    """

    def told(container: Mapping[str, Any]) -> Free:
        own = container.get("env") or []
        taken = {each["name"] for each in own}
        ours = [{"name": name, "value": value} for name, value in env.items() if name not in taken]
        return {**container, "env": [*ours, *own]}

    return each_container(template, told)


def literal(text: str) -> str:
    """Write text into a command so that Kubernetes, which expands `$(NAME)` there, leaves it as it is."""
    return text.replace("$", "$$")


def with_labels(template: Mapping[str, Any], labels: Mapping[str, str]) -> Free:
    """Copy a template with labels of ours on its pods."""
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}


def each_container(template: Mapping[str, Any], change: Any) -> Free:
    """Copy a template with every container changed, init containers too."""
    spec = dict(template["spec"])
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [change(each) for each in spec[key]]
    return {**template, "spec": spec}


def without_init(template: Mapping[str, Any]) -> Free:
    """Copy a template without its init containers."""
    kept = {key: value for key, value in template["spec"].items() if key != "initContainers"}
    return {**template, "spec": kept}


def _check(spec: PodSpec, path: str) -> Iterator[Fault]:
    volumes = spec.volumes or ()
    yield from _twice([each.name for each in volumes], f"{path}.volumes")
    groups = {"initContainers": spec.init_containers or (), "containers": spec.containers}
    for group, containers in groups.items():
        yield from _twice([each.name for each in containers], f"{path}.{group}")
        for index, container in enumerate(containers):
            where = f"{path}.{group}[{index}]"
            yield from _check_mounts(container, {each.name for each in volumes}, where)
            yield from _check_resources(container.resources or Resources(), f"{where}.resources")


def _twice(names: list[str], path: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)


def _check_mounts(container: Container, volumes: set[str], path: str) -> Iterator[Fault]:
    for index, mount in enumerate(container.volume_mounts or ()):
        if mount.name not in volumes:
            near = did_you_mean(mount.name, volumes)
            hint = f"no volume of the pod has this name{near or '; declare it under volumes'}"
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
        yield invalid(path, value, "ask for at least 0")
    elif _is_device(name) and amount != int(amount):
        yield invalid(path, value, "devices are counted in whole numbers")


def _check_request(name: str, value: object, limits: Free, path: str) -> Iterator[Fault]:
    if name not in limits:
        if _is_device(name):
            yield invalid(path, value, "devices must be in limits; requests are then the same by themselves")
        return
    try:
        request, limit = parse(str(value)), parse(str(limits[name]))
    except ValueError:
        # Said already, where the amount stands.
        return
    if _is_device(name) and request != limit:
        yield invalid(path, value, f"devices cannot be over-committed; ask for {limits[name]}, as the limit does")
    elif request > limit:
        yield invalid(path, value, f"the limit is {limits[name]}; ask for at most that, or raise the limit")


def _is_device(name: str) -> bool:
    """Tell an extended resource (nvidia.com/gpu) from one that Kubernetes itself knows."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
