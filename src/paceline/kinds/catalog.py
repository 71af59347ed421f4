"""The one list of kinds, and what everybody else asks of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import msgspec

from paceline.errors import Fault, Invalid
from paceline.kinds import (
    apps,
    beamjob,
    colossalaijob,
    deepspeedjob,
    genericjob,
    jobrecord,
    mpijob,
    notebook,
    pytorchtrainingjob,
    tensorboard,
    tensorflowtrainingjob,
    trainingapp,
    xgboosttrainingjob,
)
from paceline.kinds.crd import crd
from paceline.kinds.decode import decode, misfits
from paceline.kinds.draft import Today
from paceline.kinds.fed import Fed, check_fed, fed_claims
from paceline.kinds.feed import feed
from paceline.kinds.kind import (
    API_VERSION,
    GROUP,
    OWN_GROUP,
    SERVICE_GROUP,
    VERSION,
    Claim,
    JobKind,
    PlainKind,
    Ports,
    ServiceKind,
)
from paceline.kinds.normalise import normalise
from paceline.kinds.runpolicy import Limits, with_limits
from paceline.kinds.schedule import queue_of
from paceline.kinds.schema import Schema, object_schema
from paceline.kinds.template import claims_in
from paceline.objects.faults import did_you_mean, invalid, not_found, required, unsupported
from paceline.objects.gang import Gang, Place, Site
from paceline.objects.meta import Object, name_of, namespace_of, uid_of
from paceline.objects.names import MAX_LABEL, better_name, label_problem, service_problem
from paceline.objects.scheme import Lookup, Resource, no_warnings
from paceline.objects.window import SHORT, Window

KINDS: tuple[JobKind, ...] = (
    pytorchtrainingjob.KIND,
    genericjob.KIND,
    tensorflowtrainingjob.KIND,
    xgboosttrainingjob.KIND,
    mpijob.KIND,
    deepspeedjob.KIND,
    colossalaijob.KIND,
    beamjob.KIND,
    # Names that T9k's own pages use; each has a definition of its own, so that objects stay as they were written.
    replace(
        tensorflowtrainingjob.KIND,
        kind="TensorFlowJob",
        plural="tensorflowjobs",
        short_names=(),
        alias_of=tensorflowtrainingjob.KIND.kind,
    ),
    replace(
        deepspeedjob.KIND,
        kind="DeepspeedJob",
        # In lower case both kinds are called the same, and two definitions may not be.
        plural="deepspeed-jobs",
        singular="deepspeed-job",
        short_names=(),
        alias_of=deepspeedjob.KIND.kind,
    ),
)
SERVICES: tuple[ServiceKind, ...] = (tensorboard.KIND, notebook.KIND)
PLAIN: tuple[PlainKind, ...] = (trainingapp.KIND, jobrecord.KIND)

HASH_LENGTH = 5
DIGEST_LENGTH = 12
# Room for the attempt in a pod's name, after which nobody tries again.
ATTEMPT_ROOM = len("-r999")
MAX_CLAIMS_SHOWN = 8
# The variable in which the chart's trainers find their cluster.
CLUSTER = "CLUSTER_CONFIG"


def kind_of(obj: Object) -> JobKind | None:
    """Find the kind of an object; None when it is no job."""
    if obj.get("apiVersion") != API_VERSION:
        return None
    return next((kind for kind in KINDS if kind.kind == obj.get("kind")), None)


def service_of(obj: Object) -> ServiceKind | None:
    """Find the kind of an object; None when it is no service."""
    found = (each for each in SERVICES if each.kind == obj.get("kind"))
    return next((each for each in found if obj.get("apiVersion") == f"{each.group}/{VERSION}"), None)


def today(obj: Object) -> Today:
    """Give a job or service in today's shape; Invalid when it is neither."""
    kind = kind_of(obj) or service_of(obj)
    if kind is None:
        raise Invalid((_no_job(obj),))
    return normalise(kind, obj)


def warnings(obj: Object) -> tuple[str, ...]:
    """Say what the author of an object should know: old names and shapes, each with today's."""
    return today(obj).warnings


def read(obj: Object) -> tuple[JobKind, msgspec.Struct]:
    """Read a job's spec, of any shape, into its typed form; Invalid names every field that does not fit."""
    kind = kind_of(obj)
    if kind is None:
        raise Invalid((_no_job(obj),))
    return kind, _decoded(kind, normalise(kind, obj))


def read_service(obj: Object) -> tuple[ServiceKind, msgspec.Struct]:
    """Read a service's spec, of any shape, into its typed form; Invalid names every field that does not fit."""
    kind = service_of(obj)
    if kind is None:
        raise Invalid((unsupported("kind", obj.get("kind"), [each.kind for each in SERVICES]),))
    return kind, _decoded(kind, normalise(kind, obj))


def faults(obj: Object) -> tuple[Fault, ...]:
    """Name everything wrong with a job that can be told without a cluster."""
    return _examined(obj).faults


def app_faults(obj: Object) -> tuple[Fault, ...]:
    """Name everything wrong with an application that can be told without a cluster."""
    return apps.app_faults(obj, faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Examined:
    """A job that was read once: what is wrong with it or, if nothing is, what it says."""

    faults: tuple[Fault, ...] = ()
    read: tuple[JobKind, msgspec.Struct, Today] | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that a job without faults needs."""
        return _claims(*self.read) if self.read else ()


def _examined(obj: Object) -> _Examined:
    """Read a job and look for all that is wrong with it."""
    kind = kind_of(obj)
    if kind is None:
        return _Examined(faults=(_no_job(obj), *_name_faults(obj, 0)))
    now = normalise(kind, obj)
    try:
        spec = _decoded(kind, now)
    except Invalid as error:
        return _Examined(faults=(*error.faults, *_name_faults(obj, 0)))
    wrong = kind.check(spec, "spec")
    if isinstance(spec, Fed) and not wrong:
        wrong = tuple(check_fed(spec, kind.templates(spec, "spec"), "spec"))
    if wrong:
        return _Examined(faults=(*_as_written(wrong, now), *_name_faults(obj, 0)))
    wrong = _name_faults(obj, max(len(f"-{place}") for place in kind.places(spec)))
    return _Examined(faults=wrong) if wrong else _Examined(read=(kind, spec, now))


def service_faults(obj: Object) -> tuple[Fault, ...]:
    """Name everything wrong with a service that can be told without a cluster."""
    kind = service_of(obj)
    if kind is None:
        return (unsupported("kind", obj.get("kind"), [each.kind for each in SERVICES]),)
    now = normalise(kind, obj)
    try:
        spec = _decoded(kind, now)
    except Invalid as error:
        return (*error.faults, *_service_name_faults(obj, kind))
    return (*_as_written(kind.check(spec, "spec"), now), *_service_name_faults(obj, kind))


def _service_name_faults(obj: Object, kind: ServiceKind) -> tuple[Fault, ...]:
    """Check the name alone: the pod, and the service in front of it, are called after it."""
    name = name_of(obj)
    if not name:
        return (required("metadata.name", "give it a name, such as curves"),)
    if wrong := label_problem(name):
        return (invalid("metadata.name", name, f"{wrong}{better_name(name)}"),)
    room = MAX_LABEL - max(len(f"{SHORT[kind.plural]}-"), len("-") + HASH_LENGTH + len("-0"))
    if len(name) > room:
        hint = f"use at most {room} characters: the names of its pod and service add to it and may have {MAX_LABEL}"
        return (invalid("metadata.name", name, hint),)
    return ()


def expand(
    obj: Object,
    ports: Mapping[str, int],
    *,
    is_resumed: bool = False,
    commit: str = "",
    left: tuple[Place, ...] = (),
) -> tuple[Site, Gang]:
    """Remove the framework from a job without faults; `commit` is what its code was found to have."""
    kind, spec = read(obj)
    site = Site(
        job=name_of(obj),
        namespace=namespace_of(obj),
        stem=stem_of(obj),
        ports=ports,
        is_resumed=is_resumed,
        commit=commit,
        left=left,
    )
    queue, priority = queue_of(getattr(spec, "scheduler", None))
    policy = getattr(spec, "run_policy", None)
    gang = with_limits(kind.expand(spec, site), policy if isinstance(policy, Limits) else None)
    if isinstance(spec, Fed):
        gang = feed(gang, spec, site)
    return site, replace(gang, queue=queue, priority=priority)


def expand_service(obj: Object) -> Window:
    """Remove the program from a service; Invalid names everything wrong with it."""
    if wrong := service_faults(obj):
        raise Invalid(wrong)
    kind, spec = read_service(obj)
    site = Site(job=name_of(obj), namespace=namespace_of(obj), stem=stem_of(obj), ports={})
    queue, priority = queue_of(getattr(spec, "scheduler", None))
    window = kind.expand(spec, site)
    return replace(window, queue=queue, priority=priority, digest=f"{window.digest}{_digest(obj)}")


def may_have_tensorboard(kind: JobKind) -> bool:
    """Tell whether jobs of a kind may ask for a TensorBoard of their own."""
    return "tensorboard_spec" in kind.spec.__struct_fields__


def tensorboard_of(obj: Object) -> Object | None:
    """Give the spec of the TensorBoard that a job asks for, if it does."""
    found = today(obj).obj["spec"].get("tensorboardSpec")
    return found if isinstance(found, dict) else None


def _digest(obj: Object) -> str:
    """Tell specs apart that need another pod; not those that differ in when there is one, or in who reaches it."""
    beside = ("suspend", "idleSeconds", "serviceType")
    spec = {key: value for key, value in today(obj).obj["spec"].items() if key not in beside}
    return sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def ports_of(obj: Object) -> Ports:
    """Give the ports that a job's members must agree on, each with its usual number; Invalid when it has faults."""
    found = _examined(obj)
    if found.read is None:
        raise Invalid(found.faults)
    kind, spec, _ = found.read
    return kind.ports(spec)


def cluster_spec(obj: Object, ports: Mapping[str, int]) -> str:
    """Give what members of a job are told of each other, as the chart's trainers read it; empty where they are not.

    A job with faults has no members who could be told.
    """
    found = _examined(obj)
    if found.read is None:
        return ""
    kind, spec, _ = found.read
    if any(name not in ports for name in kind.ports(spec)):
        return ""
    _, gang = expand(obj, ports)
    containers = gang.members[0].template["spec"]["containers"] if gang.members else ()
    told = (each.get("value") for held in containers for each in held.get("env") or () if each["name"] == CLUSTER)
    return str(next(told, ""))


def is_on_host(obj: Object) -> bool:
    """Tell whether members of a job ask for the machine's own network, on which other jobs may listen too."""
    kind, spec = read(obj)
    return any((template.get("spec") or {}).get("hostNetwork") for _, template in kind.templates(spec, "spec"))


def is_paused(obj: Object) -> bool:
    """Tell whether a job's author wants it paused, in whichever shape they say so."""
    mode = today(obj).obj["spec"].get("runMode") or {}
    return bool((mode.get("pause") or {}).get("enabled"))


def is_suspended(obj: Object) -> bool:
    """Tell whether somebody, a queueing system mostly, wants a job to have no pods for now."""
    return bool(obj["spec"].get("suspend"))


def stem_of(obj: Object) -> str:
    """Name what all pods of one job start with: the same for one incarnation, another for the next."""
    return f"{name_of(obj)}-{sha256(uid_of(obj).encode()).hexdigest()[:HASH_LENGTH]}"


def claims_of(obj: Object) -> tuple[Claim, ...]:
    """Give the claims that a job without faults mounts or shows, each with the path that names it, every path once."""
    kind, spec = read(obj)
    return _claims(kind, spec, normalise(kind, obj))


def _claims(kind: JobKind, spec: msgspec.Struct, now: Today) -> tuple[Claim, ...]:
    mounted = [claim for where, template in kind.templates(spec, "spec") for claim in claims_in(template, where)]
    fed = fed_claims(spec, "spec") if isinstance(spec, Fed) else ()
    found = dict.fromkeys([*mounted, *kind.claims(spec, "spec"), *fed])
    return tuple(dict.fromkeys((now.as_written(where), name) for where, name in found))


def resources(_components: Mapping[str, Any]) -> tuple[Resource, ...]:
    """Give every kind as the embedded API server serves it; schemas point to `components` for the pod template."""
    return tuple(_resource(kind) for kind in _every())


def crds(components: Mapping[str, Any]) -> tuple[Object, ...]:
    """Give every kind as a CustomResourceDefinition for a real cluster."""
    written: dict[str, Schema] = {}
    return tuple(crd(kind, components, written) for kind in _every())


def _every() -> tuple[JobKind | ServiceKind | PlainKind, ...]:
    return (*KINDS, *SERVICES, *PLAIN)


def _resource(kind: JobKind | ServiceKind | PlainKind) -> Resource:
    return Resource(
        group=kind.group,
        version=VERSION,
        kind=kind.kind,
        plural=kind.plural,
        singular=kind.singular or kind.kind.lower(),
        short_names=kind.short_names,
        categories=("paceline",),
        subresources=("status",),
        schema_name=f"{'.'.join(reversed(kind.group.split('.')))}.{VERSION}.{kind.kind}",
        schema=object_schema(kind),
        columns=kind.columns,
        check=_CHECKS[kind.group],
        warn=no_warnings if kind.group == OWN_GROUP else warnings,
        mutable=kind.mutable,
    )


def _check(obj: Object, lookup: Lookup) -> tuple[Fault, ...]:
    found = _examined(obj)
    return found.faults or _check_claims(obj, found.claims, lookup)


def _check_service(obj: Object, lookup: Lookup) -> tuple[Fault, ...]:
    if wrong := service_faults(obj):
        return wrong
    kind, spec = read_service(obj)
    return _check_claims(obj, kind.claims(spec, "spec"), lookup)


def _check_plain(obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    if apps.is_app(obj):
        return app_faults(obj)
    return misfits(obj.get("spec"), jobrecord.JobRecord, "spec")


# Which rules an object obeys is said by its group.
_CHECKS = {GROUP: _check, SERVICE_GROUP: _check_service, OWN_GROUP: _check_plain}


def _check_claims(obj: Object, wanted: tuple[Claim, ...], lookup: Lookup) -> tuple[Fault, ...]:
    known = lookup("persistentvolumeclaims", namespace_of(obj)) if wanted else ()
    return tuple(
        not_found(where, name, _claim_hint(name, known, namespace_of(obj)))
        for where, name in wanted
        if name not in known
    )


def _claim_hint(name: str, known: tuple[str, ...], namespace: str) -> str:
    if near := did_you_mean(name, known):
        return f"namespace {namespace} has no such claim{near}"
    there = ", ".join(sorted(known)[:MAX_CLAIMS_SHOWN]) or "none"
    return f"namespace {namespace} has no such claim; there are: {there}; create it first"


def _decoded(kind: JobKind | ServiceKind, now: Today) -> msgspec.Struct:
    spec = now.obj.get("spec")
    if wrong := misfits(spec, kind.spec, "spec"):
        raise Invalid(_as_written(wrong, now))
    return decode(spec, kind.spec)


def _as_written(found: tuple[Fault, ...], now: Today) -> tuple[Fault, ...]:
    """Name faults where their author wrote what is wrong, not where it stands today."""
    return tuple(replace(fault, path=now.as_written(fault.path)) for fault in found)


def _name_faults(obj: Object, longest: int) -> tuple[Fault, ...]:
    """Check the name alone; `longest` is how much the longest pod name adds to the stem."""
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return (required("metadata.name", "give the job a name, such as digits"),)
    # The stem names the job's service too, so the name must be fit for one.
    if wrong := service_problem(name):
        return (invalid("metadata.name", name, f"{wrong}{better_name(name)}"),)
    room = MAX_LABEL - len("-") - HASH_LENGTH - longest - ATTEMPT_ROOM
    if len(name) > room:
        hint = f"use at most {room} characters: its pods' names add to it and may have {MAX_LABEL}"
        return (invalid("metadata.name", name, hint),)
    return ()


def _no_job(obj: Object) -> Fault:
    if obj.get("apiVersion") != API_VERSION:
        return invalid("apiVersion", obj.get("apiVersion"), f"jobs are of {API_VERSION}")
    return unsupported("kind", obj.get("kind"), [kind.kind for kind in KINDS])
