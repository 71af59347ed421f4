"""Use over time as text: a line for each of many, or charts of one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from paceline.cli.output.table import short, size, table
from paceline.presentation.usage_series import UsageSeries, chart, columns_of, sparkline, total
from paceline.sdk.usage_series import UsageHistory

# The columns of a chart where the output is not a terminal.
DEFAULT_WIDTH = 80
LEAST_COLUMNS, MOST_COLUMNS = 20, 120
HEIGHT = 6
NAMES = {
    "cpu": "CPU",
    "memory": "MEMORY",
    "gpu": "GPU",
    "gpuMemory": "GPU MEMORY",
    "diskRead": "DISK READ",
    "diskWrite": "DISK WRITE",
    "networkIn": "NETWORK IN",
    "networkOut": "NETWORK OUT",
}
RATES = frozenset({"diskRead", "diskWrite", "networkIn", "networkOut"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChartLine:
    """One resource of one job, pod or node."""

    field: str
    values: Mapping[float, float]
    columns: list[float | None]

    @property
    def figures(self) -> tuple[str, str, str]:
        """Return the last value, the mean and the largest."""
        values = list(self.values.values())
        mean = sum(values) / len(values)
        return amount(self.field, values[-1]), amount(self.field, mean), amount(self.field, max(values))


def amount(field: str, value: float) -> str:
    """Format a value with its unit."""
    if field in ("cpu", "gpu"):
        return f"{value:.2f}"
    return f"{size(round(value))}{'/s' if field in RATES else ''}"


def usage_table(history: UsageHistory, groups: Mapping[str, Iterable[UsageSeries]], width: int | None) -> list[str]:
    """Return CPU and memory of every group over time, a line for each."""
    space = (width or DEFAULT_WIDTH) - max((len(name) for name in groups), default=0) - 50
    rows = []
    for name, series in groups.items():
        for line in _lines(history, list(series), ("cpu", "memory", "gpu"), space):
            top = max(line.values.values())
            rows.append((name, NAMES[line.field], *line.figures, sparkline(line.columns, top)))
    return table(("NAME", "USES", "NOW", "MEAN", "MAX", f"LAST {span_of(history)}"), rows)


def usage_charts(history: UsageHistory, width: int | None) -> list[str]:
    """Return a chart for everything that a job, pod or node used."""
    lines: list[str] = []
    for line in _lines(history, history.series, tuple(NAMES), (width or DEFAULT_WIDTH) - 14):
        now, mean, most = line.figures
        limit = sum(item.limits.get(line.field, 0.0) for item in history.series)
        top = max(line.values.values())
        limited = f", limit {amount(line.field, limit)}" if limit else ""
        lines += ["", f"{NAMES[line.field]}: now {now}, mean {mean}, max {most}{limited}"]
        rows = chart(line.columns, top, HEIGHT)
        marks = [amount(line.field, top), *[""] * (HEIGHT - 2), "0"]
        lines += [f"{mark:>12} │{row.rstrip()}" for mark, row in zip(marks, rows, strict=True)]
    if lines:
        width = len(line.columns) - len("now")
        lines.append(f"{'':>12} └{f'{span_of(history)} ago':<{width}}now")
    return lines[1:]


def span_of(history: UsageHistory) -> str:
    """Format the length of the span of time."""
    return short(timedelta(seconds=round(history.end - history.start)))


def _lines(
    history: UsageHistory, series: Iterable[UsageSeries], fields: Iterable[str], space: int
) -> Iterable[_ChartLine]:
    width = min(max(space, LEAST_COLUMNS), MOST_COLUMNS)
    items = tuple(series)
    for field in fields:
        if values := total(items, field):
            yield _ChartLine(field=field, values=values, columns=columns_of(values, history.start, history.end, width))
