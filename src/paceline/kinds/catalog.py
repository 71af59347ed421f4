"""The one list of job kinds, and what everybody else asks of it."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from paceline.errors import Fault, Invalid
from paceline.kinds import genericjob, pytorchtrainingjob
from paceline.kinds.crd import crd
from paceline.kinds.decode import decode, misfits
from paceline.kinds.kind import API_VERSION, COLUMNS, GROUP, VERSION, JobKind
from paceline.kinds.schema import object_schema
from paceline.kinds.template import claims_in
from paceline.objects.faults import did_you_mean, invalid, not_found, required, unsupported
from paceline.objects.gang import Gang, Site
from paceline.objects.meta import Object, name_of, namespace_of, uid_of
from paceline.objects.names import MAX_LABEL, service_problem
from paceline.objects.scheme import Lookup, Resource

KINDS: tuple[JobKind, ...] = (
    pytorchtrainingjob.KIND,
    genericjob.KIND,
)

HASH_LENGTH = 5
# Room for the attempt in a pod's name, after which nobody tries again.
ATTEMPT_ROOM = len("-r999")
MAX_CLAIMS_SHOWN = 8


def kind_of(obj: Object) -> JobKind | None:
    """Find the kind of an object; None when it is no job."""
    if obj.get("apiVersion") != API_VERSION:
        return None
    return next((kind for kind in KINDS if kind.kind == obj.get("kind")), None)


def read(obj: Object) -> tuple[JobKind, msgspec.Struct]:
    """Read a job's spec into its typed form; Invalid names every field that does not fit."""
    kind = kind_of(obj)
    if kind is None:
        raise Invalid((_no_job(obj),))
    if wrong := misfits(obj.get("spec"), kind.spec, "spec"):
        raise Invalid(wrong)
    return kind, decode(obj["spec"], kind.spec)


def faults(obj: Object) -> tuple[Fault, ...]:
    """Name everything wrong with a job that can be told without a cluster."""
    try:
        kind, spec = read(obj)
    except Invalid as error:
        return (*error.faults, *_name_faults(obj, 0))
    if wrong := kind.check(spec, "spec"):
        return (*wrong, *_name_faults(obj, 0))
    return _name_faults(obj, max(len(f"-{place}") for place in kind.places(spec)))


def expand(obj: Object, ports: Mapping[str, int], *, is_resumed: bool = False) -> tuple[Site, Gang]:
    """Remove the framework from a job without faults."""
    kind, spec = read(obj)
    site = Site(job=name_of(obj), namespace=namespace_of(obj), stem=stem_of(obj), ports=ports, is_resumed=is_resumed)
    return site, kind.expand(spec, site)


def stem_of(obj: Object) -> str:
    """Name what all pods of one job start with: the same for one incarnation, another for the next."""
    return f"{name_of(obj)}-{sha256(uid_of(obj).encode()).hexdigest()[:HASH_LENGTH]}"


def claims_of(obj: Object) -> tuple[tuple[str, str], ...]:
    """Give the claims that a job without faults mounts, each with the path that names it."""
    kind, spec = read(obj)
    return tuple(claim for where, template in kind.templates(spec, "spec") for claim in claims_in(template, where))


def resources(_components: Mapping[str, Any]) -> tuple[Resource, ...]:
    """Give every job kind as the embedded API server serves it; schemas point to `components` for the pod template."""
    return tuple(_resource(kind) for kind in KINDS)


def crds(components: Mapping[str, Any]) -> tuple[Object, ...]:
    """Give every job kind as a CustomResourceDefinition for a real cluster."""
    return tuple(crd(kind, components) for kind in KINDS)


def _resource(kind: JobKind) -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=kind.kind,
        plural=kind.plural,
        singular=kind.kind.lower(),
        short_names=kind.short_names,
        categories=("paceline",),
        subresources=("status",),
        schema_name=f"{'.'.join(reversed(GROUP.split('.')))}.{VERSION}.{kind.kind}",
        schema=object_schema(kind),
        columns=COLUMNS,
        check=_check,
        mutable=kind.mutable,
    )


def _check(obj: Object, lookup: Lookup) -> tuple[Fault, ...]:
    if wrong := faults(obj):
        return wrong
    wanted = claims_of(obj)
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


def _name_faults(obj: Object, longest: int) -> tuple[Fault, ...]:
    """Check the name alone; `longest` is how much the longest pod name adds to the stem."""
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        return (required("metadata.name", "give the job a name, such as digits"),)
    # The stem names the job's service too, so the name must be fit for one.
    if wrong := service_problem(name):
        return (invalid("metadata.name", name, wrong),)
    room = MAX_LABEL - len("-") - HASH_LENGTH - longest - ATTEMPT_ROOM
    if len(name) > room:
        hint = f"use at most {room} characters: its pods' names add to it and may have {MAX_LABEL}"
        return (invalid("metadata.name", name, hint),)
    return ()


def _no_job(obj: Object) -> Fault:
    if obj.get("apiVersion") != API_VERSION:
        return invalid("apiVersion", obj.get("apiVersion"), f"jobs are of {API_VERSION}")
    return unsupported("kind", obj.get("kind"), [kind.kind for kind in KINDS])
