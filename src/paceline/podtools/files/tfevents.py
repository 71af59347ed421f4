"""The scalars in TensorBoard's events: a part of their protobuf messages.

The messages are hostile: nothing here recurses, and all that is kept has a bound.
"""

import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from paceline.podtools.files.event_records import FOOTER, CorruptRecord, masked_crc

MOST_TAG_BYTES = 1024
MOST_TAGS = 2_000
# Points of one run; further ones are not kept.
MOST_POINTS = 1_000_000
# Wire types of protobuf.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
# SessionLog.status of a training that starts (again).
START = 1
# The plugin of scalars in a tag's metadata.
SCALARS = b"scalars"
# Types of a tensor: float, double, int32, int64.
FORMATS = {1: "f", 2: "d", 3: "i", 9: "q"}
# Fields of a tensor with its content, and with unpacked values by type.
CONTENT, FLOAT_VAL, DOUBLE_VAL = 4, 5, 6


# Number, wire type, and where the value starts and ends.
Field = tuple[int, int, int, int]


def fields(message: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the protobuf message between two offsets."""
    while start < end:
        key, start = varint(message, start, end)
        wire = key & 7
        if wire == VARINT:
            _, stop = varint(message, start, end)
        elif wire == BYTES:
            size, start = varint(message, start, end)
            stop = start + size
        elif wire in FIXED_SIZES:
            stop = start + FIXED_SIZES[wire]
        else:
            raise CorruptRecord(f"field {key >> 3} has the unknown wire type {wire}")
        if stop > end:
            raise CorruptRecord(f"field {key >> 3} is longer than its message")
        yield key >> 3, wire, start, stop
        start = stop


def varint(message: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    value = shift = 0
    while start < end and shift < 70:
        byte = message[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, start
        shift += 7
    raise CorruptRecord("a number does not end")


# Where something starts and ends in the data of a record.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ScalarPlace:
    """Where a scalar stands in a record, and in which format of `struct`."""

    tag: str
    format: str
    start: int


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """Where the numbers of an event stand in a record; None for those that it leaves out, which are 0."""

    time: int | None
    step: Span | None
    scalars: tuple[ScalarPlace, ...]


@dataclass(slots=True)
class ScalarPoints:
    """The points of one tag, in the order in which they were written."""

    steps: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[float]" = field(default_factory=lambda: array("d"))
    values: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, step: int, time: float, value: float) -> None:
        """Append one point."""
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)

    def drop_from(self, step: int) -> int:
        """Remove the points at and after a step, which a restarted training writes again; return how many went."""
        if not self.steps or max(self.steps) < step:
            return 0
        kept = [index for index, other in enumerate(self.steps) if other < step]
        dropped = len(self.steps) - len(kept)
        for name in ("steps", "times", "values"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, (column[index] for index in kept)))
        return dropped


@dataclass(slots=True)
class EventRun:
    """The scalars of one run: the event files of one folder."""

    tags: dict[str, ScalarPoints] = field(default_factory=dict)
    # Tags whose metadata name the plugin of scalars; later records do not repeat them.
    _scalar_tags: set[str] = field(default_factory=set)
    # As in TensorBoard, the first start of a run is none that begins again.
    _has_started: bool = False
    count: int = 0
    is_truncated: bool = False

    def add(self, body: bytes) -> EventPlaces | None:
        """Take the scalars of one record, from its data and their checksum, and return where they stand.

        Return None for events that say nothing about scalars. Raise CorruptRecord if the record is damaged.
        """
        end = len(body) - FOOTER.size
        time_at, step_at, summary, is_start = _event(body, end)
        if summary is None and not is_start:
            return None
        if masked_crc(body[:end]) != FOOTER.unpack_from(body, end)[0]:
            raise CorruptRecord("the checksum of a record is wrong")
        places = EventPlaces(time_at, step_at, self._scalars(body, summary) if summary else ())
        time = 0.0 if time_at is None else struct.unpack_from("<d", body, time_at)[0]
        step = 0 if step_at is None else _signed(varint(body, *step_at)[0])
        if is_start and self._has_started:
            self.count -= sum(points.drop_from(step) for points in self.tags.values())
        self._has_started = self._has_started or is_start
        for place in places.scalars:
            self._add_point(place.tag, step, time, float(struct.unpack_from(f"<{place.format}", body, place.start)[0]))
        return None if is_start else places

    def _add_point(self, tag: str, step: int, time: float, value: float) -> None:
        if self.count >= MOST_POINTS or (tag not in self.tags and len(self.tags) >= MOST_TAGS):
            self.is_truncated = True
            return
        self.tags.setdefault(tag, ScalarPoints()).add(step, time, value)
        self.count += 1

    def room_for(self, tags: Sequence[str]) -> int:
        """Return how many points of each of these tags can be added together."""
        growing = sum(tag in self.tags for tag in tags)
        return (MOST_POINTS - self.count) // growing if growing and self.count < MOST_POINTS else MOST_POINTS

    def extend(self, tag: str, points: ScalarPoints) -> None:
        """Append points of a tag."""
        if self.count >= MOST_POINTS or tag not in self.tags:
            self.is_truncated = True
            return
        series = self.tags[tag]
        series.steps += points.steps
        series.times += points.times
        series.values += points.values
        self.count += len(points.steps)

    def _scalars(self, body: bytes, summary: Span) -> tuple[ScalarPlace, ...]:
        values = [(start, end) for number, wire, start, end in fields(body, *summary) if (number, wire) == (1, BYTES)]
        places = (self._scalar(body, span) for span in values)
        return tuple(place for place in places if place is not None)

    def _scalar(self, body: bytes, value: Span) -> ScalarPlace | None:
        """Return where the scalar of a summary's value stands; None if it is none."""
        tag, scalar, tensor = "", None, None
        for number, wire, start, end in fields(body, *value):
            if number == 1 and wire == BYTES and end - start <= MOST_TAG_BYTES:
                tag = body[start:end].decode(errors="replace")
            elif number == 2 and wire == FIXED32:
                scalar = ("f", start)
            elif number == 8 and wire == BYTES:
                tensor = (start, end)
            elif (
                number == 9 and wire == BYTES and _is_scalars(body, (start, end)) and len(self._scalar_tags) < MOST_TAGS
            ):
                self._scalar_tags.add(tag)
        if scalar is None and tensor is not None and tag in self._scalar_tags:
            scalar = _scalar_of_tensor(body, tensor)
        return ScalarPlace(tag, *scalar) if tag and scalar is not None else None


def _event(body: bytes, length: int) -> tuple[int | None, Span | None, Span | None, bool]:
    """Return where time, step and summary of an event stand, and whether a training starts."""
    time = step = summary = None
    is_start = False
    for number, wire, start, end in fields(body, 0, length):
        if number == 1 and wire == FIXED64:
            time = start
        elif number == 2 and wire == VARINT:
            step = (start, end)
        elif number == 5 and wire == BYTES:
            summary = (start, end) if end > start else None
        elif number == 7 and wire == BYTES:
            is_start = any(
                (key, kind) == (1, VARINT) and varint(body, first, last)[0] == START
                for key, kind, first, last in fields(body, start, end)
            )
    return time, step, summary, is_start


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _is_scalars(body: bytes, metadata: Span) -> bool:
    """Return whether metadata name the plugin of scalars."""
    for number, wire, start, end in fields(body, *metadata):
        if number == 1 and wire == BYTES:
            for key, kind, first, last in fields(body, start, end):
                if key == 1 and kind == BYTES:
                    return body[first:last] == SCALARS
    return False


def _scalar_of_tensor(body: bytes, tensor: Span) -> tuple[str, int] | None:
    """Return format and place of the one number of a tensor; None if it has several, or is of another type."""
    kind, content = 0, (0, 0)
    for number, wire, start, end in fields(body, *tensor):
        if number == 1 and wire == VARINT:
            kind = varint(body, start, end)[0]
        elif number in (CONTENT, FLOAT_VAL, DOUBLE_VAL) and wire != VARINT:
            content = (start, end)
    form = FORMATS.get(kind)
    if form is None or content[1] - content[0] != struct.calcsize(f"<{form}"):
        return None
    return form, content[0]
