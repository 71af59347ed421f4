"""Empties namespaces that are being deleted, and creates the default objects of every namespace."""

import asyncio
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, is_deleting, key_of, name_of, namespace_of, uid_of
from paceline.client.informer import Informer, running
from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, NAMESPACES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.gc.metadata_informers import ask_kinds
from paceline.effects import Random
from paceline.errors import AlreadyExists, Conflict, Forbidden, NotFound

# On every namespace until it is empty.
FINALIZER = "kubernetes"
# Pods take time to terminate; check again after this time.
RECHECK_SECONDS = 0.5


@dataclass(slots=True, kw_only=True)
class Namespaces:
    """Empties the namespaces that are being deleted. The kinds are discovered each time."""

    cluster: Cluster
    chance: Random
    queue: WorkQueue[str] = field(init=False)
    _namespaces: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the cache; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="namespaces")
        self._namespaces = Informer(self.cluster, NAMESPACES, chance=self.chance, on_change=self._changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once the cache has been filled."""
        async with running(self._namespaces, synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, name: str) -> None:
        """Delete everything in one namespace; once it is empty, remove the finalizer."""
        namespace = self._namespaces.cache.get(("", name))
        if namespace is None or not _is_terminating(namespace):
            return
        remaining = 0
        for where in (await ask_kinds(self.cluster)).able("delete", "list"):
            remaining += await self._empty(where, name) if where.namespaced else 0
        if remaining:
            self.queue.add_after(name, RECHECK_SECONDS)
            return
        others = [finalizer for finalizer in namespace["spec"]["finalizers"] if finalizer != FINALIZER]
        freed = {**namespace, "spec": {**namespace["spec"], "finalizers": others}}
        try:
            await self.cluster.replace(NAMESPACES, freed, subresource="finalize")
        except NotFound:
            return

    async def _empty(self, where: Collection, namespace: str) -> int:
        """Delete all objects of one kind; return how many there were."""
        try:
            page = await self.cluster.list(where, Select(namespace=namespace))
        except NotFound:
            # The kind was deleted meanwhile, and its objects with it.
            return 0
        for obj in page.items:
            if not is_deleting(obj):
                await self._delete(where, obj)
        return len(page.items)

    async def _delete(self, where: Collection, obj: Object) -> None:
        options = {"preconditions": {"uid": uid_of(obj)}, "propagationPolicy": "Background"}
        try:
            await self.cluster.delete(where, key_of(obj), options)
        except (NotFound, Conflict):
            # Deleted or changed meanwhile; the next pass sees it.
            return

    def _changed(self, _change: Change, _old: Object | None, new: Object | None) -> None:
        if new is not None and _is_terminating(new):
            self.queue.add(name_of(new))


def _is_terminating(namespace: Object) -> bool:
    return is_deleting(namespace) and FINALIZER in ((namespace.get("spec") or {}).get("finalizers") or ())


ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"


@dataclass(slots=True, kw_only=True)
class ServiceAccounts:
    """Keeps the default service account and the CA config map in every namespace."""

    cluster: Cluster
    chance: Random
    # The certificate authority of the API server, as PEM.
    authority: str
    queue: WorkQueue[str] = field(init=False)
    _namespaces: Informer = field(init=False)
    # Only those that this controller manages.
    _accounts: Informer = field(init=False)
    _authorities: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="service-accounts")
        self._namespaces = Informer(self.cluster, NAMESPACES, chance=self.chance, on_change=self._namespace_changed)
        self._accounts = self._follow(ACCOUNTS, ACCOUNT)
        self._authorities = self._follow(CONFIG_MAPS, AUTHORITY)

    def _follow(self, where: Collection, name: str) -> Informer:
        select = Select(fields=f"metadata.name={name}")
        return Informer(self.cluster, where, select=select, chance=self.chance, on_change=self._object_changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(self._namespaces, self._accounts, self._authorities, synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, name: str) -> None:
        """Create or correct the default objects of one namespace."""
        namespace = self._namespaces.cache.get(("", name))
        if namespace is None or is_deleting(namespace):
            return
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": name}}
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": AUTHORITY, "namespace": name},
            "data": {"ca.crt": self.authority},
        }
        try:
            if self._accounts.cache.get((name, ACCOUNT)) is None:
                await self._make(ACCOUNTS, self._accounts, account)
            current = self._authorities.cache.get((name, AUTHORITY))
            if current is None:
                await self._make(CONFIG_MAPS, self._authorities, config_map)
            elif current.get("data") != config_map["data"]:
                corrected = {**current, "data": config_map["data"]}
                self._authorities.observe(await self.cluster.replace(CONFIG_MAPS, corrected))
        except (NotFound, Forbidden):
            # The namespace is being deleted.
            return

    async def _make(self, where: Collection, informer: Informer, manifest: Object) -> None:
        try:
            informer.observe(await self.cluster.create(where, manifest))
        except AlreadyExists:
            # Not in the cache yet; its event triggers a reconcile.
            return

    def _namespace_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        if new is not None and old is None:
            self.queue.add(name_of(new))

    def _object_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self.queue.add(namespace_of(new or old or {}))
