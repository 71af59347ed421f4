"""Read the scalars of TensorBoard's event files: the record format and a part of its protobuf messages.

The files are hostile: their author chose every length. A record is read only if its length has the right
checksum and is at most `MOST_RECORD`; larger ones (images, graphs) are skipped, and nothing here recurses. A file that
is still being written ends in the middle of a record: reading stops there and goes on later from the same offset.
"""

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
# Of a larger record only the length is read. A record with a thousand scalars has 50 KB.
MOST_RECORD = 4 << 20
MOST_TAG_BYTES = 1024
MOST_TAGS = 2_000
# Points of one run; further ones are not kept.
MOST_POINTS = 1_000_000
# Wire types of protobuf.
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# SessionLog.status of a training that starts (again).
START = 1
# The plugin of scalars in a tag's metadata.
SCALARS = b"scalars"
# Types of a tensor: float, double, int32, int64.
FORMATS = {1: "f", 2: "d", 3: "i", 9: "q"}
# Field of a tensor with unpacked values, by type.
FLOAT_VAL, DOUBLE_VAL = 5, 6


class CorruptRecord(ValueError):
    """The bytes are not what the format demands."""


def _tables() -> tuple[list[int], list[int]]:
    """Return the CRC-32C of each byte, and of each pair of bytes."""
    one = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        one.append(crc)
    two = []
    for pair in range(65536):
        crc = one[pair & 0xFF] ^ (pair >> 8)
        two.append(one[crc & 0xFF] ^ (crc >> 8))
    return one, two


_ONE, _TWO = _tables()


def masked_crc(data: bytes) -> int:
    """Return the checksum of the record format: CRC-32C, rotated and shifted."""
    crc, two = 0xFFFFFFFF, _TWO
    even = len(data) & ~1
    for pair in struct.unpack(f"<{even // 2}H", data[:even]):
        crc = two[(crc ^ pair) & 0xFFFF] ^ (crc >> 16)
    if even < len(data):
        crc = _ONE[(crc ^ data[-1]) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the offset after each whole record and its data (empty if it was skipped); CorruptRecord at a bad length.

    The checksum of the data is checked by the caller, since it takes most of the time.
    """
    offset = stream.tell()
    while len(head := stream.read(HEADER.size)) == HEADER.size:
        length, checksum = HEADER.unpack(head)
        if masked_crc(head[:8]) != checksum:
            raise CorruptRecord(f"offset {offset}: the checksum of a record's length is wrong")
        end = offset + HEADER.size + length + FOOTER.size
        if length > MOST_RECORD:
            if end > _size(stream):
                return
            stream.seek(end)
            yield end, b""
        else:
            body = stream.read(length + FOOTER.size)
            if len(body) < length + FOOTER.size:
                return
            yield end, body
        offset = end


def _size(stream: BinaryIO) -> int:
    here = stream.tell()
    size = stream.seek(0, 2)
    stream.seek(here)
    return size


Value = int | bytes


def fields(message: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield number, wire type and value of each field of a protobuf message; fixed sizes as their bytes."""
    offset, end = 0, len(message)
    while offset < end:
        key, offset = _varint(message, offset)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, offset = _varint(message, offset)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, offset = _varint(message, offset)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise CorruptRecord(f"field {number} has the unknown wire type {wire}")
        if size > end - offset:
            raise CorruptRecord(f"field {number} is longer than its message")
        yield number, wire, message[offset : offset + size]
        offset += size


def _varint(message: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(message) and shift < 70:
        byte = message[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, offset
        shift += 7
    raise CorruptRecord("a number does not end")


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

    def add(self, body: bytes) -> None:
        """Take the scalars of one record: its data and their checksum; CorruptRecord if these do not fit."""
        data = body[: -FOOTER.size]
        event = _event(data)
        if event is None:
            return
        step, time, summary, is_start = event
        if masked_crc(data) != FOOTER.unpack(body[-FOOTER.size :])[0]:
            raise CorruptRecord("the checksum of a record is wrong")
        if is_start and self._has_started:
            self.count -= sum(points.drop_from(step) for points in self.tags.values())
        self._has_started = self._has_started or is_start
        for number, wire, value in fields(summary):
            if number == 1 and wire == BYTES and isinstance(value, bytes):
                self._add_value(step, time, value)

    def _add_value(self, step: int, time: float, message: bytes) -> None:
        tag, scalar, tensor = "", None, None
        for number, wire, value in fields(message):
            if not isinstance(value, bytes):
                continue
            if number == 1 and wire == BYTES and len(value) <= MOST_TAG_BYTES:
                tag = value.decode(errors="replace")
            elif number == 2 and wire == FIXED32:
                (scalar,) = struct.unpack("<f", value)
            elif number == 8 and wire == BYTES:
                tensor = value
            elif number == 9 and wire == BYTES and _plugin(value) == SCALARS and len(self._scalar_tags) < MOST_TAGS:
                self._scalar_tags.add(tag)
        if scalar is None and tensor is not None and tag in self._scalar_tags:
            scalar = _scalar(tensor)
        if not tag or scalar is None:
            return
        if self.count >= MOST_POINTS or (tag not in self.tags and len(self.tags) >= MOST_TAGS):
            self.is_truncated = True
            return
        self.tags.setdefault(tag, ScalarPoints()).add(step, time, scalar)
        self.count += 1


def _event(data: bytes) -> tuple[int, float, bytes, bool] | None:
    """Return step, time, summary and whether a training starts; None for events that say nothing about scalars."""
    step, time, summary, is_start = 0, 0.0, b"", False
    for number, wire, value in fields(data):
        if number == 1 and wire == FIXED64 and isinstance(value, bytes):
            (time,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            summary = value
        elif number == 7 and isinstance(value, bytes):
            is_start = any(key == 1 and status == START for key, _, status in fields(value))
    return (step, time, summary, is_start) if summary or is_start else None


def _plugin(metadata: bytes) -> bytes:
    for number, _, plugin in fields(metadata):
        if number == 1 and isinstance(plugin, bytes):
            for key, _, name in fields(plugin):
                if key == 1 and isinstance(name, bytes):
                    return name
    return b""


def _scalar(tensor: bytes) -> float | None:
    """Return the one number of a tensor; None if it has several, or is of another type."""
    kind, content = 0, b""
    for number, _, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in (4, FLOAT_VAL, DOUBLE_VAL) and isinstance(value, bytes):
            content = value
    form = FORMATS.get(kind)
    if form is None or len(content) != struct.calcsize(f"<{form}"):
        return None
    return float(struct.unpack(f"<{form}", content)[0])
