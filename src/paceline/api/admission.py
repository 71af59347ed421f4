"""What every written object passes: unknown fields, defaults, names, schema, rules, what may not change."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from paceline.api.body import duplicates
from paceline.api.paths import names_in, prefix_for
from paceline.api.refusal import bad_request, invalid
from paceline.api.validate import MAX_FAULTS, Validators
from paceline.errors import Fault
from paceline.objects import faults as say
from paceline.objects.immutable import changes
from paceline.objects.meta import Object, name_of
from paceline.objects.names import (
    annotations_faults,
    key_problem,
    label_problem,
    labels_faults,
    service_problem,
    subdomain_problem,
)
from paceline.objects.schema import Shape, Shapes, prune
from paceline.objects.scheme import Resource, Scheme
from paceline.store.store import Store

_NAME_RULES = {("", "Namespace"): label_problem, ("", "Service"): service_problem}
_FINALIZERS = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_POD_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations`,`spec.terminationGracePeriodSeconds`"
)


class Admission:
    """The rules of all kinds, over one store that they may ask for names."""

    def __init__(self, scheme: Scheme, store: Store) -> None:
        self._scheme = scheme
        self._store = store
        self._validators = Validators(scheme)
        self._all_shapes = Shapes(scheme.components)
        # By kind, hence as many as the scheme has.
        self._shapes: dict[tuple[str, str, str], Shape] = {}

    def clean(self, resource: Resource, obj: Object, *, body: bytes = b"") -> tuple[str, ...]:
        """Take out, in place, what the kind does not have; give what has to be said about it."""
        twice = tuple(f'duplicate field "{path}"' for path in duplicates(body, obj)) if body else ()
        unknown = prune(obj, self._shape(resource))
        return (*twice, *map(str, unknown[:MAX_FAULTS]))

    def _shape(self, resource: Resource) -> Shape:
        key = (resource.group, resource.version, resource.kind)
        if key not in self._shapes:
            self._shapes[key] = self._all_shapes.of_object(resource.schema)
        return self._shapes[key]

    def check(self, resource: Resource, obj: Object, old: Object | None = None) -> None:
        """Refuse an object that breaks a rule, naming every one it breaks."""
        found: list[Fault] = list(_metadata_faults(resource, obj, old))
        broken = self._validators.faults(resource, obj)
        found.extend(broken)
        if not broken:
            # Rules between fields take it for granted that each field is what its schema says.
            found.extend(resource.check(obj, self._names))
            if old is not None:
                found.extend(_change_faults(resource, obj, old))
        self._refuse(resource, obj, found)

    def check_status(self, resource: Resource, obj: Object) -> None:
        """Refuse an object whose new status breaks its schema."""
        self._refuse(resource, obj, list(self._validators.faults(resource, obj)))

    def _refuse(self, resource: Resource, obj: Object, found: list[Fault]) -> None:
        if found:
            # A name that is wrong is told once, by the rule that says it best.
            unique = {(fault.path, type(fault.value), str(fault.value), fault.hint): fault for fault in found}
            raise invalid(resource.kind, name_of(obj), unique.values(), group=resource.group)

    def _names(self, plural: str, namespace: str) -> tuple[str, ...]:
        for resource in self._scheme.resources:
            if resource.plural == plural:
                prefix = prefix_for(resource, namespace if resource.namespaced else "")
                return tuple(names_in(each.key)[1] for each in self._store.list(prefix))
        return ()


def refuse_unknown(resource: Resource, said: tuple[str, ...]) -> None:
    """Refuse an object because of fields that its kind does not have."""
    message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    raise bad_request(f"{message}: strict decoding error: {', '.join(said)}")


def _metadata_faults(resource: Resource, obj: Object, old: Object | None) -> Iterator[Fault]:
    metadata: Mapping[str, Any] = obj["metadata"]
    name = metadata.get("name")
    if old is None:
        rule = _NAME_RULES.get((resource.group, resource.kind), subdomain_problem)
        if not name:
            yield say.required("metadata.name", "name or generateName is required")
        elif isinstance(name, str) and (wrong := rule(name)):
            yield say.invalid("metadata.name", name, wrong)
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if isinstance(labels, dict):
        yield from labels_faults(labels, "metadata.labels")
    if isinstance(annotations, dict):
        yield from annotations_faults(annotations, "metadata.annotations")
    yield from _finalizer_faults(metadata, (old or {}).get("metadata") or {})
    yield from _owner_faults(metadata.get("ownerReferences"))


def _finalizer_faults(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Fault]:
    finalizers = new.get("finalizers")
    if not isinstance(finalizers, list):
        return
    before = old.get("finalizers") or []
    added = [str(each) for each in finalizers if each not in before]
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(f'"{each}"' for each in added)
        hint = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield say.forbidden("metadata.finalizers", f"{hint} []string{{{listed}}}")
    for index, each in enumerate(finalizers):
        path = f"metadata.finalizers[{index}]"
        if wrong := key_problem(str(each)):
            yield say.invalid(path, each, wrong)
        elif "/" not in str(each) and each not in _FINALIZERS:
            hint = "name is neither a standard finalizer name nor is it fully qualified"
            yield say.invalid(path, each, hint)


def _owner_faults(owners: Any) -> Iterator[Fault]:
    if not isinstance(owners, list):
        return
    listed = [each for each in owners if isinstance(each, dict)]
    for index, owner in enumerate(listed):
        for field in ("apiVersion", "kind", "name", "uid"):
            if owner.get(field) == "":
                yield say.invalid(f"metadata.ownerReferences[{index}].{field}", "", "must not be empty")
    if sum(1 for owner in listed if owner.get("controller")) > 1:
        hint = "Only one reference can have Controller set to true"
        yield say.invalid("metadata.ownerReferences", [owner.get("name") for owner in listed], hint)


def _change_faults(resource: Resource, new: Object, old: Object) -> Iterator[Fault]:
    if old.get("immutable") and new.get("immutable") is not True:
        yield say.forbidden("immutable", "field is immutable when `immutable` is set")
    if old.get("immutable") and any(old.get(part) != new.get(part) for part in ("data", "binaryData")):
        yield say.forbidden("data", "field is immutable when `immutable` is set")
    if resource.mutable is None:
        return
    changed = changes(old.get("spec"), new.get("spec"), resource.mutable)
    if (resource.group, resource.kind) == ("", "Pod"):
        if changed:
            yield say.forbidden("spec", f"{_POD_CHANGE}; changed: {', '.join(path for path, _ in changed)}")
        return
    may = ", ".join(f"spec.{path}" for path in resource.mutable)
    hint = f"field is immutable; {f'only {may} may change' if may else 'make a new one instead'}"
    yield from map(partial(_immutable, hint), changed)


def _immutable(hint: str, change: tuple[str, Any]) -> Fault:
    path, value = change
    return say.FieldFault(path, value, hint)
