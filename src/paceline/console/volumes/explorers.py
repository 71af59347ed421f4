"""The Explorer of a claim: created or woken as the person who asks, and waited for."""

from base64 import b64decode
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, name_of, revision_of
from paceline.client.interface import CLAIMS, SECRETS, Change, Collection, Select, WatchEvent
from paceline.console.people import Person
from paceline.effects import Clock
from paceline.errors import AlreadyExists, Conflict, Expired, NotFound, ServiceUnavailable
from paceline.kinds.kind_types import SERVICE_GROUP, VERSION
from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.presentation import explorer
from paceline.presentation.actions import asked_by, resume_service

EXPLORERS = Collection(group=SERVICE_GROUP, version=VERSION, plural=explorer.PLURAL)
# A request waits this long for an Explorer to start; the page then asks again.
WAIT_SECONDS = 20
MAX_TOKENS = 1000
# Shorter than the time after which an idle Explorer sleeps.
KEEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRef:
    """A claim."""

    namespace: str
    name: str


class Explorers:
    """Reaches the Explorers of claims, and keeps their tokens for a moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: OrderedDict[tuple[str, ClaimRef], tuple[float, str]] = OrderedDict()

    async def token(self, person: Person, claim: ClaimRef) -> str:
        """Return the token of a running Explorer, which is created or woken if need be.

        ServiceUnavailable says why it does not run yet, Forbidden which right the person lacks.
        """
        key, now = (person.credential_id, claim), self._clock.monotonic()
        until, token = self._tokens.get(key, (0.0, ""))
        if now < until:
            return token
        status = await self._running(person, claim)
        data = (await person.client.get(SECRETS, claim.namespace, status.secret)).get("data") or {}
        token = b64decode(str(data.get("token") or "")).decode()
        self._tokens[key] = (self._clock.monotonic() + KEEP_SECONDS, token)
        self._tokens.move_to_end(key)
        if len(self._tokens) > MAX_TOKENS:
            self._tokens.popitem(last=False)
        return token

    def forget(self, person: Person, claim: ClaimRef) -> None:
        """Ask the cluster again next time: the Explorer did not answer."""
        self._tokens.pop((person.credential_id, claim), None)

    async def _running(self, person: Person, claim: ClaimRef) -> ServiceStatus:
        obj = await self._ensured(person, claim)
        plan = resume_service(obj, self._clock.now())
        if plan.is_possible:
            body = asked_by(plan, person.name).body
            obj = await person.client.patch(EXPLORERS, (claim.namespace, name_of(obj)), body)
        status = _status(obj)
        select = Select(namespace=claim.namespace, fields=f"metadata.name={name_of(obj)}")
        if not _is_running(status):
            events = person.client.watch(EXPLORERS, select, since=revision_of(obj), timeout_seconds=WAIT_SECONDS)
            status = await _last_status(events, status)
        if not _is_running(status):
            raise ServiceUnavailable(f"the files of claim {claim.name} are not ready: {status.waiting or 'starting'}")
        return status

    async def _ensured(self, person: Person, claim: ClaimRef) -> Object:
        name = explorer.explorer_name(claim.name)
        try:
            obj = await person.client.get(EXPLORERS, claim.namespace, name)
        except NotFound:
            await person.client.get(CLAIMS, claim.namespace, claim.name)
            with suppress(AlreadyExists):
                return await person.client.create(EXPLORERS, explorer.explorer_manifest(claim.namespace, claim.name))
            obj = await person.client.get(EXPLORERS, claim.namespace, name)
        if explorer.claim_of(obj) != claim.name:
            raise Conflict(f"explorer/{name} serves claim {explorer.claim_of(obj)}, not {claim.name}; delete it")
        return obj


async def _last_status(events: AsyncIterator[WatchEvent], status: ServiceStatus) -> ServiceStatus:
    """Return the status once it is running, or the last one before the watch ended."""
    with suppress(Expired):
        async with aclosing(events):  # type: ignore[type-var]
            async for event in events:
                if event.change is Change.DELETED:
                    raise NotFound("the Explorer of the claim has been deleted")
                if event.change is not Change.BOOKMARK:
                    status = _status(event.object)
                if _is_running(status):
                    break
    return status


def _status(obj: Object) -> ServiceStatus:
    return ServiceStatus.from_wire(obj.get("status") or {})


def _is_running(status: ServiceStatus) -> bool:
    return status.phase is ServicePhase.RUNNING and bool(status.secret)
