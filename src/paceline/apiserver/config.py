"""The components of an API server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from paceline.apimachinery.meta import Object
from paceline.apimachinery.metrics import MetricRegistry
from paceline.apimachinery.scheme import Scheme
from paceline.apiserver.activity import ActivityTracker
from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.fairness import Fairness
from paceline.apiserver.http_types import Receive, Scope, Send
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import InlineExecutor
from paceline.apiserver.status_errors import not_found, object_modified
from paceline.effects import Clock, Executor, Ids
from paceline.errors import Conflict, NotFound
from paceline.store.store import Store, Stored

T = TypeVar("T")

# A write that conflicts with a concurrent one is repeated this often.
MAX_TRIES = 8


class Nodes(Protocol):
    """The connection to the node agents."""

    def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Return the log of a container as it grows; raise errors of paceline.errors."""
        ...

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Proxy a request or an accepted WebSocket to the node agent, at the path in the scope's `raw_path`."""
        ...

    async def stats(self) -> Object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    store: Store
    kinds: LiveKinds
    clock: Clock
    ids: Ids
    gate: Authenticator
    nodes: Nodes
    # Without it, service accounts have no tokens and pods get none.
    tokens: AccountTokens | None = None
    # Whether tokens are mounted into pods.
    mounts_tokens: bool = False
    # Runs the work of large requests, so that small ones do not wait.
    blocking: Executor = field(default_factory=InlineExecutor)
    # Limits per caller.
    fairness: Fairness = field(default_factory=Fairness)
    # Counts requests that are proxied to Services.
    activity: ActivityTracker | None = None
    # The metrics of this process, which /metrics shows.
    metrics: MetricRegistry = field(default_factory=MetricRegistry)

    @property
    def scheme(self) -> Scheme:
        """The resources served now; may change at every await."""
        return self.kinds.scheme

    def find(self, target: Target) -> Stored:
        stored = self.store.get(target.key)
        if stored is None:
            raise not_found(target.resource, target.name)
        return stored

    def read(self, target: Target) -> Object:
        return read(self.find(target).value)

    async def update(self, target: Target, step: Callable[[Stored], Awaitable[T]]) -> T:
        """Run a step that writes the current object, and again after a concurrent write.

        A write with a resourceVersion of the client fails at once, in the step.
        """
        for remaining in reversed(range(MAX_TRIES)):
            try:
                return await step(self.find(target))
            except NotFound as error:
                raise not_found(target.resource, target.name) from error
            except Conflict as error:
                if not remaining:
                    raise object_modified(target.resource, target.name) from error
        raise AssertionError("unreachable: the last try returns or raises")
