"""The interface of a cluster: its verbs and their types."""

from collections.abc import AsyncGenerator, Callable, Mapping
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
# Of T9k's scheduler; only clusters with it have this kind.
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
    """A page of a list: objects, the revision they were read at, and the continue token."""

    items: tuple[Object, ...]
    revision: str
    next: str = ""


class Change(StrEnum):
    """The type of a watch event."""

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
    """The content type of a patch."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """Selection of objects of a collection, and which part of them is returned."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    # Return only the identity, owner references and finalizers, to follow very many objects.
    only_ties: bool = False
    # Applied to every object as it is read, so that complete objects of a long list are never all in memory.
    trim: Callable[[Object], Object] | None = None


class ListerWatcher(Protocol):
    """What an informer needs of a cluster. Failures are errors of paceline.errors, never HTTP codes."""

    async def list(self, where: Collection, select: Select | None = None, *, limit: int = 500) -> Page:
        """Return all selected objects, read page by page at one revision."""
        ...

    def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events after a revision until the server ends the stream; raise Expired when it is too old.

        Bookmarks are included. To stop early, close the generator (`contextlib.aclosing`).
        """
        ...


class Cluster(ListerWatcher, Protocol):
    """A cluster. Failures are errors of paceline.errors, never HTTP codes."""

    async def page(self, where: Collection, select: Select, *, limit: int, after: str = "") -> Page:
        """Return one page of a list; raise Expired when the list it continues is no longer kept."""
        ...

    async def get(self, where: Collection, namespace: str, name: str) -> Object:
        """Return one object; raise NotFound when it does not exist."""
        ...

    async def create(self, where: Collection, obj: Object, *, author: str = "") -> Object:
        """Create an object; raise AlreadyExists when the name is taken, Invalid when the object is not valid."""
        ...

    async def replace(self, where: Collection, obj: Object, *, subresource: str = "") -> Object:
        """Replace an object; raise Conflict when it has changed since it was read."""
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
        """Change parts of an object; a `metadata.resourceVersion` in a merge patch is a precondition."""
        ...

    async def apply(self, where: Collection, obj: Object, *, author: str, force: bool = False) -> Object:
        """Apply a configuration (server-side apply); raise Conflict when another manager owns a changed field."""
        ...

    async def delete(self, where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> None:
        """Delete an object; raise NotFound when it does not exist, Conflict when a precondition fails."""
        ...

    async def post(self, path: str, body: Object) -> Object:
        """Post a body to a subresource (binding, eviction)."""
        ...

    def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield the content of a path as it grows (logs); closing the generator closes the connection."""
        ...
