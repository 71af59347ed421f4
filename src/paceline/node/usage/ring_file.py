"""A file with what one container used: samples for two hours, minutes for a day, quarters of an hour for a month.

The place of a record follows from its time, so that there is no index to keep: a sample is one write of 88 bytes, and
a killed agent loses nothing that it has written. A record that is older than its ring, or was cut by a power failure,
is recognised by its time and its checksum. Samples hold counters as the kernel has them; rates are what lies between
two samples, also when the agent was restarted in between.
"""

import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.effects import Files

# What is kept, in the order of the file. All but the gauges are counters.
FIELDS = ("cpu", "memory", "diskRead", "diskWrite", "networkIn", "networkOut", "gpu", "gpuMemory")
GAUGES = frozenset({"memory", "gpu", "gpuMemory"})
UNKNOWN = math.nan
MAGIC = b"PLUSE001"
# A longer gap says nothing about the rate at one moment.
LONGEST_SPAN_SECONDS = 900.0

_IS_GAUGE = tuple(name in GAUGES for name in FIELDS)
_CHECKSUM = struct.Struct("<I4x")
# Time, process, age, values.
_SAMPLE = struct.Struct(f"<dIf{len(FIELDS)}d")
# End, covered seconds, and of every value the least, the mean and the largest.
_MERGED = struct.Struct(f"<df4x{3 * len(FIELDS)}f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """One sample: what a process tree has used so far, and uses now."""

    time: float
    # Tells the process tree from the one that follows after a restart.
    process: int
    age_seconds: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What was used in the seconds before `end`."""

    end: float
    seconds: float
    least: tuple[float, ...]
    mean: tuple[float, ...]
    most: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """One part of the file: the records of one period."""

    seconds: int
    slots: int
    offset: int
    bytes: int

    def place(self, end: float) -> int:
        """Return where the record that ends at a time is in the file."""
        return self.offset + period(end, self.seconds) % self.slots * self.bytes

    @property
    def limit(self) -> int:
        """Return where the part ends in the file."""
        return self.offset + self.slots * self.bytes


SAMPLES = Ring(seconds=5, slots=1440, offset=64, bytes=_SAMPLE.size + _CHECKSUM.size)
MINUTES = Ring(seconds=60, slots=1440, offset=SAMPLES.limit, bytes=_MERGED.size + _CHECKSUM.size)
QUARTERS = Ring(seconds=900, slots=2976, offset=MINUTES.limit, bytes=_MERGED.size + _CHECKSUM.size)
RINGS = (SAMPLES, MINUTES, QUARTERS)


def period(end: float, seconds: float) -> int:
    """Return the number of the period that a time is in; a period ends with its last moment."""
    return math.ceil(end / seconds) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RingFile:
    """The file of one container, pod or node."""

    files: Files
    path: Path

    def start(self) -> float | None:
        """Create the file, or merge what a killed agent has not; return the time of the last sample."""
        samples = _samples(self._all(SAMPLES))
        if not samples:
            self.files.write_at(self.path, 0, MAGIC)
            return None
        last = samples[-1].time
        self._catch_up(MINUTES, rates(samples), last)
        self._catch_up(QUARTERS, _merged(self._all(MINUTES)), last)
        return last

    def append(self, sample: Counters, last: float | None) -> None:
        """Write a sample, and merge the minute and the quarter that `last`, the one before, was the end of."""
        packed = _SAMPLE.pack(sample.time, sample.process, sample.age_seconds, *sample.values)
        self._write(SAMPLES, sample.time, packed)
        if last is None or period(last, MINUTES.seconds) == period(sample.time, MINUTES.seconds):
            return
        start = period(last, MINUTES.seconds) * MINUTES.seconds
        self._write_merged(MINUTES, rates(self._samples_from(start)), start)
        if period(last, QUARTERS.seconds) != period(sample.time, QUARTERS.seconds):
            start = period(last, QUARTERS.seconds) * QUARTERS.seconds
            self._write_merged(QUARTERS, _merged(self._between(MINUTES, start, start + QUARTERS.seconds)), start)

    def points(self, start: float, end: float, step: float) -> list[Point]:
        """Return what was used in a span of time, from the ring that fits `step`, completed from the others."""
        chosen = max((index for index, ring in enumerate(RINGS) if ring.seconds <= step), default=0)
        points = self._read(RINGS[chosen])
        for ring in RINGS[chosen + 1 :]:
            # A second is how far samples are from their periods.
            first = points[0].end - points[0].seconds - 1 if points else math.inf
            older = [point for point in self._read(ring) if point.end - point.seconds < first]
            points = older + [point for point in points if not older or point.end > older[-1].end]
        for ring in reversed(RINGS[:chosen]):
            last = points[-1].end if points else 0.0
            points += [point for point in self._read(ring) if point.end > last]
        return [point for point in points if start < point.end and point.end - point.seconds < end]

    def _read(self, ring: Ring) -> list[Point]:
        return list(rates(_samples(self._all(ring)))) if ring is SAMPLES else _merged(self._all(ring))

    def _catch_up(self, ring: Ring, finer: Iterable[Point], last: float) -> None:
        merged = _merged(self._all(ring))
        newest, complete = merged[-1].end if merged else 0.0, period(last, ring.seconds) * ring.seconds
        missing = [point for point in finer if newest < point.end <= complete]
        for number in sorted({period(point.end, ring.seconds) for point in missing}):
            self._write_merged(ring, missing, number * ring.seconds)

    def _samples_from(self, start: float) -> list[Counters]:
        """Return the samples of the minute that begins at `start`, and one before it: a rate lies between two."""
        earlier = start - 2 * SAMPLES.seconds
        samples = _samples(self._between(SAMPLES, earlier, start + MINUTES.seconds))
        # A place that was left out still holds a sample of two hours ago.
        recent = [sample for sample in samples if sample.time > earlier]
        # The container has just begun, or the agent was away for longer than two samples.
        return recent if recent and recent[0].time <= start else _samples(self._all(SAMPLES))

    def _write_merged(self, ring: Ring, finer: Iterable[Point], start: float) -> None:
        """Merge the points of the period that begins at `start` into its record."""
        end = start + ring.seconds
        inside = [point for point in finer if start < point.end <= end]
        if inside:
            point = merge(inside, end)
            self._write(ring, end, _MERGED.pack(end, point.seconds, *point.least, *point.mean, *point.most))

    def _write(self, ring: Ring, end: float, packed: bytes) -> None:
        self.files.write_at(self.path, ring.place(end), packed + _CHECKSUM.pack(zlib.crc32(packed)))

    def _all(self, ring: Ring) -> bytes:
        try:
            data = self.files.read_range(self.path, ring.offset, ring.limit - ring.offset)
        except FileNotFoundError:
            return b""
        return data[: len(data) // ring.bytes * ring.bytes]

    def _between(self, ring: Ring, start: float, end: float) -> bytes:
        """Return the records of a span of time, which may lie on both sides of the ring's end."""
        first, last = ring.place(start), ring.place(end) + ring.bytes
        if first < last:
            return self.files.read_range(self.path, first, last - first)
        return self.files.read_range(self.path, first, ring.limit - first) + self.files.read_range(
            self.path, ring.offset, last - ring.offset
        )


def rates(samples: list[Counters]) -> Iterator[Point]:
    """Yield what was used between each two samples, and before the first one of a process."""
    before: Counters | None = None
    for sample in samples:
        is_same = before is not None and before.process == sample.process
        seconds = sample.time - before.time if before is not None and is_same else sample.age_seconds
        zeros = before.values if before is not None and is_same else (0.0,) * len(FIELDS)
        before = sample
        values = tuple(
            value if is_gauge else max(value - zero, 0.0) / seconds if 0 < seconds <= LONGEST_SPAN_SECONDS else UNKNOWN
            for value, zero, is_gauge in zip(sample.values, zeros, _IS_GAUGE, strict=True)
        )
        covered = seconds if 0 < seconds <= LONGEST_SPAN_SECONDS else float(SAMPLES.seconds)
        yield Point(end=sample.time, seconds=covered, least=values, mean=values, most=values)


def merge(points: list[Point], end: float) -> Point:
    """Return points as one: the least, the mean and the largest of every value, as far as it is known."""
    columns = [_merge_value(points, index) for index in range(len(FIELDS))]
    least, mean, most = zip(*columns, strict=True)
    covered = math.fsum(point.seconds for point in points)
    return Point(end=end, seconds=covered, least=least, mean=mean, most=most)


def _merge_value(points: list[Point], index: int) -> tuple[float, float, float]:
    known = [point for point in points if not math.isnan(point.mean[index])]
    seconds = math.fsum(point.seconds for point in known)
    if not seconds:
        return UNKNOWN, UNKNOWN, UNKNOWN
    mean = math.fsum(point.mean[index] * point.seconds for point in known) / seconds
    return min(point.least[index] for point in known), mean, max(point.most[index] for point in known)


def _samples(data: bytes) -> list[Counters]:
    samples = (
        Counters(time=time, process=int(process), age_seconds=age, values=tuple(values))
        for time, process, age, *values in _records(_SAMPLE, data)
    )
    return sorted(samples, key=lambda sample: sample.time)


def _merged(data: bytes) -> list[Point]:
    count = len(FIELDS)
    points = (
        Point(
            end=end,
            seconds=seconds,
            least=tuple(values[:count]),
            mean=tuple(values[count : 2 * count]),
            most=tuple(values[2 * count :]),
        )
        for end, seconds, *values in _records(_MERGED, data)
    )
    return sorted(points, key=lambda point: point.end)


def _records(form: struct.Struct, data: bytes) -> Iterator[tuple[float, ...]]:
    """Yield the records that are whole."""
    size = form.size + _CHECKSUM.size
    for offset in range(0, len(data) - size + 1, size):
        packed = data[offset : offset + form.size]
        (checksum,) = _CHECKSUM.unpack_from(data, offset + form.size)
        if checksum and zlib.crc32(packed) == checksum:
            yield form.unpack(packed)
