"""The kinds of the embedded API server: the built-in ones, and our own as CustomResourceDefinitions."""

from collections.abc import Mapping
from functools import cache

from paceline import __version__
from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.crd import validation
from paceline.apimachinery.crd.crd import ShippedKind
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.crd.registry import LiveKinds
from paceline.client.interface import CRDS, Cluster
from paceline.cluster.installation.crd_marks import marked, problems, version_of
from paceline.errors import HostError, NotFound
from paceline.kinds import registry
from paceline.store.store import Store

_WRITTEN = ("apiVersion", "kind", "metadata", "spec")


@cache
def builtin_scheme() -> Scheme:
    """Return the kinds that are served without a CRD."""
    return Scheme(resources=builtin_resources(), components=builtin_components())


@cache
def own_kinds() -> Mapping[tuple[str, str], ShippedKind]:
    """Return our kinds with their CRDs, by group and kind."""
    return {
        (resource.group, resource.kind): ShippedKind(resource=resource, definition=_completed(definition))
        for resource, definition in registry.resources_with_crds(builtin_components())
    }


def live_kinds(store: Store) -> LiveKinds:
    """Return the kinds that the CRDs in a store define; our own ones with the validation that a CRD cannot express."""
    return LiveKinds(builtin_scheme(), store, own_kinds())


async def define_kinds(cluster: Cluster) -> None:
    """Create or update the CRDs of our kinds that are missing or of another version of Paceline."""
    for kind in own_kinds().values():
        definition = kind.definition
        # One at a time: all of them together would dominate the memory of this process.
        current = await _find(cluster, name_of(definition))
        if current is None:
            await cluster.create(CRDS, {part: definition[part] for part in _WRITTEN})
        elif current["spec"] != definition["spec"] or version_of(current) != __version__:
            await cluster.replace(CRDS, {**marked(current), "spec": definition["spec"]})


async def check_kinds(cluster: Cluster, *, how: str) -> None:
    """Raise HostError if CRDs in a cluster are someone else's, or newer; `how` says how to replace them still."""
    current = [await _find(cluster, name_of(kind.definition)) for kind in own_kinds().values()]
    if reasons := tuple(problems(definition for definition in current if definition is not None)):
        raise HostError("\n".join((*reasons, f"nothing was changed; {how}")))


async def _find(cluster: Cluster, name: str) -> Object | None:
    try:
        return await cluster.get(CRDS, "", name)
    except NotFound:
        return None


def _completed(definition: Object) -> Object:
    """Return a CRD with defaults, as it is stored, so that the two can be compared."""
    spec = {**definition["spec"], "names": dict(definition["spec"]["names"])}
    completed = {**marked(definition), "spec": spec}
    validation.default(completed)
    return completed
