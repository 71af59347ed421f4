"""What every written object passes: unknown fields, defaults, names, schema, rules, what may not change."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from paceline.apimachinery import field_errors as say
from paceline.apimachinery.builtin.go_json import complete, read_struct
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.crd import crd
from paceline.apimachinery.immutable_fields import changes
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.name_validation import (
    annotations_faults,
    key_problem,
    label_problem,
    labels_faults,
    service_problem,
    subdomain_problem,
)
from paceline.apimachinery.scale import scale_faults
from paceline.apimachinery.schema import prune
from paceline.apimachinery.scheme import Resource
from paceline.apiserver.admission.plugins import AdmissionPlugins
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.crd.schema_check import definition_faults
from paceline.apiserver.crd.schema_validation import MAX_FAULTS
from paceline.apiserver.encoding.request_body import duplicate_fields
from paceline.apiserver.object_strategy import is_builtin, recount_generation
from paceline.apiserver.paths import prefix_for, split_key
from paceline.apiserver.status_errors import bad_request, invalid
from paceline.errors import BadRequest, Fault
from paceline.store.store import Store

_NAME_RULES = {("", "Namespace"): label_problem, ("", "Service"): service_problem}
_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})


class Admission:
    """The rules of all kinds, over one store that they may ask for names."""

    def __init__(self, kinds: LiveKinds, store: Store) -> None:
        self._kinds = kinds
        self._store = store
        self._surroundings = AdmissionPlugins(lambda: kinds.scheme, store)

    def clean(self, resource: Resource, obj: Object, *, body: bytes = b"") -> tuple[str, ...]:
        """Take out, in place, what the kind does not have; give what has to be said about it."""
        twice = tuple(f'duplicate field "{path}"' for path in duplicate_fields(body, obj)) if body else ()
        if struct := struct_name(resource):
            read = _read(resource, obj, struct)
            obj.clear()
            obj.update(read)
        unknown = prune(obj, self._kinds.schemas.shape_of(resource))
        if not resource.is_builtin:
            # As Kubernetes tells them of kinds that others have defined.
            unknown = tuple(sorted(unknown, key=lambda each: (not each.path.startswith("metadata."), each.path)))
        return (*twice, *map(str, unknown[:MAX_FAULTS]))

    def check(self, resource: Resource, obj: Object, old: Object | None = None, *, dry_run: bool = False) -> None:
        """Complete an object by what is around it; refuse one that breaks a rule, naming every one it breaks."""
        found: list[Fault] = list(_metadata_faults(resource, obj, old))
        found.extend(self._surroundings.fit(resource, obj, old, dry_run=dry_run))
        struct = struct_name(resource)
        # The kinds of Kubernetes were read by their types; its schemas for them only tell people what those are.
        broken = () if struct else self._kinds.schemas.validators.faults(resource, obj)
        found.extend(broken)
        if resource.scale:
            found.extend(scale_faults(obj, resource.scale))
        if not broken:
            # Rules between fields take it for granted that each field is what its schema says.
            found.extend(resource.check(obj, self._names))
            found.extend(self._definition_faults(resource, obj) if not found else ())
            if old is not None:
                found.extend(_change_faults(resource, obj, old))
                found.extend(resource.check_change(obj, old))
        self._refuse(resource, obj, found)
        if struct:
            complete(obj, struct)
            if old is not None:
                recount_generation(obj, old, resource)

    def _definition_faults(self, resource: Resource, obj: Object) -> tuple[Fault, ...]:
        """Try the schemas of a definition; not of our own, which work: that would be most of what a start holds."""
        if not resource.is_builtin or resource.kind != crd.KIND or self._kinds.is_authors(obj):
            return ()
        return definition_faults(obj)

    def check_status(self, resource: Resource, obj: Object) -> None:
        """Refuse an object whose new status breaks its schema."""
        if struct := struct_name(resource):
            complete(obj, struct)
        else:
            found: list[Fault] = list(self._kinds.schemas.validators.faults(resource, obj))
            if resource.scale:
                found.extend(scale_faults(obj, resource.scale, status=True))
            self._refuse(resource, obj, found)

    def _refuse(self, resource: Resource, obj: Object, found: list[Fault]) -> None:
        if found:
            # A name that is wrong is told once, by the rule that says it best.
            unique = {(fault.path, type(fault.value), str(fault.value), fault.hint): fault for fault in found}
            raise invalid(resource.kind, name_of(obj), unique.values(), group=resource.group)

    def _names(self, plural: str, namespace: str) -> tuple[str, ...]:
        for resource in self._kinds.scheme.resources:
            if resource.plural == plural:
                prefix = prefix_for(resource, namespace if resource.namespaced else "")
                return tuple(split_key(each.key)[1] for each in self._store.list(prefix))
        return ()


def struct_name(resource: Resource) -> str:
    """Name the struct by which a kind is read, or "" for one that Kubernetes does not have."""
    return struct_of(resource.group, resource.version, resource.kind) if is_builtin(resource) else ""


def _read(resource: Resource, obj: Object, struct: str) -> Object:
    try:
        return read_struct(obj, struct)
    except BadRequest as error:
        said = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        raise bad_request(said) from error


def reject_unknown_fields(resource: Resource, said: tuple[str, ...]) -> None:
    """Refuse an object because of fields that its kind does not have."""
    message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    raise bad_request(f"{message}: strict decoding error: {', '.join(said)}")


def _metadata_faults(resource: Resource, obj: Object, old: Object | None) -> Iterator[Fault]:
    metadata: Mapping[str, Any] = obj["metadata"]
    name, start = metadata.get("name"), metadata.get("generateName")
    if old is None:
        rule = _NAME_RULES.get((resource.group, resource.kind), subdomain_problem)
        if isinstance(start, str) and start and (wrong := rule(f"{start[:-2]}a" if start[1:].endswith("-") else start)):
            yield say.invalid("metadata.generateName", start, wrong)
        if not name:
            yield say.required("metadata.name", "name or generateName is required")
        elif isinstance(name, str) and (wrong := rule(name)):
            yield say.invalid("metadata.name", name, wrong)
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
    before = frozenset(map(str, old.get("finalizers") or ()))
    added = [str(each) for each in finalizers if str(each) not in before]
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{each}"' for each in added)
        hint = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield say.forbidden("metadata.finalizers", f"{hint} []string{{{listed}}}")
    for each in finalizers:
        if wrong := key_problem(str(each)):
            yield say.invalid("metadata.finalizers", each, wrong)
    for index, each in enumerate(finalizers):
        if "/" not in str(each) and each not in _FINALIZERS:
            hint = "name is neither a standard finalizer name nor is it fully qualified"
            yield say.invalid(f"metadata.finalizers[{index}]", each, hint)


def _owner_faults(owners: Any) -> Iterator[Fault]:
    if not isinstance(owners, list):
        return
    listed = [each for each in owners if isinstance(each, dict)]
    for owner in listed:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                # Kubernetes leaves the index out here.
                hint = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield say.invalid(f"metadata.ownerReferences.{field}", "", hint)
    if sum(1 for owner in listed if owner.get("controller")) > 1:
        hint = "Only one reference can have Controller set to true"
        yield say.invalid("metadata.ownerReferences", [owner.get("name") for owner in listed], hint)


def _change_faults(resource: Resource, new: Object, old: Object) -> Iterator[Fault]:
    if resource.mutable is None:
        return
    changed = changes(old.get("spec"), new.get("spec"), resource.mutable)
    may = ", ".join(f"spec.{path}" for path in resource.mutable)
    hint = f"field is immutable; {f'only {may} may change' if may else 'make a new one instead'}"
    yield from map(partial(_immutable, hint), changed)


def _immutable(hint: str, change: tuple[str, Any]) -> Fault:
    path, value = change
    return say.FieldFault(path, value, hint)
