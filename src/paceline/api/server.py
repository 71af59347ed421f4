"""What an API server is made of."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from paceline.api.aside import Inline
from paceline.api.definitions import LiveKinds
from paceline.api.exchange import Receive, Scope, Send
from paceline.api.fairness import Fairness
from paceline.api.gate import Gate
from paceline.api.tokens import AccountTokens
from paceline.api.visits import Visits
from paceline.objects.meta import Object
from paceline.objects.scheme import Scheme
from paceline.store.store import Store
from paceline.world import Blocking, Clock, Ids


class Nodes(Protocol):
    """The way to what runs pods."""

    def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Give the log of a container as it grows; failures are errors of paceline.errors."""
        ...

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or an arrived WebSocket on to the node's agent, whose path is the scope's `raw_path`."""
        ...

    async def stats(self) -> Object:
        """Tell what the node and its pods use."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Everything the API server works with."""

    store: Store
    kinds: LiveKinds
    clock: Clock
    ids: Ids
    gate: Gate
    nodes: Nodes
    # Without them accounts have none, and pods are given none.
    tokens: AccountTokens | None = None
    # Whether pods are given one without asking.
    mounts_tokens: bool = False
    # Where large requests are read and checked, so that small ones do not wait for them.
    blocking: Blocking = field(default_factory=Inline)
    # How much of the server each caller may take.
    fairness: Fairness = field(default_factory=Fairness)
    # Where requests that are passed on to services are counted, if anybody wants to know.
    visits: Visits | None = None

    @property
    def scheme(self) -> Scheme:
        """What is served now; it may be another scheme after the next await."""
        return self.kinds.scheme
