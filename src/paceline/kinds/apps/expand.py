"""Applications: their faults, the digest of a spec, and the objects of a revision.

In     a TrainingApp object, and the function that validates jobs.
Out    its faults; or the parts of a revision.
Never  knows a framework: templates and job kinds do.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from paceline.apimachinery.field_errors import invalid, required
from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.apimachinery.name_validation import LABEL_RULE, better_name, service_problem, subdomain_problem
from paceline.errors import Fault, Invalid
from paceline.kinds.apps import training_app
from paceline.kinds.apps.templates.registry import find
from paceline.kinds.apps.templates.types import Release, Rendered
from paceline.kinds.apps.templates.values import as_told, merged, read_values, value_faults
from paceline.kinds.apps.training_app import TrainingApp
from paceline.kinds.decode import decode_or_raise
from paceline.kinds.kind_types import API_VERSION, OWN_API_VERSION
from paceline.model import well_known_labels

FindFaults = Callable[[Object], tuple[Fault, ...]]

# Short enough for pod names, which add a hash, a replica and an attempt.
MAX_STEM = 30
HASH_LENGTH = 5
DIGEST_LENGTH = 16
# Fields whose change creates a new revision; suspending an application does not.
REVISION_FIELDS = ("template", "values", "job", "rerun")


def is_app(obj: Object) -> bool:
    """Return whether an object is an application."""
    return obj.get("apiVersion") == OWN_API_VERSION and obj.get("kind") == training_app.KIND.kind


def read_app(obj: Object) -> TrainingApp:
    """Return the decoded spec of an application; raise Invalid with all malformed fields."""
    return decode_or_raise(obj.get("spec"), TrainingApp, "spec")


def app_faults(obj: Object, job_faults: FindFaults) -> tuple[Fault, ...]:
    """Return all faults of an application, its values, and the job that is created from them."""
    bad_name = tuple(name_faults(obj))
    try:
        spec = read_app(obj)
        broken_rules = training_app.check(spec, "spec") or _value_faults(spec)
    except Invalid as error:
        return (*bad_name, *error.faults)
    if broken_rules or bad_name:
        return (*bad_name, *broken_rules)
    # The number of the revision is not known here; no rule depends on it.
    parts = _parts(spec, release_of(obj, 1))
    return tuple(_in_app(fault, spec) for fault in job_faults(job_manifest(obj, parts, revision=1)))


def expand_app(obj: Object, revision: int) -> Rendered:
    """Return the parts of a revision; the application must be valid."""
    return _parts(read_app(obj), release_of(obj, revision))


def without_gpu(obj: Object) -> str:
    """Return the command that switches an application to training without GPUs; empty if its template has none."""
    template = read_app(obj).template
    setting = find(template.name).without_gpu if template is not None else ""
    return f"paceline app upgrade {name_of(obj)} --set {setting}" if setting else ""


def digest_of(obj: Object) -> str:
    """Return a digest of the fields whose change creates a new revision."""
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name in REVISION_FIELDS and value}
    return sha256(json.dumps(as_told(spec), sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]


def stem_of_app(name: str) -> str:
    """Return the prefix of the names of an application's objects: its name, shortened and valid for a Service."""
    valid_name = name if not service_problem(name) else f"app-{name}"
    if len(valid_name) <= MAX_STEM:
        return valid_name
    return f"{valid_name[: MAX_STEM - HASH_LENGTH - 1].rstrip('-')}-{sha256(name.encode()).hexdigest()[:HASH_LENGTH]}"


def release_of(obj: Object, revision: int) -> Release:
    """Return the names of a revision's objects."""
    name = name_of(obj)
    return Release(app=name, stem=stem_of_app(name), namespace=namespace_of(obj), revision=revision)


def job_manifest(obj: Object, parts: Rendered, *, revision: int) -> Object:
    """Return the job of a revision, without owner references."""
    release = release_of(obj, revision)
    return {
        "apiVersion": API_VERSION,
        "kind": parts.kind,
        "metadata": {
            "name": release.job,
            "namespace": release.namespace,
            "labels": {well_known_labels.APP: release.stem, well_known_labels.REVISION: str(revision)},
        },
        "spec": dict(parts.spec),
    }


def name_faults(obj: Object) -> tuple[Fault, ...]:
    """Return the faults of the name: it has 1 to 64 letters, digits and hyphens."""
    name = name_of(obj)
    if not name:
        return (required("metadata.name", "set a name for the application, such as mnist"),)
    if len(name) > training_app.MAX_NAME:
        return (invalid("metadata.name", name, f"must have at most {training_app.MAX_NAME} characters"),)
    # Kubernetes' rule for a DNS label, except for the length.
    if subdomain_problem(name) or "." in name:
        return (invalid("metadata.name", name, f"{LABEL_RULE}{better_name(name)}"),)
    return ()


def _value_faults(spec: TrainingApp) -> tuple[Fault, ...]:
    if spec.template is None:
        return ()
    template = find(spec.template.name, "spec.template.name")
    values = spec.values or {}
    if malformed := value_faults(values, template.values, "spec.values"):
        return malformed
    return template.check(read_values(merged(template.defaults(), values), template.values), "spec.values")


def _parts(spec: TrainingApp, release: Release) -> Rendered:
    if spec.template is not None:
        template = find(spec.template.name, "spec.template.name")
        values = read_values(merged(template.defaults(), spec.values or {}), template.values)
        return template.expand(values, release)
    job: Any = spec.job
    return Rendered(kind=job.kind, spec=job.spec)


def _in_app(fault: Fault, spec: TrainingApp) -> Fault:
    """Return a fault of the job with a path that the author of the application can find."""
    if spec.job is not None:
        return replace(fault, path=f"spec.job.{fault.path}")
    return replace(fault, path=f"spec.values: the job's {fault.path}")
