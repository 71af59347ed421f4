"""Remove archived logs that exceed the retention policy, periodically and after pods are deleted."""

import asyncio
import functools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.client.event_recorder import Recorder
from paceline.effects import Executor
from paceline.model.retention import RetentionPolicy
from paceline.node.host_info import Host
from paceline.node.logs.archive import ABOUT, CONTAINERS, PRUNED, USAGE, ArchivedPod, LogArchive
from paceline.node.logs.logs import RotatedLog, is_log_file

log = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
# Pods are often deleted together: one round serves all of them.
TOGETHER_SECONDS = 2.0
# How many pods keep their `pod.json` after their logs are removed.
MAX_REMEMBERED = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class GCResult:
    pods: int = 0
    bytes: int = 0


@dataclass(slots=True, kw_only=True)
class LogGC:
    """Applies the retention policy at the start, after every addition to the archive, and periodically."""

    archive: LogArchive
    blocking: Executor
    recorder: Recorder
    host: Host
    # All pods of the cluster.
    pods: Mapping[Key, Object]
    _is_due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    # Pods that earlier rounds read: only this class changes the archive, so they need not be read again.
    _cache: dict[Path, ArchivedPod] = field(default_factory=dict, init=False)

    def hint(self) -> None:
        self._is_due.set()

    async def run(self) -> None:
        while True:
            self._is_due.clear()
            await self.sweep()
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    await self._is_due.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(TOGETHER_SECONDS)

    async def sweep(self) -> None:
        """Run one round; after a disk error the next round tries again."""
        try:
            mine = (pod for pod in self.pods.values() if pod["spec"].get("nodeName") == self.host.name)
            ended = [pod for pod in mine if is_terminal(pod)]
            result = await self.blocking.run(functools.partial(sweep, self.archive, ended, self._cache))
        except OSError as error:
            log.warning("archived logs not removed", extra={"error": str(error)})
            return
        if result.pods:
            message = f"removed logs of {result.pods} pods, {result.bytes} bytes, to keep within the policy"
            log.info("archived logs removed", extra={"pods": result.pods, "bytes": result.bytes})
            node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.host.name}}
            await self.recorder.record(node, "HistoryPruned", message=message)


def sweep(archive: LogArchive, ended: Iterable[Object] = (), cache: dict[Path, ArchivedPod] | None = None) -> GCResult:
    """Remove the logs that exceed the policy, and return how much was removed.

    Pods that have ended but still exist keep their logs, unless these alone exceed the policy's size. `cache` has the
    pods that earlier rounds read, and is updated.
    """
    cache = {} if cache is None else cache
    everything = sorted(archive.pods(cache=cache), key=lambda past: past.gone_at, reverse=True)
    cache.clear()
    with_logs = [past for past in everything if not past.is_pruned]
    existing = sorted(_ended_with_logs(archive, ended), key=lambda past: past.gone_at, reverse=True)
    room = max(archive.policy.bytes - sum(past.bytes for past in existing), 0)
    policy, now = replace(archive.policy, bytes=room), archive.world.clock.now()
    pruned = tuple(with_logs if archive.is_disk_full() else to_prune(with_logs, policy, now))
    for past in pruned:
        _prune(archive, past)
    large = tuple(to_prune(existing, replace(archive.policy, age=timedelta.max, pods=len(existing)), now))
    for past in large:
        _empty(archive, past)
    for past in everything[MAX_REMEMBERED:]:
        archive.world.files.remove(past.folder)
    # Filled last, without the changed pods: after a round that failed halfway the next one reads everything.
    changed = {past.folder for past in pruned}
    unchanged = (past for past in everything[:MAX_REMEMBERED] if past.folder not in changed)
    cache.update({past.folder: replace(past, about={}) for past in unchanged})
    return GCResult(pods=len(pruned) + len(large), bytes=sum(past.bytes for past in (*pruned, *large)))


def to_prune(newest_first: Iterable[ArchivedPod], policy: RetentionPolicy, now: datetime) -> Iterator[ArchivedPod]:
    """Yield the pods that are too old, and those that do not fit after all newer ones."""
    pods = size = 0
    for past in newest_first:
        pods, size = pods + 1, size + past.bytes
        if pods > policy.pods or size > policy.bytes or now - past.gone_at > policy.age:
            yield past


def _ended_with_logs(archive: LogArchive, ended: Iterable[Object]) -> Iterator[ArchivedPod]:
    """Yield ended pods that still exist and have logs, except those in which a container still runs."""
    for pod in ended:
        folder = archive.folders.pod(uid_of(pod))
        attempts = tuple(archive.attempts_in(folder))
        size = sum(RotatedLog(archive.world.files, attempt).stored_bytes() for attempt in attempts)
        if size and not any(archive.world.processes.holds(attempt) for attempt in attempts):
            began = from_wire(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])
            yield ArchivedPod(folder=folder, about={}, gone_at=began, bytes=size, is_pruned=False)


def _empty(archive: LogArchive, past: ArchivedPod) -> None:
    """Remove the logs of a pod that still exists, and record when."""
    files = archive.world.files
    for folder in archive.attempts_in(past.folder):
        files.write(folder / PRUNED, to_wire(archive.world.clock.now()).encode())
        for name in files.names(folder):
            if is_log_file(name):
                files.remove(folder / name)


def _prune(archive: LogArchive, past: ArchivedPod) -> None:
    """Remove the logs of an archived pod, and record when in its `pod.json`."""
    # In this order: a pod whose removal was interrupted still counts as one with logs, and is removed again.
    archive.world.files.remove(past.folder / USAGE)
    archive.world.files.remove(past.folder / CONTAINERS)
    stored = past if past.about else archive.read(past.folder)
    if stored is not None:
        about = stored.about | {"prunedAt": to_wire(archive.world.clock.now())}
        archive.world.files.write(past.folder / ABOUT, json.dumps(about).encode())
