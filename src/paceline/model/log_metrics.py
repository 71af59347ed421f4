"""Metrics that a training writes into its log: the last values, and series over steps and time."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# `Test-Accuracy: 0.89`, `Total Time: 1664.68s`, `loss=0.31`; several on a line are separated by commas or spaces.
PAIR = re.compile(
    rf"(?:^|[,;\s])\s*(?P<name>[A-Za-z][A-Za-z0-9_/.-]*(?: [A-Z][A-Za-z0-9_-]*)?)\s*[:=]\s*"
    rf"(?P<value>{NUMBER})(?P<unit>%|ms|s)?(?=$|[,;\s])"
)
# A line with nothing else: a final result, not progress.
CLOSING = re.compile(rf"\s*[A-Za-z][A-Za-z0-9_/. -]*[:=]\s*{NUMBER}(?:%|ms|s)?\s*")
# `epoch 7/12  loss 0.0412  acc 0.9871`: usual names, which need no sign before their value.
USUAL = re.compile(
    r"\b(?P<name>(?:(?:train|training|val|valid|validation|test|eval)[ _-])?"
    r"(?:loss|acc|accuracy|auc|cost|error|lr|mae|mse|ppl|perplexity|rmse|f1))"
    rf"\b\s{{0,2}}[:=]?\s{{0,2}}(?P<value>{NUMBER})(?P<unit>%?)",
    re.IGNORECASE,
)
# The first of these on a line is the step of its metrics; a batch counts within its epoch, so it is none.
STEPS = ("step", "global_step", "iteration", "iter", "round", "epoch")
STEP = re.compile(
    r"\b(?P<unit>global_step|step|iteration|iter|round|epoch)s?\b[\s:=#\[(]{0,4}(?P<value>\d{1,15})", re.IGNORECASE
)
# Names of places in the training, and not of its results.
NO_METRICS = frozenset({*STEPS, "steps", "epochs", "batch", "batches", "rank", "seed", "pid", "port"})
MAX_METRICS = 32
MAX_NAME = 40
# Lines of a log that are longer say something else.
MAX_LINE = 2_000
MAX_POINTS = 200_000


def metrics_in(lines: Iterable[str]) -> Mapping[str, str]:
    """Return the last value of every metric, as it was written; of closing lines alone, if there are any."""
    log_lines = tuple(lines)
    closing = tuple(line for line in log_lines if CLOSING.fullmatch(line))
    metrics: dict[str, str] = {}
    for line in closing or log_lines:
        for pair in PAIR.finditer(line):
            name = pair["name"]
            if len(name) > MAX_NAME or (name not in metrics and len(metrics) >= MAX_METRICS):
                continue
            metrics[name] = pair["value"] + (pair["unit"] or "")
    return metrics


@dataclass(slots=True, kw_only=True)
class LogSeries:
    """The values of one metric in the order of the log, with steps and times (seconds since 1970; 0: unknown)."""

    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def series_in(lines: Iterable[tuple[float, str]]) -> dict[str, LogSeries]:
    """Return the series of every metric with several values, or of all if there are no others; lines have their time.

    The step is the one that the line names. Where these do not grow, the values are counted.
    """
    series: dict[str, LogSeries] = {}
    count = 0
    for time, line in lines:
        if len(line) > MAX_LINE or count >= MAX_POINTS:
            continue
        values = values_in(line)
        step = step_in(line) if values else None
        for name, value in values.items():
            if name not in series and len(series) >= MAX_METRICS:
                continue
            points = series.setdefault(name, LogSeries())
            points.steps.append(-1 if step is None else step)
            points.times.append(time)
            points.values.append(value)
            count += 1
    for points in series.values():
        if any(step <= previous for previous, step in zip([-1, *points.steps], points.steps, strict=False)):
            points.steps = list(range(1, len(points.values) + 1))
    curves = {name: points for name, points in series.items() if len(points.values) > 1}
    return curves or series


def values_in(line: str) -> dict[str, float]:
    """Return the metrics of one line by name."""
    values: dict[str, float] = {}
    for pattern in (PAIR, USUAL):
        for match in pattern.finditer(line):
            name = match["name"]
            if len(name) <= MAX_NAME and name.lower() not in NO_METRICS:
                values.setdefault(name, float(match["value"]))
    return values


def step_in(line: str) -> int | None:
    """Return the step that a line names; of several units the finest."""
    steps = {match["unit"].lower(): int(match["value"]) for match in STEP.finditer(line)}
    return next((steps[unit] for unit in STEPS if unit in steps), None)
