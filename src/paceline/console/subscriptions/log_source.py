"""The log of one container, wherever it is: at its pod, or in the archive of a node after the pod is gone.

A log that breaks off is read again from its last line on, so that each line comes once.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.apimachinery.pods import container_statuses_of, is_terminal
from paceline.client.interface import NODES, PODS
from paceline.client.requests import history_path
from paceline.client.rest import Verbs
from paceline.client.workqueue import Backoff
from paceline.console.subscriptions.messages import LogSubscription
from paceline.effects import Random
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound, PacelineError, ServiceUnavailable
from paceline.presentation.log_lines import LogLines, since_second

AGAIN = Backoff(first_seconds=0.2, most_seconds=5.0)
# For a container that has not started yet.
WAITING = Backoff(first_seconds=0.2, most_seconds=2.0)
# How often the archive is searched for a pod that has just gone: its node may need a moment.
MAX_SEARCHES = 6
# In a row, after which a log that is not followed is given up.
MAX_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the log is now."""

    path: str
    query: dict[str, str]
    # None if the pod is gone.
    pod: Object | None = None
    exit_code: int | None = None
    # Whether what is read is all that there will be.
    is_final: bool = False


@dataclass(slots=True)
class PodLogSource:
    """Reads the log of a container until its end."""

    client: Verbs
    request: LogSubscription
    chance: Random
    # Called with the error when the cluster does not answer, and with None when it does again.
    on_state: Callable[[PacelineError | None], None] = lambda _error: None
    lines: LogLines = field(default_factory=lambda: LogLines(keeps_stamps=True))
    # Known at the end, if the container has one.
    exit_code: int | None = None
    # How often the container had been restarted when its log was first read.
    _restarts: int | None = None
    _uid: str = ""
    # In a row.
    _failures: int = 0

    def __post_init__(self) -> None:
        if self.request.after:
            self.lines.start_after(self.request.after, self.request.after_lines)
        self._uid = self.request.uid

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Yield complete lines with their timestamps; nothing when only a part of a line has come.

        A followed log ends with its container.
        """
        while True:
            try:
                place = await self._locate()
                async with aclosing(self.client.stream(place.path, place.query)) as chunks:
                    async for chunk in chunks:
                        self._failures = 0
                        yield self.lines.feed(chunk)
                if await self._has_ended(place):
                    break
                pause = AGAIN.first_seconds
            except PacelineError as error:
                self._failures += 1
                if self._is_gone(error):
                    break
                pause = await self._pause_after(error)
            await asyncio.sleep(pause)
            self.lines.resume()
        if text := self.lines.end():
            yield text

    def _is_gone(self, error: PacelineError) -> bool:
        """Return whether the pod has gone while its log was read, and no node has archived it."""
        return isinstance(error, NotFound) and self._restarts is not None and self._failures >= MAX_SEARCHES

    async def _pause_after(self, error: PacelineError) -> float:
        """Return how long to wait before reading again; raise the error if that cannot help."""
        if isinstance(error, ServiceUnavailable):
            if not self.request.is_followed and self._failures > MAX_FAILURES:
                raise error
            self.on_state(error)
        elif isinstance(error, BadRequest):
            if not await self._will_start():
                raise error
            return WAITING.pause(self._failures, self.chance)
        elif not isinstance(error, NotFound) or self._restarts is None:
            raise error
        return AGAIN.pause(self._failures, self.chance)

    async def _will_start(self) -> bool:
        """Return whether a log that cannot be read may be there later, because its container has not started."""
        request = self.request
        if not request.is_followed or request.is_previous:
            return False
        try:
            pod = await self.client.get(PODS, request.namespace, request.pod)
        except (ServiceUnavailable, NotFound):
            return True
        names = [str(status.get("name")) for status in container_statuses_of(pod)]
        return not is_terminal(pod) and (request.container in names or not names)

    async def _locate(self) -> _Place:
        """Find the log; raise NotFound if it is nowhere."""
        request = self.request
        try:
            pod = await self.client.get(PODS, request.namespace, request.pod)
        except NotFound:
            pod = {}
        if not pod or self._uid not in ("", uid_of(pod)):
            place = await self._search_archive()
            self.on_state(None)
            return place
        self.on_state(None)
        self._uid = uid_of(pod)
        restarts = int(_status_of(pod, request.container).get("restartCount") or 0)
        if self._restarts is None:
            self._restarts = restarts
        # The container was restarted between two readings: the remainder of its log is the previous one.
        is_previous = request.is_previous or restarts > self._restarts
        query = self._query(follow=request.is_followed and not is_previous, previous=is_previous)
        return _Place(path=PODS.path(request.namespace, request.pod, "log"), query=query, pod=pod)

    async def _search_archive(self) -> _Place:
        request = self.request
        for node in await self._nodes():
            for entry in await self._archived_pods(node):
                if self._uid in ("", entry.get("uid")):
                    self._uid = str(entry.get("uid") or "")
                    self._restarts = self._restarts or 0
                    return _Place(
                        path=history_path(node, request.namespace, request.pod),
                        query={**self._query(follow=False, previous=request.is_previous), "uid": self._uid},
                        exit_code=_archived_exit_code(entry, request),
                        is_final=True,
                    )
        raise NotFound(f"pod {request.namespace}/{request.pod} does not exist, and no node has archived its log")

    async def _nodes(self) -> tuple[str, ...]:
        """Return the nodes; none for people whose access is limited to a namespace."""
        try:
            return tuple(name_of(node) for node in (await self.client.list(NODES)).items)
        except Forbidden:
            return ()

    async def _archived_pods(self, node: str) -> list[Any]:
        chunks = self.client.stream(history_path(node, self.request.namespace), {"pod": self.request.pod})
        try:
            async with aclosing(chunks):
                body = b"".join([chunk async for chunk in chunks])
            return list(orjson.loads(body).get("items") or ())
        except (NotFound, Forbidden, MethodNotAllowed, BadRequest, orjson.JSONDecodeError):
            return []  # A kubelet, which archives nothing.

    def _query(self, *, follow: bool, previous: bool) -> dict[str, str]:
        query = {"timestamps": "true", "container": self.request.container}
        if follow:
            query["follow"] = "true"
        if previous:
            query["previous"] = "true"
        if self.lines.since:
            # Lines that are there already are skipped.
            query["sinceTime"] = since_second(self.lines.since)
        elif self.request.tail is not None:
            query["tailLines"] = str(self.request.tail)
        return query

    async def _has_ended(self, place: _Place) -> bool:
        """Return whether a stream that has ended was the whole log."""
        if place.is_final:
            self.exit_code = place.exit_code
            return True
        if not self.request.is_followed:
            self.exit_code = _exit_code_of(_status_of(place.pod or {}, self.request.container), place.query)
            return True
        pod = await self.client.get(PODS, self.request.namespace, self.request.pod)
        status = _status_of(pod, self.request.container)
        has_restarted = int(status.get("restartCount") or 0) > (self._restarts or 0)
        if uid_of(pod) != self._uid:
            return False  # The archive has the rest.
        if has_restarted and "previous" not in place.query:
            # The stream may have broken off before the end of the log.
            return False
        self.exit_code = _exit_code_of(status, place.query)
        return "previous" in place.query or is_terminal(pod) or bool((status.get("state") or {}).get("terminated"))


def _status_of(pod: Object, container: str) -> Object:
    return next((status for status in container_statuses_of(pod) if status.get("name") == container), {})


def _exit_code_of(status: Object, query: dict[str, str]) -> int | None:
    state = status.get("lastState" if "previous" in query else "state") or {}
    code = (state.get("terminated") or {}).get("exitCode")
    return int(code) if code is not None else None


def _archived_exit_code(entry: Object, request: LogSubscription) -> int | None:
    codes = [
        attempt.get("exitCode") for attempt in entry.get("tries") or () if attempt["container"] == request.container
    ]
    index = -2 if request.is_previous else -1
    return codes[index] if len(codes) >= -index else None
