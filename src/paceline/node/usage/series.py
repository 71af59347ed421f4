"""Serve use over time: of the containers of a job or a pod, existing or deleted, and of the node."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, namespace_of
from paceline.apimachinery.quantity import amounts
from paceline.effects import Clock, Executor
from paceline.errors import BadRequest
from paceline.node.host_info import Host
from paceline.node.logs.archive import USAGE, LogArchive, describe_pod
from paceline.node.usage.recorder import NETWORK, NODE
from paceline.node.usage.ring_file import FIELDS, SAMPLES, Point, RingFile, merge, period

KIND = {"kind": "UsageSeriesList", "apiVersion": "paceline.dev/v1beta1"}
DEFAULT_SECONDS = 3600.0
DEFAULT_POINTS, MAX_POINTS = 300, 5000
# Containers in one answer; a job has at most some hundred.
MAX_SERIES = 1000
# Less is the rounding of a point that ends with its step.
LEAST_SECONDS = 0.001
MILLI = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesQuery:
    """What is requested: the containers of a namespace, or of a job or pod in it, or the node; and the span of time."""

    start: float
    end: float
    points: int = DEFAULT_POINTS
    is_node: bool = False
    namespace: str = ""
    job: str = ""
    pod: str = ""
    uid: str = ""

    @property
    def step(self) -> int:
        """Return the seconds between two points: a multiple of the period of samples."""
        samples = math.ceil((self.end - self.start) / self.points / SAMPLES.seconds)
        return max(samples, 1) * SAMPLES.seconds

    def selects(self, about: Object) -> bool:
        """Return whether a pod is requested."""
        wanted = ((self.namespace, "namespace"), (self.job, "job"), (self.pod, "pod"), (self.uid, "uid"))
        return all(value in ("", about[name]) for value, name in wanted)


def series_query(query: Mapping[str, str], now: float) -> SeriesQuery:
    """Read a query; BadRequest says what is wrong with it."""
    end = _number(query, "to", now)
    request = SeriesQuery(
        start=_number(query, "from", end - _number(query, "seconds", DEFAULT_SECONDS)),
        end=end,
        points=int(_number(query, "points", DEFAULT_POINTS)),
        is_node=query.get("node", "") in ("true", "1"),
        namespace=query.get("namespace", ""),
        job=query.get("job", ""),
        pod=query.get("pod", ""),
        uid=query.get("uid", ""),
    )
    if request.start >= request.end:
        raise BadRequest(f"from must be before to; from is {request.start:.0f}, to is {request.end:.0f}")
    if not 1 <= request.points <= MAX_POINTS:
        raise BadRequest(f"points must be from 1 to {MAX_POINTS}, not {request.points}")
    if not request.is_node and not request.namespace:
        raise BadRequest("specify node=true, or namespace and, for deleted pods, one of job, pod and uid")
    return request


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    if name not in query:
        return default
    try:
        value = float(query[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 2**40:
        raise BadRequest(f"{name} must be a number, not {query[name][:40]!r}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesServer:
    """The part of the agent's API that returns use over time."""

    clock: Clock
    host: Host
    archive: LogArchive
    pods: Mapping[Key, Object]
    blocking: Executor

    async def answer(self, query: Mapping[str, str]) -> Object:
        """Return the requested series; times are in seconds since 1970."""
        request = series_query(query, self.clock.now().timestamp())
        mine = [pod for pod in self.pods.values() if namespace_of(pod) == request.namespace]
        # Not on the event loop: a job with many replicas has some megabytes of samples.
        items = await self.blocking.run(partial(self._items, request, [describe_pod(pod) for pod in mine]))
        span = {"from": request.start, "to": request.end, "step": request.step}
        return {**KIND, "node": self.host.name, **span, "items": items}

    def _items(self, request: SeriesQuery, existing: list[Object]) -> list[Object]:
        if request.is_node:
            node = self._values(self.archive.folders.node_usage / NODE, request)
            capacity = {"cpu": float(self.host.cpus), "memory": float(self.host.memory_bytes)}
            return [{"limits": capacity, **node}] if node["times"] else []
        items: list[Object] = []
        for about, folder, is_gone in self._pods(request, existing):
            items += self._containers(about, folder, is_gone=is_gone, request=request)
            if len(items) >= MAX_SERIES:
                break
        return items[:MAX_SERIES]

    def _pods(self, request: SeriesQuery, existing: list[Object]) -> Iterator[tuple[Object, Path, bool]]:
        """Yield the requested pods with the folders of their files, the existing ones first."""
        for about in existing:
            if request.selects(about):
                yield about, self.archive.folders.usage(str(about["uid"])), False
        is_narrow = request.job or request.pod or request.uid
        for past in self.archive.find(request.namespace, job=request.job, pod=request.pod) if is_narrow else ():
            if past.gone_at.timestamp() > request.start and request.selects(past.about):
                yield past.about, past.folder / USAGE, True

    def _containers(self, about: Object, folder: Path, *, is_gone: bool, request: SeriesQuery) -> Iterator[Object]:
        reference = {name: about[name] for name in ("namespace", "pod", "uid", "job", "labels")}
        owner = (about.get("owner") or {}).get("uid", "")
        for name in self.archive.world.files.names(folder):
            values = self._values(folder / name, request)
            if values["times"]:
                resources = (about.get("resources") or {}).get(name) or {}
                yield {
                    **reference,
                    "ownerUid": owner,
                    "container": "" if name == NETWORK else name,
                    "isGone": is_gone,
                    "requests": amounts(resources.get("requests")),
                    "limits": amounts(resources.get("limits")),
                    **values,
                }

    def _values(self, path: Path, request: SeriesQuery) -> Object:
        ring_file = RingFile(files=self.archive.world.files, path=path)
        resampled = resample(ring_file.points(request.start, request.end, request.step), request.step)
        points = [point for point in resampled if request.start < point.end < request.end + request.step]
        values: Object = {}
        for index, name in enumerate(FIELDS):
            if any(not math.isnan(point.mean[index]) for point in points):
                kinds = {"min": "least", "mean": "mean", "max": "most"}
                values[name] = {
                    kind: [_rounded(getattr(point, column)[index]) for point in points]
                    for kind, column in kinds.items()
                }
        times, seconds = [round(point.end) for point in points], [round(point.seconds, 3) for point in points]
        return {"times": times, "seconds": seconds, "values": values}


def resample(points: list[Point], step: int) -> list[Point]:
    """Return one point for every step of which any second is covered, with how many seconds are.

    Samples lie on no grid, so a point counts in each step for the seconds that it covers there. The sum of mean times
    seconds is what was used, whatever the step is, and no step between two samples is empty.
    """
    by_step: dict[int, list[Point]] = {}
    for point in points:
        start = point.end - point.seconds
        for number in range(math.floor(start / step), period(point.end, step) + 1):
            covered = min(point.end, (number + 1) * step) - max(start, number * step)
            if covered >= LEAST_SECONDS:
                by_step.setdefault(number, []).append(replace(point, seconds=covered))
    return [merge(group, (number + 1) * step) for number, group in sorted(by_step.items())]


def _rounded(value: float) -> float | None:
    """Return a value with as many digits as are worth sending."""
    if math.isnan(value):
        return None
    return round(value, 4) if value < MILLI else round(value)
