"""Read rows of records that repeat, as a training loop writes them: all of a column at once.

A loop writes the same metrics at every step, so its records differ only in time, step, values and checksum. When the
records that the full parser has read last repeat, the following bytes are compared with that row; where they are the
same but for those numbers, and the checksums are right, the full parser would have found the same metrics at the same
places. Everything else is left to it. This takes a fortieth of its time.
"""

import sys
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from paceline.podtools.files.event_records import FOOTER, HEADER, crc32c, crc_shares, masked, masked_crc, next_record
from paceline.podtools.files.tfevents import EventPlaces, EventRun, ScalarPoints, Span

# Records of one row, and bytes of one record with a column for each of its numbers.
MOST_ROW, MOST_BODY = 64, 2048
# Rows that are compared first; while all of them fit, more are, up to so many bytes.
FIRST_ROWS, MORE, MOST_BYTES = 16, 4, 1 << 20
# Fewer records than these are read sooner by the full parser; after such an attempt it reads so many records or more.
FEW, MOST_PAUSE = 16, 4096
MOST_MARKS = 64 * MOST_ROW
# A longer number is negative.
MOST_STEP_BYTES = 9
LOW_BITS = bytes(byte & 0x7F for byte in range(256))
HIGH_BIT = bytes(byte & 0x80 for byte in range(256))
NO_BITS = bytes(256)


@dataclass(frozen=True, slots=True)
class RowRecord:
    """A record of a row: where its data start and end in the row, and where the numbers stand in the data."""

    start: int
    end: int
    places: EventPlaces

    def spans(self) -> Iterator[Span]:
        """Yield where the numbers other than the step stand in the row."""
        if self.places.time is not None:
            yield self.start + self.places.time, self.start + self.places.time + 8
        for place in self.places.scalars:
            yield self.start + place.start, self.start + place.start + array(place.format).itemsize

    def step(self) -> Span:
        """Return where the step stands in the row; nowhere if it is left out."""
        start, end = self.places.step or (0, 0)
        return self.start + start, self.start + end

    def masks(self) -> dict[int, bytes]:
        """Return where the bytes of the numbers stand in the row, with what is left of each for a comparison."""
        plain = dict.fromkeys((at for span in self.spans() for at in range(*span)), NO_BITS)
        return plain | dict.fromkeys(range(*self.step()), HIGH_BIT)


class RepeatedRow:
    """The records of a row, and what is the same in all rows."""

    def __init__(self, records: Sequence[tuple[bytes, EventPlaces]]) -> None:
        row = bytearray()
        self.records: list[RowRecord] = []
        for body, places in records:
            length = len(body) - FOOTER.size
            size = length.to_bytes(8, "little")
            row += HEADER.pack(length, masked_crc(size)) + body
            self.records.append(RowRecord(len(row) - len(body), len(row) - FOOTER.size, places))
        self.size = len(row)
        self.tags = [place.tag for record in self.records for place in record.places.scalars]
        # What is left of each byte that may differ: of a step, which bytes end it.
        self._masks: dict[int, bytes] = {}
        # Of each record, where the bytes of its numbers stand in the row and how far from its end; and its checksum
        # if all of them are zero.
        self._shares: list[list[tuple[int, int]]] = []
        self._zeros: list[int] = []
        for record in self.records:
            data, numbers = row[record.start : record.end], record.masks()
            for at in numbers:
                data[at - record.start] = 0
            self._shares.append([(at, record.end - 1 - at) for at in numbers])
            self._zeros.append(crc32c(bytes(data)))
            self._masks |= numbers | dict.fromkeys(range(record.end, record.end + FOOTER.size), NO_BITS)
        for at, mask in self._masks.items():
            row[at] = mask[row[at]]
        self._same = bytes(row)

    @property
    def is_readable(self) -> bool:
        """Return whether its columns can be read: each metric once, and no step that could be negative."""
        spans = [record.step() for record in self.records]
        return len(set(self.tags)) == len(self.tags) and all(end - start <= MOST_STEP_BYTES for start, end in spans)

    def columns(self, block: bytes) -> tuple[int, Mapping[int, bytes]]:
        """Return how many rows a block begins with, and its bytes that may differ, by their place in the row."""
        same_bytes = bytearray(block)
        columns = {at: block[at :: self.size] for at in self._masks}
        for at, column in columns.items():
            same_bytes[at :: self.size] = column.translate(self._masks[at])
        count = self._fitting(same_bytes)
        for record, shares, zeros in zip(self.records, self._shares, self._zeros, strict=True):
            sums = [columns[at][:count] for at in range(record.end, record.end + FOOTER.size)]
            count = _right_checksums(sums, [(columns[at][:count], distance) for at, distance in shares], zeros)
        return count, columns

    def _fitting(self, same_bytes: bytearray) -> int:
        """Return how many rows are the same but for their numbers."""
        size, low, high = self.size, 0, len(same_bytes) // self.size
        if same_bytes == self._same * high:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            if same_bytes[low * size : middle * size] == self._same * (middle - low):
                low = middle
            else:
                high = middle
        return low

    def points(self, count: int, columns: Mapping[int, bytes]) -> Iterator[tuple[str, ScalarPoints]]:
        """Yield each metric with the points of so many rows."""
        for record in self.records:
            if not record.places.scalars:
                continue
            steps = _steps([columns[at][:count] for at in range(*record.step())], count)
            spans = [_joined([columns[at][:count] for at in range(*span)]) for span in record.spans()]
            times = _numbers("d", bytes(8 * count) if record.places.time is None else spans.pop(0))
            for place, data in zip(record.places.scalars, spans, strict=True):
                yield place.tag, ScalarPoints(steps, times, array("d", _numbers(place.format, data)))


def _right_checksums(sums: Sequence[bytes], numbers: Sequence[tuple[bytes, int]], zeros: int) -> int:
    """Return how many rows begin with right checksums of a record.

    `numbers` are the columns of its data with their distances from the end; `zeros` is the checksum if all are zero.
    """
    written = _numbers("I", _joined(sums))
    count = len(written)
    total = int.from_bytes(b"".join(bytes([byte]) * count for byte in zeros.to_bytes(4, "little")), "little")
    for column, distance in numbers:
        total ^= int.from_bytes(b"".join(map(column.translate, crc_shares(distance))), "little")
    planes = total.to_bytes(4 * count, "little")
    crcs = _numbers("I", _joined([planes[place * count : (place + 1) * count] for place in range(4)]))
    right = array("I", map(masked, crcs))
    if right == written:
        return count
    return next(row for row in range(count) if right[row] != written[row])


def _joined(columns: Sequence[bytes], width: int = 0) -> bytearray:
    """Return columns of bytes as rows of a width, filled up with zeros."""
    width = width or len(columns)
    rows = bytearray(width * len(columns[0]))
    for index, column in enumerate(columns):
        rows[index::width] = column
    return rows


def _numbers(form: str, data: bytes | bytearray) -> "array[Any]":
    numbers = array(form, bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _steps(columns: Sequence[bytes], count: int) -> "array[int]":
    """Return numbers of variable length: seven bits of each byte, the lowest ones first."""
    total = 0
    for index, column in enumerate(columns):
        total |= int.from_bytes(_joined([column.translate(LOW_BITS)], width=8), "little") << 7 * index
    return _numbers("q", total.to_bytes(8 * count, "little"))


def read_events(stream: BinaryIO, run: EventRun) -> Iterator[int]:
    """Add the scalars of a stream to a run; yield the offset behind the records that have been added."""
    offset, finder = stream.tell(), RowFinder()
    while (record := next_record(stream, offset)) is not None:
        offset, body = record
        places = run.add(body) if body else None
        yield offset
        row = finder.note(body, places)
        if row is not None:
            start = offset
            for offset in _read_rows(stream, offset, row, run):  # noqa: B020 - goes on from there
                yield offset
            finder.judge((offset - start) // row.size * len(row.records))
            stream.seek(offset)


def _read_rows(stream: BinaryIO, offset: int, row: RepeatedRow, run: EventRun) -> Iterator[int]:
    """Add rows while they repeat, and yield the offset behind them."""
    row_count = FIRST_ROWS
    while True:
        block = stream.read(row_count * row.size)
        count, columns = row.columns(block[: len(block) // row.size * row.size])
        count = min(count, run.room_for(row.tags))
        for tag, points in row.points(count, columns):
            run.extend(tag, points)
        offset += count * row.size
        yield offset
        if count < row_count:
            return
        row_count = max(FIRST_ROWS, min(MORE * row_count, MOST_BYTES // row.size))


class RowFinder:
    """Notices that the last records repeat the row before."""

    def __init__(self) -> None:
        self._pause = FEW
        self._wait = 0
        self._begin()

    def _begin(self) -> None:
        self._records: deque[tuple[bytes, EventPlaces]] = deque(maxlen=MOST_ROW)
        # Length and metrics of each record. Whether all else is the same, the comparison of rows finds out.
        self._marks: list[tuple[object, ...]] = []
        self._places: dict[tuple[object, ...], int] = {}

    def note(self, body: bytes, places: EventPlaces | None) -> RepeatedRow | None:
        """Note a record; return the row that was there twice, if there is one and an attempt is worth while."""
        self._wait -= 1
        if places is None or len(body) > MOST_BODY or len(self._marks) > MOST_MARKS:
            self._begin()
            return None
        mark = (len(body), *[place.tag for place in places.scalars])
        place, size = len(self._marks), len(self._marks) - self._places.get(mark, -MOST_ROW)
        self._marks.append(mark)
        self._places[mark] = place
        self._records.append((body, places))
        if self._wait > 0 or size > MOST_ROW or self._marks[-size:] != self._marks[-2 * size : -size]:
            return None
        row = RepeatedRow(tuple(self._records)[-size:])
        return row if row.is_readable else None

    def judge(self, records: int) -> None:
        """Note how many records a row has given."""
        self._pause = FEW if records > FEW else min(2 * self._pause, MOST_PAUSE)
        self._wait = 0 if records > FEW else self._pause
        self._begin()
