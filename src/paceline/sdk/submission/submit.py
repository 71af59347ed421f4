"""Creates the objects of a manifest: all of them, or none."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, key_of, name_of, uid_of
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, Invalid, PacelineError
from paceline.sdk.discovery import Kind, Kinds
from paceline.sdk.job import JobRef
from paceline.sdk.submission.manifest_document import Document

# Kinds that may exist already: a second run reuses those of the first.
MAY_EXIST = frozenset({"persistentvolumeclaims", "namespaces"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """An object of a manifest that was created, or existed already."""

    kind: Kind
    object: Object
    # It existed before and is used unchanged.
    was_there: bool = False
    job: JobRef | None = None

    def __str__(self) -> str:
        return f"{self.kind.singular}/{name_of(self.object)} {'exists' if self.was_there else 'created'}"


Refer = Callable[[Kind, Object], JobRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Creates objects in a cluster."""

    cluster: DirectCluster
    kinds: Kinds
    refer: Refer

    def create_all(self, documents: tuple[Document, ...]) -> tuple[Created, ...]:
        """Create all objects, jobs last; if one is rejected, delete those created before."""
        kinds = [self._kind_of(document) for document in documents]
        pairs = sorted(zip(kinds, documents, strict=True), key=lambda pair: pair[0].is_job)
        created: list[Created] = []
        try:
            for kind, document in pairs:
                created.append(self._create(kind, document))
        except PacelineError:
            self._roll_back(created)
            raise
        return tuple(created)

    def _kind_of(self, document: Document) -> Kind:
        obj = document.object
        try:
            return self.kinds.of(obj["apiVersion"], obj["kind"])
        except Invalid as error:
            raise Invalid(error.faults, what=document.place) from error

    def _create(self, kind: Kind, document: Document) -> Created:
        obj = document.object
        if not kind.where.namespaced:
            metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
            obj = {**obj, "metadata": metadata}
        label = f"{kind.singular}/{name_of(obj)}"
        try:
            stored = self.cluster.create(kind.where, obj)
        except AlreadyExists as error:
            if kind.where.plural not in MAY_EXIST:
                raise AlreadyExists(f"{document.place}: {label} exists already") from error
            existing = self.cluster.get(kind.where, *key_of(obj))
            return Created(kind=kind, object=existing, was_there=True)
        except Invalid as error:
            raise Invalid(error.faults, what=f"{document.place}: {label}") from error
        except PacelineError as error:
            raise type(error)(f"{document.place}: {label}: {error}") from error
        return Created(kind=kind, object=stored, job=self.refer(kind, stored) if kind.is_job else None)

    def _roll_back(self, created: list[Created]) -> None:
        for entry in reversed(created):
            if entry.was_there:
                continue
            options = {"preconditions": {"uid": uid_of(entry.object)}}
            # It may be deleted already, and an error here must not hide the original one.
            with contextlib.suppress(PacelineError):
                self.cluster.delete(entry.kind.where, key_of(entry.object), options)
