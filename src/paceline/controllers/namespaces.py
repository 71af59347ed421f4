"""The end of a namespace: everything in it goes, whatever kind it is, and then the namespace itself."""

import asyncio
import json
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, is_deleting, key_of, name_of, namespace_of, uid_of
from paceline.client.informer import Informer, running
from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, NAMESPACES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import AlreadyExists, Conflict, Forbidden, NotFound

# Held by every namespace until nothing is left in it.
FINALIZER = "kubernetes"
# How long what was asked to go has before it is looked for again; pods end in their own time.
AGAIN_SECONDS = 0.5
_NEEDED = frozenset({"delete", "list"})


@dataclass(slots=True, kw_only=True)
class Namespaces:
    """Empties the namespaces that are to go. Which kinds there are is asked anew each time."""

    cluster: Cluster
    chance: Random
    queue: WorkQueue[str] = field(init=False)
    _namespaces: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the cache; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._namespaces = Informer(self.cluster, NAMESPACES, chance=self.chance, on_change=self._changed)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once the cache has been filled."""
        async with running(self._namespaces, synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, name: str) -> None:
        """Ask everything in one namespace to go; once it has gone, let go of the namespace."""
        namespace = self._namespaces.cache.get(("", name))
        if namespace is None or not _is_held(namespace):
            return
        remaining = 0
        for where in await self._kinds():
            remaining += await self._empty(where, name)
        if remaining:
            self.queue.add_after(name, AGAIN_SECONDS)
            return
        others = [finalizer for finalizer in namespace["spec"]["finalizers"] if finalizer != FINALIZER]
        freed = {**namespace, "spec": {**namespace["spec"], "finalizers": others}}
        try:
            await self.cluster.replace(NAMESPACES, freed, subresource="finalize")
        except NotFound:
            return

    async def _empty(self, where: Collection, namespace: str) -> int:
        """Ask all objects of one kind to go; give how many there were."""
        try:
            page = await self.cluster.list(where, Select(namespace=namespace))
        except NotFound:
            # The kind itself has gone meanwhile, and its objects with it.
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
            # Gone already, or changed: the next look tells.
            return

    async def _kinds(self) -> tuple[Collection, ...]:
        """Ask which kinds live in namespaces, those that people have defined too."""
        groups = (await self._ask("/apis"))["groups"]
        versions = [
            ("", "v1"),
            *((group_entry["name"], group_entry["preferredVersion"]["version"]) for group_entry in groups),
        ]
        collections: list[Collection] = []
        for group, version in versions:
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            try:
                listed = (await self._ask(path))["resources"]
            except NotFound:
                continue
            collections.extend(
                Collection(group=group, version=version, plural=resource["name"])
                for resource in listed
                if resource["namespaced"] and "/" not in resource["name"] and set(resource["verbs"]) >= _NEEDED
            )
        return tuple(collections)

    async def _ask(self, path: str) -> Object:
        answer: Object = json.loads(b"".join([part async for part in self.cluster.stream(path, {})]))
        return answer

    def _changed(self, _change: Change, _old: Object | None, new: Object | None) -> None:
        if new is not None and _is_held(new):
            self.queue.add(name_of(new))


def _is_held(namespace: Object) -> bool:
    return is_deleting(namespace) and FINALIZER in ((namespace.get("spec") or {}).get("finalizers") or ())


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
        async with running(self._namespaces, self._accounts, self._authorities, synced=synced):
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
