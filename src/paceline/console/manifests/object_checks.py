"""Checks of one object: the faults and warnings of its kind, and the resources that a job asks for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import Any

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.field_errors import invalid, required, unsupported
from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.apimachinery.schema import Shape, Shapes, prune
from paceline.apimachinery.scheme import Resource
from paceline.errors import BadRequest, Fault, Invalid
from paceline.kinds import registry
from paceline.kinds.kind_types import API_VERSION, CannotRun
from paceline.kinds.resource_totals import totals

UNKNOWN = "unknown field"

# Names of the claims that exist, by namespace. The claims of other namespaces are not checked.
Claims = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """What all replicas of a job ask for together."""

    replicas: int = 0
    requests: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


def faults_of(obj: Any, claims: Claims) -> tuple[Fault, ...]:
    """Return the faults of one object: its type, fields that its kind does not have, and the kind's own rules."""
    if not isinstance(obj, dict):
        return (invalid("", obj, "an object is a mapping that begins with apiVersion, kind and metadata"),)
    resource = _resource(obj)
    if resource is None:
        return tuple(_type_faults(obj))
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return (required("metadata.name", "set metadata with a name"),)
    broken = _builtin_faults(obj, resource) if resource.is_builtin else _kind_faults(obj, resource, claims)
    paths = {fault.path for fault in broken}
    return (*broken, *(fault for fault in _unknown_fields(obj, resource) if fault.path not in paths))


def _kind_faults(obj: Object, resource: Resource, claims: Claims) -> tuple[Fault, ...]:
    broken = tuple(resource.check(obj, lambda _plural, _namespace: ()))
    namespace = namespace_of(obj)
    if broken or namespace not in claims:
        return broken
    return registry.claim_faults(obj, lambda _plural, _namespace: tuple(claims[namespace]))


def _builtin_faults(obj: Object, resource: Resource) -> tuple[Fault, ...]:
    try:
        decoded = read_struct(deepcopy(obj), struct_of(resource.group, resource.version, resource.kind))
    except BadRequest as error:
        path, _, hint = str(error).partition(": ")
        return (invalid(path if hint else "", None, hint or path),)
    if not name_of(decoded) and not decoded["metadata"].get("generateName"):
        return (required("metadata.name", "set a name"),)
    resource.default(decoded)
    return tuple(resource.check(decoded, lambda _plural, _namespace: ()))


def _unknown_fields(obj: Object, resource: Resource) -> Iterator[Fault]:
    for unknown in prune(deepcopy(obj), _shape(resource.api_version, resource.kind)):
        yield invalid(unknown.path, None, f"{UNKNOWN}{unknown.suggestion}")


def _type_faults(obj: Object) -> Iterator[Fault]:
    """Yield what is wrong with apiVersion and kind; nothing for a kind that only the server knows."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    versions = {kind: version for version, kind in _resources()}
    if not version:
        hint = f', did you mean "{versions[kind]}"?' if kind in versions else ""
        yield required("apiVersion", f"set the apiVersion, such as {API_VERSION}{hint}")
    if not kind:
        yield required("kind", "set the kind, such as PyTorchTrainingJob")
    if not version or not kind:
        return
    if kind in versions:
        yield invalid("apiVersion", version, f'this kind has another one, did you mean "{versions[kind]}"?')
    elif kinds := [name for group_version, name in _resources() if group_version == version]:
        yield unsupported("kind", kind, kinds)


def warnings_of(obj: Any) -> tuple[str, ...]:
    """Return warnings for the author: old names and shapes, and kinds that are stored but cannot run."""
    if not isinstance(obj, dict) or (registry.kind_of(obj) or registry.service_of(obj)) is None:
        return ()
    old = registry.warnings(obj)
    try:
        _expanded(obj)
    except CannotRun as error:
        return (*old, f"kind {obj['kind']}: {error}")
    except Invalid:
        pass
    return old


def pod_faults_of(obj: Any) -> tuple[Fault, ...]:
    """Return why the pods of a valid job would be refused: the job itself is created, and then waits for them."""
    if not isinstance(obj, dict) or registry.kind_of(obj) is None or registry.faults(obj):
        return ()
    kind, spec = registry.read(obj)
    as_written = kind.normalise(obj).as_written
    faults = [
        replace(fault, path=as_written(f"{path}.{fault.path}"))
        for path, template in kind.templates(spec, "spec")
        for fault in _builtin_faults(_pod(template), _resources()["v1", "Pod"])
    ]
    return tuple({(fault.path, fault.hint): fault for fault in faults}.values())


def _pod(template: Mapping[str, Any]) -> Object:
    # Controllers replace the restart policy, whatever is written.
    spec = {**(template.get("spec") or {}), "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}


def job_totals(obj: Object) -> JobTotals:
    """Return the sums over all replicas of a job; nothing if it is not a job, has faults or cannot run."""
    if registry.kind_of(obj) is None:
        return JobTotals()
    try:
        gang = _expanded(obj)
    except Invalid:
        return JobTotals()
    kind, spec = registry.read(obj)
    counts = Counter(place.role for place in kind.places(spec))
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    for member in {member.place.role: member for member in gang.members}.values():
        total, count = totals(replace(gang, members=(member,))), counts[member.place.role]
        _add(requests, total.requests, count)
        _add(limits, total.limits, count)
    return JobTotals(replicas=counts.total(), requests=_numbers(requests), limits=_numbers(limits))


def _add(sums: dict[str, Decimal], amounts: Mapping[str, Decimal], count: int) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, Decimal(0)) + amount * count


def _numbers(sums: Mapping[str, Decimal]) -> dict[str, float]:
    return {name: float(amount) for name, amount in sums.items()}


def _expanded(obj: Object) -> Any:
    """Return the gang or the workload of an object with one replica per type: thousands would take seconds."""
    if registry.kind_of(obj) is None:
        return registry.expand_service(obj)
    if broken := registry.faults(obj):
        raise Invalid(broken)
    small = deepcopy(registry.today(obj).obj)
    small["kind"] = obj["kind"]
    small["spec"].pop("elastic", None)
    for entry in (*(small["spec"].get("replicaSpecs") or ()), small["spec"].get("worker") or {}):
        entry.pop("replicas", None)
    kind, spec = registry.read(small)
    return registry.expand(small, kind.ports(spec))[1]


@cache
def _resources() -> dict[tuple[str, str], Resource]:
    """Return all kinds by apiVersion and kind."""
    everything = (*builtin_resources(), *registry.resources())
    return {(resource.api_version, resource.kind): resource for resource in everything}


def _resource(obj: Object) -> Resource | None:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    return _resources().get((version, kind)) if isinstance(version, str) and isinstance(kind, str) else None


@cache
def _shapes() -> Shapes:
    return Shapes(builtin_components())


@cache
def _shape(api_version: str, kind: str) -> Shape:
    return _shapes().of_object(_resources()[api_version, kind].schema)
