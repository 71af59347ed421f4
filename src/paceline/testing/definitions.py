"""Teach a real cluster our job kinds."""

import time

from paceline.client.cluster import CRDS, Collection
from paceline.client.direct import DirectCluster
from paceline.errors import Missing, Unavailable
from paceline.kinds import catalog
from paceline.kinds.kind import GROUP, VERSION
from paceline.objects.builtin import builtin_components

_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.05


def define_kinds(cluster: DirectCluster) -> None:
    """Store the definition of every job kind and return once all of them are served."""
    for definition in catalog.crds(builtin_components()):
        cluster.create(CRDS, definition)
    deadline = time.monotonic() + _SERVED_SECONDS
    for kind in catalog.KINDS:
        where = Collection(group=GROUP, version=VERSION, plural=kind.plural)
        while not _is_served(cluster, where):
            if time.monotonic() > deadline:
                raise Unavailable(f"{kind.plural} are defined but not served after {_SERVED_SECONDS:.0f} seconds")
            time.sleep(_POLL_SECONDS)


def _is_served(cluster: DirectCluster, where: Collection) -> bool:
    try:
        cluster.list(where)
    except Missing:
        return False
    return True
