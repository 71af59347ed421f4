"""What is in every namespace from the start: the account that pods run as, and the authority of the API server."""

import asyncio
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, is_deleting, name_of, namespace_of
from paceline.client.informer import Informer
from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, NAMESPACES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import AlreadyExists, Forbidden, NotFound

ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"


@dataclass(slots=True, kw_only=True)
class Accounts:
    """Keeps in every namespace what pods expect there; puts it right when somebody changes it or takes it away."""

    cluster: Cluster
    chance: Random
    # The certificate by which the API server is known, as PEM.
    authority: str
    queue: WorkQueue[str] = field(init=False)
    _namespaces: Informer = field(init=False)
    # Only those that are kept here are followed.
    _accounts: Informer = field(init=False)
    _authorities: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._namespaces = Informer(self.cluster, NAMESPACES, chance=self.chance, on_change=self._namespace_changed)
        self._accounts = self._follow(ACCOUNTS, ACCOUNT)
        self._authorities = self._follow(CONFIG_MAPS, AUTHORITY)

    def _follow(self, where: Collection, name: str) -> Informer:
        select = Select(fields=f"metadata.name={name}")
        return Informer(self.cluster, where, select=select, chance=self.chance, on_change=self._kept_changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        informers = (self._namespaces, self._accounts, self._authorities)
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.has_synced.wait()
            synced.set()
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, name: str) -> None:
        """Make what one namespace lacks, and put right what is not as it should be."""
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
                right = {**current, "data": config_map["data"]}
                self._authorities.observe(await self.cluster.replace(CONFIG_MAPS, right))
        except (NotFound, Forbidden):
            # The namespace is on its way out.
            return

    async def _make(self, where: Collection, informer: Informer, manifest: Object) -> None:
        try:
            informer.observe(await self.cluster.create(where, manifest))
        except AlreadyExists:
            # Not heard of yet; when it is, it is looked at.
            return

    def _namespace_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        if new is not None and old is None:
            self.queue.add(name_of(new))

    def _kept_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self.queue.add(namespace_of(new or old or {}))
