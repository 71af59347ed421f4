"""Applications: what is wrong with one, what tells its specs apart, and what a revision of it is made of.

In     a TrainingApp object, and who finds the faults of jobs.
Out    its faults; or the parts of a revision.
Never  knows a framework: templates and job kinds do.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from paceline.errors import Fault, Invalid
from paceline.kinds import trainingapp
from paceline.kinds.decode import decode, misfits
from paceline.kinds.kind import API_VERSION, OWN_API_VERSION
from paceline.kinds.templates.mould import Parts, Release
from paceline.kinds.templates.shelf import find
from paceline.kinds.templates.values import as_told, merged, read_values, value_faults
from paceline.kinds.trainingapp import TrainingApp
from paceline.objects import labels
from paceline.objects.faults import invalid, required
from paceline.objects.meta import Object, name_of, namespace_of
from paceline.objects.names import LABEL_RULE, better_name, service_problem, subdomain_problem

FindFaults = Callable[[Object], tuple[Fault, ...]]

MAX_NAME = 64
# Room for the names of pods, which add a hash, a place and an attempt.
MAX_STEM = 30
HASH_LENGTH = 5
DIGEST_LENGTH = 16
# What another revision is made for; stopping an application is not among it.
TELLING = ("template", "values", "job", "rerun")


def is_app(obj: Object) -> bool:
    """Tell whether an object is an application."""
    return obj.get("apiVersion") == OWN_API_VERSION and obj.get("kind") == trainingapp.KIND.kind


def read_app(obj: Object) -> TrainingApp:
    """Read the spec of an application; Invalid names every field that does not fit."""
    spec = obj.get("spec")
    if wrong := misfits(spec, TrainingApp, "spec"):
        raise Invalid(wrong)
    return decode(spec, TrainingApp)


def app_faults(obj: Object, job_faults: FindFaults) -> tuple[Fault, ...]:
    """Name everything wrong with an application, its values, and the job that they become."""
    named = tuple(name_faults(obj))
    try:
        spec = read_app(obj)
        wrong = trainingapp.check(spec, "spec") or _value_faults(spec)
    except Invalid as error:
        return (*named, *error.faults)
    if wrong or named:
        return (*named, *wrong)
    # The number of the revision is not known here, and is the same for every rule.
    parts = _parts(spec, release_of(obj, 1))
    return tuple(_in_app(fault, spec) for fault in job_faults(job_manifest(obj, parts, revision=1)))


def expand_app(obj: Object, revision: int) -> Parts:
    """Give the parts of a revision of an application without faults."""
    return _parts(read_app(obj), release_of(obj, revision))


def without_gpu(obj: Object) -> str:
    """Give the command by which an application trains without GPUs; empty when its template knows none."""
    template = read_app(obj).template
    setting = find(template.name).without_gpu if template is not None else ""
    return f"paceline upgrade {name_of(obj)} --set {setting}" if setting else ""


def digest_of(obj: Object) -> str:
    """Tell specs apart that are other revisions."""
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name in TELLING and value}
    return sha256(json.dumps(as_told(spec), sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def stem_of_app(name: str) -> str:
    """Give what the names of an application's objects begin with: its name, made short and fit for a service."""
    fit = name if not service_problem(name) else f"app-{name}"
    if len(fit) <= MAX_STEM:
        return fit
    return f"{fit[: MAX_STEM - HASH_LENGTH - 1].rstrip('-')}-{sha256(name.encode()).hexdigest()[:HASH_LENGTH]}"


def release_of(obj: Object, revision: int) -> Release:
    """Say what a revision of an application is called."""
    name = name_of(obj)
    return Release(app=name, stem=stem_of_app(name), namespace=namespace_of(obj), revision=revision)


def marks_of(release: Release) -> dict[str, str]:
    """Give the labels of everything that belongs to an application."""
    return {labels.APP: release.stem}


def job_manifest(obj: Object, parts: Parts, *, revision: int) -> Object:
    """Write the job of a revision, owned by nobody yet."""
    release = release_of(obj, revision)
    return {
        "apiVersion": API_VERSION,
        "kind": parts.kind,
        "metadata": {
            "name": release.job,
            "namespace": release.namespace,
            "labels": {**marks_of(release), labels.REVISION: str(revision)},
        },
        "spec": dict(parts.spec),
    }


def name_faults(obj: Object) -> tuple[Fault, ...]:
    """Check the name alone: 1 to 64 letters, digits and hyphens."""
    name = name_of(obj)
    if not name:
        return (required("metadata.name", "give the application a name, such as mnist"),)
    if len(name) > MAX_NAME:
        return (invalid("metadata.name", name, f"use at most {MAX_NAME} characters"),)
    # Kubernetes' own rule for a label, but for the length.
    if subdomain_problem(name) or "." in name:
        return (invalid("metadata.name", name, f"{LABEL_RULE}{better_name(name)}"),)
    return ()


def _value_faults(spec: TrainingApp) -> tuple[Fault, ...]:
    if spec.template is None:
        return ()
    template = find(spec.template.name, "spec.template.name")
    values = spec.values or {}
    if wrong := value_faults(values, template.values, "spec.values"):
        return wrong
    return template.check(read_values(merged(template.defaults(), values), template.values), "spec.values")


def _parts(spec: TrainingApp, release: Release) -> Parts:
    if spec.template is not None:
        template = find(spec.template.name, "spec.template.name")
        values = read_values(merged(template.defaults(), spec.values or {}), template.values)
        return template.expand(values, release)
    job: Any = spec.job
    return Parts(kind=job.kind, spec=job.spec)


def _in_app(fault: Fault, spec: TrainingApp) -> Fault:
    """Name a fault of the job where the author of the application finds it."""
    if spec.job is not None:
        return replace(fault, path=f"spec.job.{fault.path}")
    return replace(fault, path=f"spec.values: the job's {fault.path}")
