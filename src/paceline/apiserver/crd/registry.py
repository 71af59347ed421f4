"""The resources served now: the built-in ones, and those of the stored CustomResourceDefinitions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.crd import ShippedKind
from paceline.apimachinery.fields.typed import Types
from paceline.apimachinery.meta import Object
from paceline.apimachinery.schema import Shapes
from paceline.apimachinery.scheme import ByKind, Resource, Scheme
from paceline.apiserver.crd.schema_validation import Validators
from paceline.store.store import Store, Stored
from paceline.store.watch_hub import Watch


class SchemaCache:
    """Values derived from schemas, computed on first use. Servers with the same kinds may share one cache."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        shapes, types, custom = Shapes(components), Types(components), Types(components, has_atomic_lists=True)
        self.validators = Validators(components)
        self.shapes = ByKind(lambda kind: shapes.of_object(kind.schema, structural=kind.is_structural))
        self.types = ByKind(lambda kind: (custom if _is_custom(kind) else types).of_object(kind.schema))


def _is_custom(resource: Resource) -> bool:
    """Return whether a CRD defines a resource: only Kubernetes' own groups have no domain, or end in .k8s.io."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")


# Definitions are not in a namespace.
PREFIX = f"/{crd.GROUP}/{crd.PLURAL}/"
NO_AUTHORS: Mapping[tuple[str, str], ShippedKind] = MappingProxyType({})


class LiveKinds:
    """The current scheme; a new one is built when a definition has changed."""

    def __init__(
        self,
        fixed: Scheme,
        store: Store,
        shipped: Mapping[tuple[str, str], ShippedKind] = NO_AUTHORS,
        *,
        schemas: SchemaCache | None = None,
    ) -> None:
        # Schemas of definitions are self-contained: only built-in ones refer to components.
        self.schemas = schemas or SchemaCache(fixed.components)
        self._fixed = fixed
        self._store = store
        self._shipped = shipped
        self._taken = {(resource.group, resource.plural) for resource in fixed.resources}
        self._scheme = fixed
        self._watch: Watch | None = None
        # By key.
        self._cache: dict[str, tuple[int, Object]] = {}
        self._resources_by_fingerprint: dict[tuple[object, ...], tuple[Resource, ...]] = {}

    @property
    def scheme(self) -> Scheme:
        # A write is published before it is acknowledged, so the next request is served accordingly.
        if self._watch is None or self._watch.oldest is not None or self._watch.is_over:
            self._refresh()
        return self._scheme

    def definitions(self) -> tuple[Object, ...]:
        """Return all stored definitions, for reading only."""
        stored = self._store.list(PREFIX)
        self._cache = {item.key: self._decoded(item) for item in stored}
        return tuple(definition for _, definition in self._cache.values())

    def definition_of(self, resource: Resource) -> Object | None:
        """Return the definition of a resource; None for built-in ones."""
        if (resource.group, resource.plural) in self._taken:
            return None
        stored = self._store.get(f"{PREFIX}-/{resource.plural}.{resource.group}")
        return None if stored is None else self._decoded(stored)[1]

    def is_shipped(self, definition: Object) -> bool:
        """Return whether a definition equals the one that this program ships."""
        spec = definition["spec"]
        author = self._shipped.get((spec["group"], spec["names"]["kind"]))
        return author is not None and author.definition["spec"] == spec

    def _decoded(self, stored: Stored) -> tuple[int, Object]:
        cached = self._cache.get(stored.key)
        if cached is not None and cached[0] == stored.revision:
            return cached
        return stored.revision, self._shared(orjson.loads(stored.value))

    def _shared(self, definition: Object) -> Object:
        """Let a shipped definition share its schemas with the program's own: they are large."""
        if self.is_shipped(definition):
            spec = definition["spec"]
            definition["spec"] = self._shipped[spec["group"], spec["names"]["kind"]].definition["spec"]
        return definition

    def _refresh(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = self._store.watch(PREFIX, self._store.revision)
        served = [definition for definition in self.definitions() if crd.is_served(definition)]
        self._resources_by_fingerprint = {
            fingerprint: self._resources(fingerprint, definition)
            for definition in served
            for fingerprint in (crd.fingerprint(definition),)
        }
        dynamic = (resource for resources in self._resources_by_fingerprint.values() for resource in resources)
        self._scheme = Scheme(resources=(*self._fixed.resources, *dynamic), components=self._fixed.components)

    def _resources(self, fingerprint: tuple[object, ...], definition: Object) -> tuple[Resource, ...]:
        if fingerprint in self._resources_by_fingerprint:
            return self._resources_by_fingerprint[fingerprint]
        resources = crd.resources_of(definition, self._shipped)
        return tuple(resource for resource in resources if (resource.group, resource.plural) not in self._taken)
