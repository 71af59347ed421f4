"""Teach a real cluster our kinds."""

import time

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.client.interface import CRDS, Collection
from paceline.client.sync import DirectCluster
from paceline.errors import HostError, NotFound, ServiceUnavailable
from paceline.kinds import registry
from paceline.kinds.kind_types import VERSION

_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.05


def define_kinds(cluster: DirectCluster) -> None:
    """Store the definition of every kind and return once all of them are served."""
    definitions = registry.crds(builtin_components())
    for definition in definitions:
        cluster.create(CRDS, definition)
    deadline = time.monotonic() + _SERVED_SECONDS
    for spec in (definition["spec"] for definition in definitions):
        where = Collection(group=spec["group"], version=VERSION, plural=spec["names"]["plural"])
        while not _is_served(cluster, where):
            if time.monotonic() > deadline:
                raise HostError(f"{where.plural} are defined but not served after {_SERVED_SECONDS:.0f} seconds")
            time.sleep(_POLL_SECONDS)


def _is_served(cluster: DirectCluster, where: Collection) -> bool:
    try:
        cluster.list(where)
    except (ServiceUnavailable, NotFound):
        # Defined a moment ago.
        return False
    return True
