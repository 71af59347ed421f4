"""Removes old events from the embedded cluster, as the API server of Kubernetes does by their TTL."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from paceline.client.interface import EVENTS, Cluster, Select
from paceline.effects import Clock
from paceline.errors import Conflict, Expired, NotFound, PacelineError
from paceline.model.retention import EventPolicy
from paceline.plan.event_retention import KnownEvent, known, sift

log = logging.getLogger(__name__)

# Events are read in pages of this size, so that not all are in memory at once.
PAGE = 500
# Seconds between two sweeps: a fraction of the maximum age, within these bounds.
MOST_SECONDS, LEAST_SECONDS, SWEEPS_PER_AGE = 600.0, 1.0, 10


@dataclass(slots=True, kw_only=True)
class EventExpiry:
    """Periodically reads all events, and deletes those that the policy does not keep."""

    cluster: Cluster
    clock: Clock
    policy: EventPolicy = field(default_factory=EventPolicy)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled."""
        synced.set()
        pause = min(max(self.policy.age.total_seconds() / SWEEPS_PER_AGE, LEAST_SECONDS), MOST_SECONDS)
        while True:
            # Not at once: a controller that has just started has more urgent work.
            await asyncio.sleep(pause)
            try:
                await self.sweep()
            except PacelineError as error:
                log.warning("old events not removed", extra={"error": str(error)})

    async def sweep(self) -> None:
        """Delete the events that are too old or too many; only those retained and one page are in memory."""
        now, retained = self.clock.now(), list[KnownEvent]()
        page = await self.cluster.page(EVENTS, Select(), limit=PAGE)
        while True:
            retained, expired = sift((*retained, *(known(event, now) for event in page.items)), self.policy, now)
            await self._delete(expired)
            if not page.next:
                return
            try:
                page = await self.cluster.page(EVENTS, Select(), limit=PAGE, after=page.next)
            except Expired:
                # Deleting took longer than the server keeps history; the next sweep deletes the others.
                return

    async def _delete(self, events: Iterable[KnownEvent]) -> None:
        for event in events:
            conditions = {"uid": event.uid, "resourceVersion": event.revision}
            # An event that has recurred meanwhile has a new resource version, and stays.
            with suppress(NotFound, Conflict):
                await self.cluster.delete(EVENTS, (event.namespace, event.name), {"preconditions": conditions})
