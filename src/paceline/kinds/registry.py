"""The registry of kinds, and the questions that other packages ask about an object of any kind."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec

from paceline.apimachinery.field_errors import did_you_mean, invalid, not_found, required, unsupported
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.name_validation import better_name, label_problem, service_problem
from paceline.apimachinery.scheme import Lookup, Resource, no_change_faults, no_warnings
from paceline.errors import Fault, Invalid
from paceline.kinds.apps import expand as apps
from paceline.kinds.apps import job_record, training_app
from paceline.kinds.compat import Normalized
from paceline.kinds.decode import decode, misfits
from paceline.kinds.immutability import change_faults, frozen_paths, hint_of
from paceline.kinds.interactive import explorer, notebook, tensorboard
from paceline.kinds.jobs import beam, colossalai, deepspeed, generic, mpi, pytorch, tensorflow, xgboost
from paceline.kinds.kind_types import (
    API_VERSION,
    GROUP,
    OWN_GROUP,
    SERVICE_GROUP,
    VERSION,
    Claim,
    JobKind,
    Kind,
    PlainKind,
    Ports,
    ServiceKind,
)
from paceline.kinds.name_rules import HASH_LENGTH, pod_name_room, service_room, service_too_long, too_long
from paceline.kinds.pod_injection import inject
from paceline.kinds.schema import Components, crd, object_schema
from paceline.kinds.spec.data import DataFlowSpec, check_fed, fed_claims
from paceline.kinds.spec.pod_template import claims_in, with_one_volume_per_claim
from paceline.kinds.spec.run_policy import Limits, queue_of, with_limits
from paceline.model.gang import Gang, JobNaming, JobProgress, PodTools
from paceline.model.interactive import SHORT, InteractiveWorkload

KINDS: tuple[JobKind, ...] = (
    pytorch.KIND,
    generic.KIND,
    tensorflow.KIND,
    xgboost.KIND,
    mpi.KIND,
    deepspeed.KIND,
    colossalai.KIND,
    beam.KIND,
    # Names that T9k's own pages use. Each has its own CRD, so that objects are stored as they were written.
    replace(
        tensorflow.KIND,
        kind="TensorFlowJob",
        plural="tensorflowjobs",
        short_names=(),
        alias_of=tensorflow.KIND.kind,
    ),
    replace(
        deepspeed.KIND,
        kind="DeepspeedJob",
        # Both kinds have the same name in lower case, but the plurals of two CRDs must differ.
        plural="deepspeed-jobs",
        singular="deepspeed-job",
        short_names=(),
        alias_of=deepspeed.KIND.kind,
    ),
)
SERVICES: tuple[ServiceKind, ...] = (tensorboard.KIND, notebook.KIND, explorer.KIND)
PLAIN: tuple[PlainKind, ...] = (training_app.KIND, job_record.KIND)

DIGEST_LENGTH = 12
MAX_CLAIMS_SHOWN = 8
# The environment variable from which the chart's trainers read their cluster.
CLUSTER = "CLUSTER_CONFIG"


def kind_of(obj: Object) -> JobKind | None:
    """Return the kind of a job; None if the object is not a job."""
    if obj.get("apiVersion") != API_VERSION:
        return None
    return next((kind for kind in KINDS if kind.kind == obj.get("kind")), None)


def service_of(obj: Object) -> ServiceKind | None:
    """Return the kind of a service; None if the object is not a service."""
    kinds = (kind for kind in SERVICES if kind.kind == obj.get("kind"))
    return next((kind for kind in kinds if obj.get("apiVersion") == f"{kind.group}/{VERSION}"), None)


def today(obj: Object) -> Normalized:
    """Return a job or service migrated to the current shape; raise Invalid if it is neither."""
    kind = kind_of(obj) or service_of(obj)
    if kind is None:
        raise Invalid((_no_job(obj),))
    return kind.normalise(obj)


def warnings(obj: Object) -> tuple[str, ...]:
    """Return warnings for the author: old names and shapes, each with the current one."""
    return today(obj).warnings


def read(obj: Object) -> tuple[JobKind, msgspec.Struct]:
    """Return a job's kind and its decoded spec, whatever its shape; raise Invalid with all malformed fields."""
    kind = kind_of(obj)
    if kind is None:
        raise Invalid((_no_job(obj),))
    return kind, _decoded(kind, kind.normalise(obj))


def read_service(obj: Object) -> tuple[ServiceKind, msgspec.Struct]:
    """Return a service's kind and its decoded spec, whatever its shape; raise Invalid with all malformed fields."""
    kind = service_of(obj)
    if kind is None:
        raise Invalid((unsupported("kind", obj.get("kind"), [service.kind for service in SERVICES]),))
    return kind, _decoded(kind, kind.normalise(obj))


def faults(obj: Object) -> tuple[Fault, ...]:
    """Return all faults of a job that can be found without a cluster."""
    return _examined(obj).faults


def app_faults(obj: Object) -> tuple[Fault, ...]:
    """Return all faults of an application that can be found without a cluster."""
    return apps.app_faults(obj, faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Examined:
    """The result of validating a job: its faults or, if it has none, the decoded job."""

    faults: tuple[Fault, ...] = ()
    read: tuple[JobKind, msgspec.Struct, Normalized] | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that the job needs; none if it has faults."""
        return _claims(*self.read) if self.read else ()


def _examined(obj: Object) -> _Examined:
    """Decode a job and collect all its faults."""
    kind = kind_of(obj)
    if kind is None:
        return _Examined(faults=(_no_job(obj), *_name_faults(obj, 0)))
    normalized = kind.normalise(obj)
    try:
        spec = _decoded(kind, normalized)
    except Invalid as error:
        return _Examined(faults=(*error.faults, *_name_faults(obj, 0)))
    broken_rules = kind.check(spec, "spec")
    if isinstance(spec, DataFlowSpec) and not broken_rules:
        broken_rules = tuple(check_fed(spec, kind.templates(spec, "spec"), "spec"))
    if broken_rules:
        return _Examined(faults=(*_as_written(broken_rules, normalized), *_name_faults(obj, 0)))
    bad_name = _name_faults(obj, max(len(f"-{place}") for place in kind.places(spec)))
    return _Examined(faults=bad_name) if bad_name else _Examined(read=(kind, spec, normalized))


def service_faults(obj: Object) -> tuple[Fault, ...]:
    """Return all faults of a service that can be found without a cluster."""
    kind = service_of(obj)
    if kind is None:
        return (unsupported("kind", obj.get("kind"), [service.kind for service in SERVICES]),)
    normalized = kind.normalise(obj)
    try:
        spec = _decoded(kind, normalized)
    except Invalid as error:
        return (*error.faults, *_service_name_faults(obj, kind))
    return (*_as_written(kind.check(spec, "spec"), normalized), *_service_name_faults(obj, kind))


def _service_name_faults(obj: Object, kind: ServiceKind) -> tuple[Fault, ...]:
    """Return the faults of the name: the names of the pod and of its Service are derived from it."""
    name = name_of(obj)
    if not name:
        return (required("metadata.name", f"set a name, such as my-{kind.kind.lower()}"),)
    if problem := label_problem(name):
        return (invalid("metadata.name", name, f"{problem}{better_name(name)}"),)
    room = service_room(SHORT[kind.plural])
    if len(name) > room:
        return (invalid("metadata.name", name, service_too_long(room)),)
    return ()


def expand(
    obj: Object,
    ports: Mapping[str, int],
    *,
    progress: JobProgress = JobProgress(),  # noqa: B008 - a frozen value
    tools: PodTools = PodTools(),  # noqa: B008 - as above
) -> tuple[JobNaming, Gang]:
    """Return a valid job as a gang, independent of its framework; `tools` is the image of our own containers."""
    kind, spec = read(obj)
    site = JobNaming(
        job=name_of(obj),
        namespace=namespace_of(obj),
        stem=stem_of(obj),
        ports=ports,
        progress=progress,
        tools=tools,
    )
    queue, priority = queue_of(getattr(spec, "scheduler", None))
    policy = getattr(spec, "run_policy", None)
    gang = with_limits(kind.expand(spec, site), policy if isinstance(policy, Limits) else None)
    if isinstance(spec, DataFlowSpec):
        gang = inject(gang, spec, site)
    members = tuple(replace(member, template=with_one_volume_per_claim(member.template)) for member in gang.members)
    return site, replace(gang, members=members, queue=queue, priority=priority)


def gang_of(job: Object) -> Gang | None:
    """Return a job as a gang for display; None if it is invalid, which its conditions report."""
    try:
        return expand(job, ports_of(job))[1]
    except Invalid:
        return None


def expand_service(
    obj: Object,
    tools: PodTools = PodTools(),  # noqa: B008 - a frozen value
) -> InteractiveWorkload:
    """Return a service as a pod with an HTTP port, independent of its program; raise Invalid with all its faults.

    `tools` is the image of our own containers.
    """
    if broken_rules := service_faults(obj):
        raise Invalid(broken_rules)
    kind, spec = read_service(obj)
    site = JobNaming(job=name_of(obj), namespace=namespace_of(obj), stem=stem_of(obj), ports={}, tools=tools)
    queue, priority = queue_of(getattr(spec, "scheduler", None))
    window = kind.expand(spec, site)
    template = with_one_volume_per_claim(window.template)
    digest = f"{window.digest}{_digest(obj)}"
    return replace(window, template=template, queue=queue, priority=priority, digest=digest)


def may_have_tensorboard(kind: JobKind) -> bool:
    """Return whether jobs of a kind can have their own TensorBoard."""
    return "tensorboard_spec" in kind.spec.__struct_fields__


def tensorboard_of(obj: Object) -> Object | None:
    """Return the spec of a job's TensorBoard, or None if the job asks for none."""
    # No older shape has it elsewhere, and most jobs ask for none.
    if "tensorboardSpec" not in obj["spec"]:
        return None
    spec = today(obj).obj["spec"].get("tensorboardSpec")
    return spec if isinstance(spec, dict) else None


def _digest(obj: Object) -> str:
    """Return a digest of the fields that a pod is created from; a change of any other field keeps the pod."""
    excluded = ("suspend", "idleSeconds", "serviceType")
    spec = {key: value for key, value in today(obj).obj["spec"].items() if key not in excluded}
    return sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def ports_of(obj: Object) -> Ports:
    """Return the ports that a job's members share, with their preferred numbers; raise Invalid if it has faults."""
    examined = _examined(obj)
    if examined.read is None:
        raise Invalid(examined.faults)
    kind, spec, _ = examined.read
    return kind.ports(spec)


def cluster_spec(obj: Object, ports: Mapping[str, int]) -> str:
    """Return the cluster spec of a job's members, in the format of the chart's trainers.

    Empty if the job's kind has none, a port is not allocated yet, or the job has faults.
    """
    examined = _examined(obj)
    if examined.read is None:
        return ""
    kind, spec, _ = examined.read
    if any(name not in ports for name in kind.ports(spec)):
        return ""
    _, gang = expand(obj, ports)
    containers = gang.members[0].template["spec"]["containers"] if gang.members else ()
    env = [variable for container in containers for variable in container.get("env") or ()]
    return str(next((variable.get("value") for variable in env if variable["name"] == CLUSTER), ""))


def is_on_host(obj: Object) -> bool:
    """Return whether a member uses the host network, where other jobs may listen on the same ports."""
    kind, spec = read(obj)
    return any((template.get("spec") or {}).get("hostNetwork") for _, template in kind.templates(spec, "spec"))


def is_paused(obj: Object) -> bool:
    """Return whether a job is paused by its spec, in any shape."""
    mode = today(obj).obj["spec"].get("runMode") or {}
    return bool((mode.get("pause") or {}).get("enabled"))


def is_suspended(obj: Object) -> bool:
    """Return whether a job is suspended by its spec, usually by a queueing system; it then has no pods."""
    return bool(obj["spec"].get("suspend"))


def stem_of(obj: Object) -> str:
    """Return the prefix of all pod names of a job; it depends on the uid, so a recreated job has another one."""
    return f"{name_of(obj)}-{sha256(uid_of(obj).encode()).hexdigest()[:HASH_LENGTH]}"


def claims_of(obj: Object) -> tuple[Claim, ...]:
    """Return the claims that a valid job uses, each with the path that names it, without repeated paths."""
    kind, spec = read(obj)
    return _claims(kind, spec, kind.normalise(obj))


def _claims(kind: JobKind, spec: msgspec.Struct, normalized: Normalized) -> tuple[Claim, ...]:
    mounted = [claim for where, template in kind.templates(spec, "spec") for claim in claims_in(template, where)]
    data_claims = fed_claims(spec, "spec") if isinstance(spec, DataFlowSpec) else ()
    claims = dict.fromkeys([*mounted, *kind.claims(spec, "spec"), *data_claims])
    return tuple(dict.fromkeys((normalized.as_written(where), name) for where, name in claims))


def every_kind() -> tuple[Kind, ...]:
    """Return all kinds: jobs, services and plain ones."""
    return (*KINDS, *SERVICES, *PLAIN)


def resources() -> tuple[Resource, ...]:
    """Return every kind as the embedded API server serves it."""
    return tuple(_resource(kind) for kind in every_kind())


def crds(components: Mapping[str, Any]) -> tuple[Object, ...]:
    """Return every kind as a CustomResourceDefinition for a real cluster."""
    shared = Components(schemas=components)
    return tuple(crd(kind, shared, object_schema(kind)) for kind in every_kind())


def resources_with_crds(components: Mapping[str, Any]) -> Iterator[tuple[Resource, Object]]:
    """Yield every kind as `resources` and as `crds` do, with the schema computed once: every start needs both."""
    shared = Components(schemas=components)
    for kind in every_kind():
        resource = _resource(kind)
        yield resource, crd(kind, shared, resource.schema)


def _resource(kind: Kind) -> Resource:
    schema = object_schema(kind)
    return Resource(
        group=kind.group,
        version=VERSION,
        kind=kind.kind,
        plural=kind.plural,
        singular=kind.singular or kind.kind.lower(),
        short_names=kind.short_names,
        categories=("paceline",),
        subresources=("status", "scale") if kind.scale else ("status",),
        scale=kind.scale,
        schema_name=f"{'.'.join(reversed(kind.group.split('.')))}.{VERSION}.{kind.kind}",
        schema=schema,
        columns=kind.columns,
        check=_CHECKS[kind.group],
        warn=no_warnings if kind.group == OWN_GROUP else _warn,
        check_change=_change_check(kind, schema["properties"]["spec"]),
    )


def _change_check(kind: Kind, spec: Mapping[str, Any]) -> Callable[[Object, Object], tuple[Fault, ...]]:
    """Return the check of an update: which frozen fields of the spec have changed."""
    if kind.mutable is None:
        return no_change_faults
    frozen = frozen_paths(spec, kind.mutable)
    return partial(change_faults, frozen=frozen, hint=hint_of(kind.mutable))


def _check(obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    return faults(obj)


def _check_service(obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    return service_faults(obj)


def _check_plain(obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    if apps.is_app(obj):
        return app_faults(obj)
    return misfits(obj.get("spec"), job_record.JobRecord, "spec")


# The validation of an object depends on its API group.
_CHECKS = {GROUP: _check, SERVICE_GROUP: _check_service, OWN_GROUP: _check_plain}


def claim_faults(obj: Object, lookup: Lookup) -> tuple[Fault, ...]:
    """Return a fault for each claim that a valid job or service uses and that does not exist.

    An API server accepts such an object, which waits for the claim: objects are created in any order.
    """
    claims = _claims_of_any(obj)
    existing = lookup("persistentvolumeclaims", namespace_of(obj)) if claims else ()
    return tuple(
        not_found(where, name, _claim_hint(name, existing, namespace_of(obj)))
        for where, name in claims
        if name not in existing
    )


def _claims_of_any(obj: Object) -> tuple[Claim, ...]:
    if service_of(obj) is None:
        return _examined(obj).claims
    if service_faults(obj):
        return ()
    kind, spec = read_service(obj)
    return kind.claims(spec, "spec")


def _warn(obj: Object, lookup: Lookup | None) -> tuple[str, ...]:
    """Return the warnings of an API server about a valid object."""
    faults = () if lookup is None else claim_faults(obj, lookup)
    missing = (f'{fault.path}: "{fault.value}": {fault.hint}; it waits until the claim exists' for fault in faults)
    return (*warnings(obj), *missing)


def _claim_hint(name: str, existing: tuple[str, ...], namespace: str) -> str:
    if near := did_you_mean(name, existing):
        return f"namespace {namespace} has no such claim{near}"
    listed = ", ".join(sorted(existing)[:MAX_CLAIMS_SHOWN]) or "none"
    return f"namespace {namespace} has no such claim (existing claims: {listed}); create it first"


def _decoded(kind: JobKind | ServiceKind, normalized: Normalized) -> msgspec.Struct:
    spec = normalized.obj.get("spec")
    if malformed := misfits(spec, kind.spec, "spec"):
        raise Invalid(_as_written(malformed, normalized))
    return decode(spec, kind.spec)


def _as_written(current: tuple[Fault, ...], normalized: Normalized) -> tuple[Fault, ...]:
    """Return faults with the paths that the author wrote, not those of the current shape."""
    return tuple(replace(fault, path=normalized.as_written(fault.path)) for fault in current)


def _name_faults(obj: Object, longest: int) -> tuple[Fault, ...]:
    """Return the faults of the name; `longest` is the length of the longest suffix that a pod name adds to the stem."""
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return (required("metadata.name", "set a name for the job, such as digits"),)
    # The stem is also the name of the job's Service, so the name must be valid for a Service.
    if problem := service_problem(name):
        return (invalid("metadata.name", name, f"{problem}{better_name(name)}"),)
    room = pod_name_room(longest)
    if len(name) > room:
        return (invalid("metadata.name", name, too_long(room)),)
    return ()


def _no_job(obj: Object) -> Fault:
    if obj.get("apiVersion") != API_VERSION:
        return invalid("apiVersion", obj.get("apiVersion"), f"the apiVersion of a job is {API_VERSION}")
    return unsupported("kind", obj.get("kind"), [kind.kind for kind in KINDS])
