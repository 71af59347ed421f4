"""Creates the objects of a manifest: all of them, or none."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object, key_of, name_of, namespace_of, uid_of
from paceline.apimachinery.scheme import Lookup, no_faults
from paceline.client import requests, responses
from paceline.client.interface import CLAIMS, Select
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, BadRequest, Fault, Forbidden, Invalid, PacelineError
from paceline.sdk.discovery import Kinds, ResourceKind
from paceline.sdk.job import JobRef

TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "data", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An object and its location."""

    object: Object
    # `job.yaml:12`, for messages.
    place: str


def with_namespace(document: Document, namespace: str, *, is_chosen: bool) -> Document:
    """Return the object with a namespace; raise BadRequest if a chosen one contradicts the file."""
    metadata = document.object["metadata"]
    written = metadata.get("namespace")
    if written and is_chosen and written != namespace:
        raise BadRequest(
            f"{document.place}: metadata.namespace is {written!r}, but -n is {namespace!r}; remove one of them"
        )
    changed = {**document.object, "metadata": {**metadata, "namespace": written or namespace}}
    return replace(document, object=changed)


def checked(value: dict[str, Any], place: str) -> Object:
    """Return the object if it has apiVersion, kind and a name; BadRequest lists everything that is missing."""
    faults = []
    for field, example in (
        ("apiVersion", "batch.tensorstack.dev/v1beta1"),
        ("kind", "PyTorchTrainingJob"),
    ):
        if not isinstance(value.get(field), str) or not value[field]:
            faults.append(_fault(value, field, f"such as {field}: {example}"))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        faults.append(_fault(value, "metadata", "such as metadata: {name: my-job}"))
    elif not any(isinstance(metadata.get(key), str) and metadata[key] for key in ("name", "generateName")):
        faults.append(_fault(metadata, "name", "such as name: my-job", prefix="metadata."))
    elif not isinstance(metadata.get("namespace") or "", str):
        faults.append(_fault(metadata, "namespace", "or omit it", prefix="metadata."))
    if faults:
        raise BadRequest("\n".join(f"{place}: {fault}" for fault in faults))
    return value


def _fault(value: dict[str, Any], field: str, example: str, *, prefix: str = "") -> str:
    if value.get(field) is not None:
        expected = "a mapping" if field == "metadata" else "a string"
        return f"{prefix}{field}: {called(value[field])} is not allowed; write {expected}, {example}"
    suggestion = nearest(field, (key for key in value if key not in TOP_LEVEL))
    if suggestion:
        return f"{prefix}{field} is missing; did you mean {field} where you wrote {suggestion}?"
    return f"{prefix}{field} is missing; add it, {example}"


def called(value: object) -> str:
    """Describe a YAML value in words."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return f"a list of {len(value)} item{'s' if len(value) != 1 else ''}"
        case bool():
            return f"the value {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case _:
            text = str(value)
            return f"the string {text[:40] + '…' if len(text) > 40 else text!r}"


# Kinds that may exist already: a second run reuses those of the first.
CLAIM = "PersistentVolumeClaim"
MAY_EXIST = frozenset({"persistentvolumeclaims", "namespaces"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """An object of a manifest that was created, or existed already."""

    kind: ResourceKind
    object: Object
    # It existed before and is used unchanged.
    was_there: bool = False
    job: JobRef | None = None

    def __str__(self) -> str:
        return f"{self.kind.singular}/{name_of(self.object)} {'exists' if self.was_there else 'created'}"


Refer = Callable[[ResourceKind, Object], JobRef]
# Returns a fault for each claim that an object uses and that is not among the existing ones.
FindFaults = Callable[[Object, Lookup], tuple[Fault, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCreator:
    """Creates objects in a cluster."""

    cluster: DirectCluster
    kinds: Kinds
    refer: Refer
    find_claim_faults: FindFaults = no_faults

    def create_all(self, documents: tuple[Document, ...]) -> tuple[Created, ...]:
        """Create all objects, jobs last; if one is rejected, delete those created before."""
        kinds = [self._kind_of(document) for document in documents]
        self.check_claims(documents)
        pairs = sorted(zip(kinds, documents, strict=True), key=lambda pair: pair[0].is_job)
        created: list[Created] = []
        try:
            for kind, document in pairs:
                created.append(self._create(kind, document))
        except PacelineError:
            self._roll_back(created)
            raise
        return tuple(created)

    def check_claims(self, documents: tuple[Document, ...]) -> None:
        """Raise Invalid if an object uses a claim that neither exists nor is among the documents."""
        for document in documents:
            self._check_claims(document, documents)

    def check_all(self, documents: tuple[Document, ...]) -> Iterator[PacelineError]:
        """Yield why objects are rejected, by creating them in dry-run mode; existing names are allowed."""
        for document in documents:
            try:
                kind = self._kind_of(document)
                with contextlib.suppress(AlreadyExists):
                    self._create(kind, document, is_dry_run=True)
                self._check_claims(document, documents)
            except PacelineError as error:
                yield error

    def _check_claims(self, document: Document, documents: tuple[Document, ...]) -> None:
        # The cluster would accept the object, and let it wait; but here all objects are known.

        def lookup(_plural: str, namespace: str) -> tuple[str, ...]:
            claims = (other.object for other in documents if other.object["kind"] == CLAIM)
            new = [name_of(claim) for claim in claims if namespace_of(claim) == namespace]
            existing = self.cluster.list(CLAIMS, Select(namespace=namespace)).items
            return (*map(name_of, existing), *new)

        try:
            faults = self.find_claim_faults(document.object, lookup)
        except Forbidden:
            # A caller who may not list claims may still use them.
            return
        if faults:
            label = f"{document.object['kind'].lower()}/{name_of(document.object)}"
            raise Invalid(faults, what=f"{document.place}: {label}")

    def _kind_of(self, document: Document) -> ResourceKind:
        obj = document.object
        try:
            return self.kinds.of(obj["apiVersion"], obj["kind"])
        except Invalid as error:
            raise Invalid(error.faults, what=document.place) from error

    def _create(self, kind: ResourceKind, document: Document, *, is_dry_run: bool = False) -> Created:
        obj = document.object
        if not kind.where.namespaced:
            metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
            obj = {**obj, "metadata": metadata}
        label = f"{kind.singular}/{name_of(obj)}"
        try:
            stored = self._dry_run(kind, obj) if is_dry_run else self.cluster.create(kind.where, obj)
        except AlreadyExists as error:
            if kind.where.plural not in MAY_EXIST:
                raise AlreadyExists(f"{document.place}: {label} already exists") from error
            existing = self.cluster.get(kind.where, *key_of(obj))
            return Created(kind=kind, object=existing, was_there=True)
        except Invalid as error:
            raise Invalid(error.faults, what=f"{document.place}: {label}") from error
        except PacelineError as error:
            raise type(error)(f"{document.place}: {label}: {error}") from error
        return Created(kind=kind, object=stored, job=self.refer(kind, stored) if kind.is_job else None)

    def _dry_run(self, kind: ResourceKind, obj: Object) -> Object:
        request = requests.create(kind.where, obj)
        return responses.read_object(self.cluster.send(replace(request, query=(*request.query, ("dryRun", "All")))))

    def _roll_back(self, created: list[Created]) -> None:
        for entry in reversed(created):
            if entry.was_there:
                continue
            options = {"preconditions": {"uid": uid_of(entry.object)}}
            # It may be deleted already, and an error here must not hide the original one.
            with contextlib.suppress(PacelineError):
                self.cluster.delete(entry.kind.where, key_of(entry.object), options)
