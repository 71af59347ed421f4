"""What an API server is made of."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.activity import ActivityTracker
from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.fairness import Fairness
from paceline.apiserver.http_types import Receive, Scope, Send
from paceline.apiserver.slicing import InlineExecutor
from paceline.effects import Clock, Executor, Ids
from paceline.store.store import Store


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
    gate: Authenticator
    nodes: Nodes
    # Without them accounts have none, and pods are given none.
    tokens: AccountTokens | None = None
    # Whether pods are given one without asking.
    mounts_tokens: bool = False
    # Where large requests are read and checked, so that small ones do not wait for them.
    blocking: Executor = field(default_factory=InlineExecutor)
    # How much of the server each caller may take.
    fairness: Fairness = field(default_factory=Fairness)
    # Where requests that are passed on to services are counted, if anybody wants to know.
    visits: ActivityTracker | None = None

    @property
    def scheme(self) -> Scheme:
        """What is served now; it may be another scheme after the next await."""
        return self.kinds.scheme
