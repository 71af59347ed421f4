"""Writes the Endpoints and EndpointSlices of every Service. A real cluster has its own controller for this."""

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

# Replicas start one after the other: changes within this time are written once.
TOGETHER_SECONDS = 0.2
SELECTOR, LABEL, SERVICE = "selector", "label", "service"


@dataclass(slots=True, kw_only=True)
class Endpoints:
    """Reconciles the Endpoints and EndpointSlices of Services."""

    cluster: Cluster
    chance: Random
    # Shared with other controllers, which run it.
    pods: Informer
    queue: WorkQueue[Key] = field(init=False)
    _services: Informer = field(init=False)
    # Only those that this controller manages.
    _endpoints: Informer = field(init=False)
    _slices: Informer = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="endpoints")
        self._services = Informer(self.cluster, SERVICES, chance=self.chance, on_change=self._service_changed)
        self.pods.cache.listen(self._pod_changed)
        old, new = (Select(labels=f"{label}={MANAGER}") for label in (OLD_MANAGED_BY, MANAGED_BY))
        self._endpoints = Informer(
            self.cluster, ENDPOINTS, select=old, chance=self.chance, on_change=self._endpoints_changed
        )
        self._slices = Informer(self.cluster, SLICES, select=new, chance=self.chance, on_change=self._slice_changed)
        # Indexes, so that the cost of a change does not depend on the number of services and pods.
        self._services.cache.index(SELECTOR, lambda service: label_words(service, selector_of(service))[:1])
        self.pods.cache.index(LABEL, lambda pod: label_words(pod, labels_of(pod)))
        self._slices.cache.index(SERVICE, lambda piece: (_service_of(piece),))

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(self._services, self._endpoints, self._slices, shared=(self.pods,), synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, key: Key) -> None:
        """Write the Endpoints and EndpointSlices of one Service, and delete outdated ones."""
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
            # The namespace or the object is being deleted; the watch reports it.
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
            elif not _is_current(existing, obj):
                metadata = {**existing["metadata"], "labels": obj["metadata"]["labels"]}
                informer.observe(await self.cluster.replace(where, {**existing, **obj, "metadata": metadata}))

    async def _make(self, where: Collection, informer: Informer, obj: Object) -> None:
        try:
            informer.observe(await self.cluster.create(where, obj))
        except AlreadyExists:
            # Ours, and not in the cache yet: its event triggers a reconcile. Or another manager's: leave it alone.
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
        self._requeue(key_of(new or old or {}), is_gone=new is None)

    def _slice_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self._requeue(_service_of(new or old or {}), is_gone=new is None)

    def _requeue(self, key: Key, *, is_gone: bool) -> None:
        """Reconcile a Service at once, or later after a deletion: the Service itself may be about to be deleted."""
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


def _is_current(current: Object, desired: Object) -> bool:
    """Return whether an object has the desired labels and addresses."""
    if labels_of(current) != labels_of(desired):
        return False
    return all((current.get(part) or []) == (desired.get(part) or []) for part in ("subsets", "endpoints", "ports"))
