"""Fill the scheme: the built-in kinds and every job kind of the catalogue."""

import functools

from paceline.kinds import catalog
from paceline.objects.builtin import builtin_components, builtin_resources
from paceline.objects.scheme import Scheme


@functools.cache
def full_scheme() -> Scheme:
    """Give everything the embedded API server serves."""
    components = builtin_components()
    return Scheme(resources=(*builtin_resources(), *catalog.resources(components)), components=components)
