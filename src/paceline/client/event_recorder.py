"""Tell people what happened to an object, as Kubernetes events."""

import asyncio
import logging

from paceline.apimachinery.event_manifest import EventSource, event_manifest
from paceline.apimachinery.meta import Key, Object, name_of, namespace_of, revision_of
from paceline.client.interface import EVENTS, Cluster
from paceline.effects import Clock
from paceline.errors import AlreadyExists, Conflict, NotFound, PacelineError

log = logging.getLogger(__name__)

MAX_TRIES = 5
MAX_AT_ONCE = 100


class Recorder:
    """Records events for one component. The same thing again is counted, also after a restart."""

    def __init__(self, cluster: Cluster, clock: Clock, *, component: str, at_once: int = MAX_AT_ONCE) -> None:
        self._cluster = cluster
        self._clock = clock
        self._component = component
        # The others wait: where many things happen together, doing them comes before telling of them.
        self._turn = asyncio.Semaphore(at_once)

    async def record(
        self, about: Object, reason: str, *, message: str, is_warning: bool = False, part: str = ""
    ) -> None:
        """Record that something happened to an object, or a part of it; one that cannot be stored is only logged."""
        source = EventSource(component=self._component, now=self._clock.now(), part=part)
        event = event_manifest(about, reason, message, source=source, is_warning=is_warning)
        try:
            async with self._turn:
                await self._store(event)
        except PacelineError as error:
            # The object matters more than the story about it: its namespace may be going just now.
            details = {"about": name_of(about), "event": reason, "error": str(error)}
            log.warning("event not recorded", extra=details)

    async def _store(self, event: Object) -> None:
        key = (namespace_of(event), name_of(event))
        for _ in range(MAX_TRIES):
            try:
                await self._cluster.create(EVENTS, event)
            except AlreadyExists:
                if await self._count(key, event):
                    return
            else:
                return
        raise Conflict(f"the event {key[1]!r} was changed by others {MAX_TRIES} times in a row")

    async def _count(self, key: Key, event: Object) -> bool:
        """Count a repetition; False when the event went or changed meanwhile."""
        try:
            current = await self._cluster.get(EVENTS, *key)
            again = {
                "metadata": {"resourceVersion": revision_of(current)},
                "count": int(current.get("count") or 1) + 1,
                "lastTimestamp": event["lastTimestamp"],
            }
            await self._cluster.patch(EVENTS, key, again)
        except (NotFound, Conflict):
            return False
        return True
