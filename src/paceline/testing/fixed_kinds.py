"""All kinds of the embedded API server without installing CRDs, for tests that start many clusters."""

from functools import cache

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.crd.registry import LiveKinds, SchemaCache
from paceline.kinds import registry
from paceline.store.store import Store


@cache
def full_scheme() -> Scheme:
    """Return the built-in kinds and our own, as they are served once all CRDs are installed."""
    return Scheme(resources=(*builtin_resources(), *registry.resources()), components=builtin_components())


def fixed_kinds(store: Store) -> LiveKinds:
    """Return the kinds of the embedded API server, none of which comes from a CRD in the store."""
    return LiveKinds(full_scheme(), store, schemas=_schemas())


@cache
def _schemas() -> SchemaCache:
    return SchemaCache(full_scheme().components)
