"""What is served now: the built-in kinds, and what the stored CustomResourceDefinitions add."""

from collections.abc import Mapping
from types import MappingProxyType

import orjson

from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.crd import Known
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.crd.schema_cache import SchemaCache
from paceline.store.store import Store, Stored
from paceline.store.watch_hub import Watch

# Where definitions are stored; all of them, for they are in no namespace.
PREFIX = f"/{crd.GROUP}/{crd.PLURAL}/"
NO_AUTHORS: Mapping[tuple[str, str], Known] = MappingProxyType({})


class LiveKinds:
    """The scheme as of now. It is made anew when a definition has changed, and is the same one until then."""

    def __init__(
        self,
        fixed: Scheme,
        store: Store,
        known: Mapping[tuple[str, str], Known] = NO_AUTHORS,
        *,
        schemas: SchemaCache | None = None,
    ) -> None:
        # Those of a definition stand for themselves: the components are always the built-in ones.
        self.schemas = schemas or SchemaCache(fixed.components)
        self._fixed = fixed
        self._store = store
        self._known = known
        self._taken = {(each.group, each.plural) for each in fixed.resources}
        self._scheme = fixed
        self._watch: Watch | None = None
        # By key; as many as there are definitions.
        self._read: dict[str, tuple[int, Object]] = {}
        self._made: dict[tuple[object, ...], tuple[Resource, ...]] = {}

    @property
    def scheme(self) -> Scheme:
        """Give what is served now."""
        # A write is in the feed before it is acknowledged, so whoever has seen the answer is served accordingly.
        if self._watch is None or self._watch.oldest is not None or self._watch.is_over:
            self._look()
        return self._scheme

    def definitions(self) -> tuple[Object, ...]:
        """Give all stored definitions; they are not to be changed."""
        stored = self._store.list(PREFIX)
        self._read = {each.key: self._reading(each) for each in stored}
        return tuple(definition for _, definition in self._read.values())

    def definition_of(self, resource: Resource) -> Object | None:
        """Give the definition that a kind comes from; None for a kind that has none."""
        if (resource.group, resource.plural) in self._taken:
            return None
        stored = self._store.get(f"{PREFIX}-/{resource.plural}.{resource.group}")
        return None if stored is None else self._reading(stored)[1]

    def is_authors(self, definition: Object) -> bool:
        """Tell whether a definition says what its author, who is in this program, says."""
        spec = definition["spec"]
        author = self._known.get((spec["group"], spec["names"]["kind"]))
        return author is not None and author.definition["spec"] == spec

    def _reading(self, stored: Stored) -> tuple[int, Object]:
        before = self._read.get(stored.key)
        if before is not None and before[0] == stored.revision:
            return before
        return stored.revision, self._shared(orjson.loads(stored.value))

    def _shared(self, definition: Object) -> Object:
        """Let a definition that says what its author says be one with the author's: the schemas are large."""
        if self.is_authors(definition):
            spec = definition["spec"]
            definition["spec"] = self._known[spec["group"], spec["names"]["kind"]].definition["spec"]
        return definition

    def _look(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = self._store.watch(PREFIX, self._store.revision)
        served = [each for each in self.definitions() if crd.is_served(each)]
        self._made = {mark: self._resources(mark, each) for each in served for mark in (crd.fingerprint(each),)}
        dynamic = (resource for made in self._made.values() for resource in made)
        self._scheme = Scheme(resources=(*self._fixed.resources, *dynamic), components=self._fixed.components)

    def _resources(self, mark: tuple[object, ...], definition: Object) -> tuple[Resource, ...]:
        if mark in self._made:
            return self._made[mark]
        made = crd.resources_of(definition, self._known)
        return tuple(each for each in made if (each.group, each.plural) not in self._taken)
