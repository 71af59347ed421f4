"""What an API server is made of."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from paceline.api.gate import Gate
from paceline.objects.meta import Object
from paceline.objects.scheme import Scheme
from paceline.store.store import Store
from paceline.world import Clock, Ids


class Nodes(Protocol):
    """The way to what runs pods."""

    def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Give the log of a container as it grows; failures are errors of paceline.errors."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Everything the API server works with."""

    store: Store
    scheme: Scheme
    clock: Clock
    ids: Ids
    gate: Gate
    nodes: Nodes
