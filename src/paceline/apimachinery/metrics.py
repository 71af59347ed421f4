"""Metrics in Prometheus' text format: counters, gauges, histograms, and the registry that writes them.

The component that counts something owns the metric and keeps it up to date; a scrape only writes the numbers
down, so it takes as long with ten thousand jobs as with none.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of buckets, in seconds: of requests and reconciliations, and of a job's life.
SHORT_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LONG_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

# Suffix of the name, names and values of the labels, value.
Sample = tuple[str, tuple[tuple[str, str], ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """All samples of one metric at the time of a scrape."""

    name: str
    type: str
    help: str
    samples: tuple[Sample, ...]


class MetricSource(Protocol):
    """Something that has metrics."""

    def collect(self) -> Iterable[MetricFamily]:
        """Yield its metrics as they are now."""
        ...


class Counter:
    """A number for each combination of label values, which only grows."""

    type = "counter"

    def __init__(self, name: str, help_text: str, labels: tuple[str, ...] = ()) -> None:
        self._name, self._help, self._labels = name, help_text, labels
        # Label values come from closed lists (kinds, phases, verbs, codes), so this cannot grow without bound.
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, *labels: str, amount: float = 1) -> None:
        """Add to the number with these label values."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def get(self, *labels: str) -> float:
        """Return the number with these label values."""
        return self._values.get(labels, 0)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metric."""
        samples = tuple(("", tuple(zip(self._labels, labels, strict=True)), v) for labels, v in self._values.items())
        yield MetricFamily(name=self._name, type=self.type, help=self._help, samples=samples)


class Gauge(Counter):
    """A number for each combination of label values, which may fall as well."""

    type = "gauge"

    def set(self, *labels: str, value: float) -> None:
        """Set the number with these label values."""
        self._values[labels] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGauge:
    """A number, or one per combination of label values, that is read when it is written down."""

    name: str
    help: str
    read: Callable[[], float]
    labels: tuple[tuple[str, str], ...] = ()
    type: str = "gauge"

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metric."""
        yield MetricFamily(name=self.name, type=self.type, help=self.help, samples=(("", self.labels, self.read()),))


class Histogram:
    """Counts observations by size, for each combination of label values."""

    def __init__(
        self, name: str, help_text: str, labels: tuple[str, ...] = (), *, buckets: tuple[float, ...] = SHORT_SECONDS
    ) -> None:
        self._name, self._help, self._labels, self._buckets = name, help_text, labels, buckets
        # Observations per bucket, the last one for those above all bounds; and their sum.
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        if not labels:
            self._row(())

    def observe(self, value: float, *labels: str) -> None:
        """Count one observation."""
        self._row(labels)[bisect_left(self._buckets, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        """Return the number of observations with these label values."""
        return sum(self._counts.get(labels, ()))

    def total(self, *labels: str) -> float:
        """Return the sum of the observations with these label values."""
        return self._sums.get(labels, 0.0)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metric."""
        samples = tuple(sample for labels, counts in self._counts.items() for sample in self._samples(labels, counts))
        yield MetricFamily(name=self._name, type="histogram", help=self._help, samples=samples)

    def _row(self, labels: tuple[str, ...]) -> list[int]:
        if labels not in self._counts:
            self._counts[labels], self._sums[labels] = [0] * (len(self._buckets) + 1), 0.0
        return self._counts[labels]

    def _samples(self, labels: tuple[str, ...], counts: list[int]) -> Iterator[Sample]:
        pairs, total = tuple(zip(self._labels, labels, strict=True)), 0
        for bound, count in zip((*self._buckets, math.inf), counts, strict=True):
            total += count
            yield "_bucket", (*pairs, ("le", _number(bound))), total
        yield "_sum", pairs, self._sums[labels]
        yield "_count", pairs, total


class MetricRegistry:
    """The metrics of a process, in groups, each of which can be replaced: a controller that leads has others."""

    def __init__(self) -> None:
        self._groups: dict[str, tuple[MetricSource, ...]] = {}

    def put(self, group: str, *sources: MetricSource) -> None:
        """Set the metrics of a group; without any, the group has none."""
        self._groups[group] = sources

    def add(self, group: str, *sources: MetricSource) -> None:
        """Add metrics to a group: the controllers of several namespaces are one group."""
        self._groups[group] = (*self._groups.get(group, ()), *sources)

    def write(self) -> bytes:
        """Return all metrics as text; samples of several sources with the same name and labels are added up."""
        families: dict[str, list[MetricFamily]] = {}
        for source in (source for sources in self._groups.values() for source in sources):
            for family in source.collect():
                families.setdefault(family.name, []).append(family)
        lines = (line for name in sorted(families) for line in _lines(families[name]))
        return "".join(f"{line}\n" for line in lines).encode()


def _lines(families: list[MetricFamily]) -> Iterator[str]:
    first = families[0]
    yield f"# HELP {first.name} {_escaped(first.help)}"
    yield f"# TYPE {first.name} {first.type}"
    totals: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for suffix, labels, value in (sample for family in families for sample in family.samples):
        totals[suffix, labels] = totals.get((suffix, labels), 0.0) + value
    for (suffix, labels), value in totals.items():
        pairs = ",".join(f'{name}="{_escaped(text, quote=True)}"' for name, text in labels)
        yield f"{first.name}{suffix}{{{pairs}}} {_number(value)}" if pairs else f"{first.name}{suffix} {_number(value)}"


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
