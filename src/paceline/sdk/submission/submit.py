"""Create what a file describes: all of it, or nothing."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, key_of, name_of, uid_of
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, Invalid, PacelineError
from paceline.sdk.discovery import Kind, Kinds
from paceline.sdk.job import JobRef
from paceline.sdk.submission.manifest_document import Document

# Kinds that a file may bring along again: a second run uses what the first one made.
MAY_EXIST = frozenset({"persistentvolumeclaims", "namespaces"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """One object of a file that is now in the cluster."""

    kind: Kind
    object: Object
    # It was there before and is used as it is.
    was_there: bool = False
    job: JobRef | None = None

    def __str__(self) -> str:
        return f"{self.kind.singular}/{name_of(self.object)} {'exists' if self.was_there else 'created'}"


Refer = Callable[[Kind, Object], JobRef]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """What creating needs: the cluster, its kinds, and how a job becomes a handle."""

    cluster: DirectCluster
    kinds: Kinds
    refer: Refer

    def create_all(self, documents: tuple[Document, ...]) -> tuple[Created, ...]:
        """Create every object, those that jobs may need first; when one is refused, take back the others."""
        kinds = [self._kind_of(document) for document in documents]
        pairs = sorted(zip(kinds, documents, strict=True), key=lambda pair: pair[0].is_job)
        created: list[Created] = []
        try:
            for kind, document in pairs:
                created.append(self._create(kind, document))
        except PacelineError:
            self._take_back(created)
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

    def _take_back(self, created: list[Created]) -> None:
        for entry in reversed(created):
            if entry.was_there:
                continue
            options = {"preconditions": {"uid": uid_of(entry.object)}}
            # Gone already is what is wanted; an error here must not hide the one that matters.
            with contextlib.suppress(PacelineError):
                self.cluster.delete(entry.kind.where, key_of(entry.object), options)
