"""Where services lead: keeps the addresses of the pods behind every service. A real cluster has its own for this."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Key, Object, is_deleting, key_of, labels_of, namespace_of, uid_of
from paceline.client.informer import Informer, running
from paceline.client.interface import ENDPOINTS, SERVICES, SLICES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import AlreadyExists, Forbidden, NotFound
from paceline.plan.endpoints import (
    MANAGED_BY,
    MANAGER,
    OLD_MANAGED_BY,
    SERVICE_NAME,
    endpoints_of,
    has_selector,
    selects,
    slices_of,
)

# Members come up one after the other: what happens in this time is written once.
TOGETHER_SECONDS = 0.2
SELECTOR, LABEL, SERVICE = "selector", "label", "service"


@dataclass(slots=True, kw_only=True)
class Endpoints:
    """Follows services and pods, and writes where each service leads."""

    cluster: Cluster
    chance: Random
    # Run by whoever made it, as others look at pods too.
    pods: Informer
    queue: WorkQueue[Key] = field(init=False)
    _services: Informer = field(init=False)
    # Only those that are written here are followed.
    _endpoints: Informer = field(init=False)
    _slices: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._services = Informer(self.cluster, SERVICES, chance=self.chance, on_change=self._service_changed)
        self.pods.cache.listen(self._pod_changed)
        old, new = (Select(labels=f"{label}={MANAGER}") for label in (OLD_MANAGED_BY, MANAGED_BY))
        self._endpoints = Informer(
            self.cluster, ENDPOINTS, select=old, chance=self.chance, on_change=self._endpoints_changed
        )
        self._slices = Informer(self.cluster, SLICES, select=new, chance=self.chance, on_change=self._slice_changed)
        # So that a change costs as much as it changes, however many services and pods there are.
        self._services.cache.index(SELECTOR, lambda service: label_words(service, selector_of(service))[:1])
        self.pods.cache.index(LABEL, lambda pod: label_words(pod, labels_of(pod)))
        self._slices.cache.index(SERVICE, lambda piece: (_service_of(piece),))

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(self._services, self._endpoints, self._slices, shared=(self.pods,), synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, key: Key) -> None:
        """Write where one service leads; what leads nowhere any more goes."""
        service = self._services.cache.get(key)
        desired: dict[Key, Object] = {}
        slices: dict[Key, Object] = {}
        if service is not None and has_selector(service) and not is_deleting(service):
            pods = self._pods_like(service)
            endpoints = endpoints_of(service, pods)
            desired = {key_of(endpoints): endpoints}
            slices = {key_of(piece): piece for piece in slices_of(service, pods)}
        current = {key: self._endpoints.cache[key]} if key in self._endpoints.cache else {}
        try:
            await self._write(ENDPOINTS, self._endpoints, desired=desired, current=current)
            await self._write(SLICES, self._slices, desired=slices, current=self._slices_of(key))
        except (NotFound, Forbidden):
            # The namespace is on its way out, or what was read has gone: its end is told and looked at.
            return

    def _slices_of(self, key: Key) -> dict[Key, Object]:
        return {key_of(piece): piece for piece in self._slices.cache.having(SERVICE, key)}

    def _pods_like(self, service: Object) -> tuple[Object, ...]:
        """Return the pods with the rarest label of a service's selector, sorted by name."""
        cache, labels = self.pods.cache, label_words(service, selector_of(service))
        rarest = min(labels, key=lambda word: cache.count(LABEL, word))
        return tuple(sorted(cache.having(LABEL, rarest), key=key_of))

    async def _write(
        self, where: Collection, informer: Informer, *, desired: dict[Key, Object], current: dict[Key, Object]
    ) -> None:
        for key, obj in current.items():
            if key not in desired:
                await self._delete(where, obj)
        for key, obj in desired.items():
            existing = current.get(key)
            if existing is None:
                await self._make(where, informer, obj)
            elif not _says(existing, obj):
                metadata = {**existing["metadata"], "labels": obj["metadata"]["labels"]}
                informer.observe(await self.cluster.replace(where, {**existing, **obj, "metadata": metadata}))

    async def _make(self, where: Collection, informer: Informer, obj: Object) -> None:
        try:
            informer.observe(await self.cluster.create(where, obj))
        except AlreadyExists:
            # Ours, and not heard of yet: it is looked at when it is. Or somebody else's, who then knows better.
            return

    async def _delete(self, where: Collection, obj: Object) -> None:
        try:
            await self.cluster.delete(where, key_of(obj), {"preconditions": {"uid": uid_of(obj)}})
        except NotFound:
            return

    def _service_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self.queue.add(key_of(new or old or {}))

    def _pod_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            for word in label_words(pod, labels_of(pod)) if pod is not None else ():
                for service in self._services.cache.having(SELECTOR, word):
                    if pod is not None and selects(service, pod):
                        self.queue.add_after(key_of(service), TOGETHER_SECONDS)

    def _endpoints_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self._look_again(key_of(new or old or {}), is_gone=new is None)

    def _slice_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self._look_again(_service_of(new or old or {}), is_gone=new is None)

    def _look_again(self, key: Key, *, is_gone: bool) -> None:
        """Look at a service at once, but not after a deletion: it may be going itself, and its end not told yet."""
        if is_gone:
            self.queue.add_after(key, TOGETHER_SECONDS)
        else:
            self.queue.add(key)


def label_words(obj: Object, labels: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Return labels as index keys, each with its namespace."""
    return tuple((namespace_of(obj), name, value) for name, value in labels.items())


def selector_of(service: Object) -> Mapping[str, str]:
    """Return the labels by which a service selects pods."""
    selector: Mapping[str, str] = (service.get("spec") or {}).get("selector") or {}
    return selector


def _service_of(piece: Object) -> Key:
    return namespace_of(piece), labels_of(piece).get(SERVICE_NAME, "")


def _says(current: Object, desired: Object) -> bool:
    """Return whether an object says what is wanted; it may say more."""
    if labels_of(current) != labels_of(desired):
        return False
    return all((current.get(part) or []) == (desired.get(part) or []) for part in ("subsets", "endpoints", "ports"))
