"""Admission of every written object: unknown fields, defaults, names, schema, rules, immutable fields."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery import field_errors as faults
from paceline.apimachinery.builtin.go_json import complete
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.crd import scale_faults
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.name_validation import (
    annotations_faults,
    key_problem,
    label_problem,
    labels_faults,
    service_problem,
    subdomain_problem,
)
from paceline.apimachinery.schema import prune
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.apiserver.admission.plugins import AdmissionPlugins
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.crd.schema_validation import MAX_FAULTS, definition_faults
from paceline.apiserver.encoding.request_body import decode_struct
from paceline.apiserver.object_strategy import recount_generation
from paceline.apiserver.paths import prefix_for, split_key
from paceline.apiserver.status_errors import bad_request, invalid
from paceline.errors import Fault
from paceline.store.store import Store

PROFILE, CONTEXT = "seccompProfile", "securityContext"
# Capabilities that service accounts may add: the default ones, and IPC_LOCK, which RDMA needs and memory limits bound.
# Others allow blocked system calls, or access to other containers' traffic or to the host.
HARMLESS = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "IPC_LOCK", "KILL", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_NAME_RULES = {("", "Namespace"): label_problem, ("", "Service"): service_problem}
_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


class Admission:
    def __init__(self, kinds: LiveKinds, store: Store) -> None:
        self._kinds = kinds
        self._store = store
        self._plugins = AdmissionPlugins(lambda: kinds.scheme, store)

    def clean(self, resource: Resource, obj: Object) -> tuple[str, ...]:
        """Remove unknown fields in place, and return a warning for each of them."""
        if struct := struct_name(resource):
            decoded = decode_struct(obj, struct, resource.kind)
            obj.clear()
            obj.update(decoded)
        unknown = prune(obj, self._kinds.schemas.shapes.of(resource))
        if not resource.is_builtin:
            # Kubernetes lists the unknown fields of custom resources in this order.
            unknown = tuple(sorted(unknown, key=lambda fault: (not fault.path.startswith("metadata."), fault.path)))
        return tuple(map(str, unknown[:MAX_FAULTS]))

    def check(self, resource: Resource, obj: Object, old: Object | None = None, *, dry_run: bool = False) -> None:
        """Complete an object in place, or raise Invalid with every rule that it breaks."""
        errors: list[Fault] = list(_metadata_faults(resource, obj, old))
        errors.extend(self._plugins.admit(resource, obj, old, dry_run=dry_run))
        struct = struct_name(resource)
        # Built-in kinds are decoded by their Go types; their schemas are for display only.
        schema_errors = () if struct else self._kinds.schemas.validators.faults(resource, obj)
        errors.extend(schema_errors)
        if resource.scale:
            errors.extend(scale_faults(obj, resource.scale))
        if not schema_errors:
            # Rules between fields require that every field has the type that the schema says.
            errors.extend(resource.check(obj, self.names))
            errors.extend(self._definition_faults(resource, obj) if not errors else ())
            if old is not None:
                errors.extend(resource.check_change(obj, old))
        self._refuse(resource, obj, errors)
        if struct:
            complete(obj, struct)
            if old is not None:
                recount_generation(obj, old, resource)

    def _definition_faults(self, resource: Resource, obj: Object) -> tuple[Fault, ...]:
        """Compile the schemas of a CustomResourceDefinition; skip our own ones, to start faster."""
        if not resource.is_builtin or resource.kind != crd.KIND or self._kinds.is_shipped(obj):
            return ()
        return definition_faults(obj)

    def check_status(self, resource: Resource, obj: Object) -> None:
        if struct := struct_name(resource):
            complete(obj, struct)
        else:
            errors: list[Fault] = list(self._kinds.schemas.validators.faults(resource, obj))
            if resource.scale:
                errors.extend(scale_faults(obj, resource.scale, status=True))
            self._refuse(resource, obj, errors)

    def _refuse(self, resource: Resource, obj: Object, errors: list[Fault]) -> None:
        if errors:
            # Several rules may report the same fault of a name.
            unique = {(fault.path, type(fault.value), str(fault.value), fault.hint): fault for fault in errors}
            raise invalid(resource.kind, name_of(obj), unique.values(), group=resource.group)

    def names(self, plural: str, namespace: str) -> tuple[str, ...]:
        """Return the names of the objects of a kind."""
        for resource in self._kinds.scheme.resources:
            if resource.plural == plural:
                prefix = prefix_for(resource, namespace if resource.namespaced else "")
                return tuple(split_key(stored.key)[1] for stored in self._store.list(prefix))
        return ()


def struct_name(resource: Resource) -> str:
    """Return the Go struct of a built-in kind; "" for other kinds."""
    return struct_of(resource.group, resource.version, resource.kind) if resource.is_builtin else ""


def reject_unknown_fields(resource: Resource, warnings: tuple[str, ...]) -> None:
    raise bad_request(f"{resource.kind}: strict decoding error: {', '.join(warnings)}")


def _metadata_faults(resource: Resource, obj: Object, old: Object | None) -> Iterator[Fault]:
    metadata: Mapping[str, Any] = obj["metadata"]
    name, start = metadata.get("name"), metadata.get("generateName")
    if old is None:
        rule = _NAME_RULES.get((resource.group, resource.kind), subdomain_problem)
        if isinstance(start, str) and start:
            example = f"{start[:-2]}a" if start[1:].endswith("-") else start
            if problem := rule(example):
                yield faults.invalid("metadata.generateName", start, problem)
        if not name:
            yield faults.required("metadata.name", "name or generateName is required")
        elif isinstance(name, str) and (problem := rule(name)):
            yield faults.invalid("metadata.name", name, problem)
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if isinstance(labels, dict):
        yield from labels_faults(labels, "metadata.labels")
    if isinstance(annotations, dict):
        yield from annotations_faults(annotations, "metadata.annotations")
    yield from _owner_faults(metadata.get("ownerReferences"))
    yield from _finalizer_faults(metadata, (old or {}).get("metadata") or {})


def _finalizer_faults(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Fault]:
    finalizers = new.get("finalizers")
    if not isinstance(finalizers, list):
        return
    old_finalizers = frozenset(map(str, old.get("finalizers") or ()))
    added = [str(finalizer) for finalizer in finalizers if str(finalizer) not in old_finalizers]
    if old.get("deletionTimestamp") and added:
        hint = f"no new finalizers can be added while the object is being deleted: {', '.join(added)}"
        yield faults.forbidden("metadata.finalizers", hint)
    for finalizer in finalizers:
        if problem := key_problem(str(finalizer)):
            yield faults.invalid("metadata.finalizers", finalizer, problem)
    for index, finalizer in enumerate(finalizers):
        if "/" not in str(finalizer) and finalizer not in _FINALIZERS:
            hint = "name is neither a standard finalizer name nor is it fully qualified"
            yield faults.invalid(f"metadata.finalizers[{index}]", finalizer, hint)


def _owner_faults(owners: Any) -> Iterator[Fault]:
    if not isinstance(owners, list):
        return
    listed = [owner for owner in owners if isinstance(owner, dict)]
    for owner in listed:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                # Kubernetes omits the index here.
                hint = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield faults.invalid(f"metadata.ownerReferences.{field}", "", hint)
    if sum(1 for owner in listed if owner.get("controller")) > 1:
        hint = "Only one reference can have Controller set to true"
        yield faults.invalid("metadata.ownerReferences", [owner.get("name") for owner in listed], hint)


class ServiceAccountAdmission(Admission):
    def __init__(self, admission: Admission) -> None:
        # Share everything else, in particular the ServiceAllocator.
        self.__dict__.update(admission.__dict__)

    def check(self, resource: Resource, obj: Object, old: Object | None = None, *, dry_run: bool = False) -> None:
        """Also reject objects that weaken the isolation of containers, unless the spec is unchanged."""
        spec = obj.get("spec")
        if (old is None or spec != old.get("spec")) and (field := next(unconfined_fields(spec, "spec"), None)):
            path, value = field
            reason = "service accounts may not lift the confinement of containers; the cluster's admin may"
            cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {reason}", "field": path}
            raise status_errors.forbidden(resource, name_of(obj), f"{path}: {value}: {reason}", causes=[cause])
        super().check(resource, obj, old, dry_run=dry_run)


def unconfined_fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and value of every field that weakens the isolation of containers."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from unconfined_fields(item, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        place = f"{path}.{key}"
        if isinstance(item, dict) and key == PROFILE and item.get("type") == "Unconfined":
            yield f"{place}.type", "Unconfined"
        if isinstance(item, dict) and key == CONTEXT:
            if item.get("privileged"):
                yield f"{place}.privileged", "true"
            if item.get("procMount") == "Unmasked":
                yield f"{place}.procMount", "Unmasked"
            yield from _added(item.get("capabilities"), f"{place}.capabilities.add")
        yield from unconfined_fields(item, place)


def _added(capabilities: Any, path: str) -> Iterator[tuple[str, str]]:
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    for index, name in enumerate(added if isinstance(added, list) else ()):
        if str(name).upper().removeprefix("CAP_") not in HARMLESS:
            yield f"{path}[{index}]", str(name)
