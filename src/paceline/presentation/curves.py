"""Training curves of a log in the form in which an Explorer answers: thinned columns, exact ends and extremes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.log_metrics import LogSeries


def log_runs(series: Mapping[str, LogSeries], points: int) -> list[dict[str, Any]]:
    """Return the one run of a log; none if it has no metrics."""
    scalars = [{"tag": name, **_series(values, points)} for name, values in sorted(series.items())]
    return [{"name": "log", "scalars": scalars, "faults": [], "truncated": False}] if scalars else []


def _series(series: LogSeries, bound: int) -> dict[str, Any]:
    values = series.values
    indexes = [index for index, value in enumerate(values) if math.isfinite(value)]
    described: dict[str, Any] = {"count": len(values), "last": _point(series, len(values) - 1)}
    if indexes:
        described["min"] = _point(series, min(indexes, key=values.__getitem__))
        described["max"] = _point(series, max(indexes, key=values.__getitem__))
    count = len(values)
    ends: Sequence[int] = range(count)
    if count > bound:
        ends = [(bucket + 1) * count // bound - 1 for bucket in range(bound)]
        buckets = [values[bucket * count // bound : end + 1] for bucket, end in enumerate(ends)]
        described["low"], described["high"] = list(map(min, buckets)), list(map(max, buckets))
    columns: dict[str, Sequence[Any]] = {"steps": series.steps, "times": series.times, "values": values}
    return {**described, **{name: [column[end] for end in ends] for name, column in columns.items()}}


def _point(series: LogSeries, index: int) -> dict[str, Any]:
    return {"step": series.steps[index], "time": series.times[index], "value": series.values[index]}
