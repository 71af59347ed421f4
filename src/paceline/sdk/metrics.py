"""The training curves of a job: every metric with its points, its last and its best value."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paceline.model.log_metrics import LogSeries, series_in
from paceline.presentation.explorer import number
from paceline.presentation.metric_names import less_is_better
from paceline.sdk.files import VolumeFiles

# Points of one series; longer ones are thinned.
POINTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPoint:
    """One value of a metric; the time is in seconds since 1970, 0 if it is unknown."""

    step: int
    time: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of one run: a folder of event files, or the log."""

    run: str
    name: str
    # How many values were written; there are fewer points if the series is long.
    count: int
    points: tuple[MetricPoint, ...]
    last: MetricPoint
    min: MetricPoint | None
    max: MetricPoint | None

    @property
    def best(self) -> MetricPoint | None:
        """Return the best value; None if the name does not say whether less or more is better."""
        is_less = less_is_better(self.name)
        return None if is_less is None else self.min if is_less else self.max


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMetrics:
    """All metrics of a job, and where they come from: `events` (event files) or `logs`."""

    source: str
    metrics: tuple[Metric, ...]

    def named(self, name: str) -> tuple[Metric, ...]:
        """Return the metrics of a name, one per run."""
        return tuple(metric for metric in self.metrics if metric.name == name)


def event_metrics(files: VolumeFiles, folder: str) -> tuple[Metric, ...]:
    """Return the metrics in the event files beneath a folder of a claim."""
    runs = files.curves(folder, points=POINTS)["runs"]
    return tuple(_metric(run["name"], series) for run in runs for series in run["scalars"])


def log_metrics(lines: Iterable[tuple[float, str]]) -> tuple[Metric, ...]:
    """Return the metrics in the lines of a log, each with its time."""
    return tuple(_of_log(name, series) for name, series in sorted(series_in(lines).items()))


def _metric(run: str, series: dict[str, Any]) -> Metric:
    columns = zip(series["steps"], series["times"], series["values"], strict=True)
    points = tuple(MetricPoint(step=step, time=time, value=number(value)) for step, time, value in columns)
    last, low, high = (_point(series.get(key)) for key in ("last", "min", "max"))
    return Metric(
        run=run,
        name=str(series["tag"]),
        count=int(series["count"]),
        points=points,
        last=last or points[-1],
        min=low,
        max=high,
    )


def _point(wire: dict[str, Any] | None) -> MetricPoint | None:
    return MetricPoint(step=wire["step"], time=wire["time"], value=number(wire["value"])) if wire else None


def _of_log(name: str, series: LogSeries) -> Metric:
    columns = zip(series.steps, series.times, series.values, strict=True)
    points = tuple(MetricPoint(step=step, time=time, value=value) for step, time, value in columns)
    finite = [point for point in points if math.isfinite(point.value)]
    return Metric(
        run="log",
        name=name,
        count=len(points),
        points=points,
        last=points[-1],
        min=min(finite, key=lambda point: point.value, default=None),
        max=max(finite, key=lambda point: point.value, default=None),
    )
