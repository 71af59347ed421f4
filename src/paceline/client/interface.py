"""The one way to reach a cluster: the verbs, and the few types they speak."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from paceline.apimachinery.meta import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A kind as a path names it."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, of one object in it, or of a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{middle}/{self.plural}{tail}"


PODS = Collection(group="", version="v1", plural="pods")
SERVICES = Collection(group="", version="v1", plural="services")
EVENTS = Collection(group="", version="v1", plural="events")
CLAIMS = Collection(group="", version="v1", plural="persistentvolumeclaims")
VOLUMES = Collection(group="", version="v1", plural="persistentvolumes", namespaced=False)
NODES = Collection(group="", version="v1", plural="nodes", namespaced=False)
NAMESPACES = Collection(group="", version="v1", plural="namespaces", namespaced=False)
CONFIG_MAPS = Collection(group="", version="v1", plural="configmaps")
SECRETS = Collection(group="", version="v1", plural="secrets")
ACCOUNTS = Collection(group="", version="v1", plural="serviceaccounts")
ENDPOINTS = Collection(group="", version="v1", plural="endpoints")
SLICES = Collection(group="discovery.k8s.io", version="v1", plural="endpointslices")
STORAGE_CLASSES = Collection(group="storage.k8s.io", version="v1", plural="storageclasses", namespaced=False)
PRIORITY_CLASSES = Collection(group="scheduling.k8s.io", version="v1", plural="priorityclasses", namespaced=False)
# What T9k's scheduler reads; only clusters that have it have these.
POD_GROUPS = Collection(group="scheduler.tensorstack.dev", version="v1beta1", plural="podgroups")
LEASES = Collection(group="coordination.k8s.io", version="v1", plural="leases")
CRDS = Collection(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    namespaced=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The answer to a list: objects, the revision they were read at, and how to go on."""

    items: tuple[Object, ...]
    revision: str
    next: str = ""


class Change(StrEnum):
    """What a watch tells."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One event of a watch."""

    change: Change
    object: Object


class PatchType(StrEnum):
    """How a patch body is to be read."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """Which objects of a collection are meant, and whether they come whole."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    # Give of each only which object it is, whom it belongs to and what holds it: for those who follow very many.
    only_ties: bool = False


class Cluster(Protocol):
    """The contract every cluster keeps; failures are errors of paceline.errors, never HTTP codes."""

    async def get(self, where: Collection, namespace: str, name: str) -> Object:
        """Read one object; Missing when it is not there."""
        ...

    async def list(self, where: Collection, select: Select | None = None, *, limit: int = 500) -> Page:
        """Read all objects that are selected, page by page, at one revision."""
        ...

    def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow what happens after a revision until the server ends the stream; Expired when it is too old.

        Bookmarks are told too. Whoever stops early closes the generator (`contextlib.aclosing`), which hangs up.
        """
        ...

    async def create(self, where: Collection, obj: Object, *, author: str = "") -> Object:
        """Store a new object; Exists when the name is taken, Invalid when it breaks rules."""
        ...

    async def replace(self, where: Collection, obj: Object, *, subresource: str = "") -> Object:
        """Store a whole object in place of the one it was read from; Conflict when that has changed."""
        ...

    async def patch(
        self,
        where: Collection,
        key: tuple[str, str],
        patch: Any,
        *,
        kind: PatchType = ...,
        subresource: str = "",
    ) -> Object:
        """Change parts of an object; a `metadata.resourceVersion` in a merge patch guards it."""
        ...

    async def apply(self, where: Collection, obj: Object, *, author: str, force: bool = False) -> Object:
        """Make true what an author wants of an object, made if need be; Conflict when others own what would change."""
        ...

    async def delete(self, where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> None:
        """Ask for an object to go; Missing when it is not there, Conflict when a precondition fails."""
        ...

    async def post(self, path: str, body: Object) -> Object:
        """Send a body to a subresource that is not an object of its own (binding, eviction)."""
        ...

    def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Read a path as it grows (logs); closing the generator hangs up."""
        ...
