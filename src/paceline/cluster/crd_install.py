"""What the embedded API server serves: the built-in kinds, and our own by way of their definitions."""

from collections.abc import Mapping
from functools import cache

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.crd import validation
from paceline.apimachinery.crd.crd import ShippedKind
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.crd.registry import LiveKinds, SchemaCache
from paceline.client.interface import CRDS, Cluster
from paceline.errors import NotFound
from paceline.kinds import registry
from paceline.store.store import Store

_WRITTEN = ("apiVersion", "kind", "metadata", "spec")


@cache
def builtin_scheme() -> Scheme:
    """Give the kinds that are served without a definition."""
    return Scheme(resources=builtin_resources(), components=builtin_components())


@cache
def full_scheme() -> Scheme:
    """Give the built-in kinds and our own, as they are served once all of them are defined."""
    components = builtin_components()
    resources = (*builtin_resources(), *registry.resources(components))
    return Scheme(resources=resources, components=components)


@cache
def own_kinds() -> Mapping[tuple[str, str], ShippedKind]:
    """Give our own kinds with their definitions, by group and kind."""
    components = builtin_components()
    pairs = zip(registry.resources(components), registry.crds(components), strict=True)
    return {
        (resource.group, resource.kind): ShippedKind(resource=resource, definition=_completed(definition))
        for resource, definition in pairs
    }


def live_kinds(store: Store) -> LiveKinds:
    """Serve what the definitions in a store say; of our own kinds also what only their author knows."""
    return LiveKinds(builtin_scheme(), store, own_kinds())


def fixed_kinds(store: Store) -> LiveKinds:
    """Serve our own kinds as if they were defined, for tests that start many clusters and have no time for it."""
    return LiveKinds(full_scheme(), store, schemas=_full_schemas())


@cache
def _full_schemas() -> SchemaCache:
    """Give what every server of those tests would work out anew."""
    return SchemaCache(full_scheme().components)


async def define_kinds(cluster: Cluster) -> None:
    """Store the definitions of our own kinds, each that is missing or was made by another Paceline."""
    for known in own_kinds().values():
        wanted = known.definition
        # One at a time: together they would be most of what this process ever holds.
        there = await _find(cluster, name_of(wanted))
        if there is None:
            await cluster.create(CRDS, {part: wanted[part] for part in _WRITTEN})
        elif there["spec"] != wanted["spec"]:
            await cluster.replace(CRDS, {**there, "spec": wanted["spec"]})


async def _find(cluster: Cluster, name: str) -> Object | None:
    try:
        return await cluster.get(CRDS, "", name)
    except NotFound:
        return None


def _completed(definition: Object) -> Object:
    """Give a definition as it is stored: what is there can be compared with what should be."""
    spec = {**definition["spec"], "names": dict(definition["spec"]["names"])}
    completed = {**definition, "spec": spec}
    validation.default(completed)
    return completed
