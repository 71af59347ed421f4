"""What is read by rows is what the full parser reads, whatever stands in the file."""

import io
import math
import random
import struct

import pytest

from paceline.podtools.files import event_records, repeated_rows, tfevents
from paceline.podtools.files.event_records import CorruptRecord, next_record
from paceline.podtools.files.repeated_rows import read_events
from paceline.podtools.files.tfevents import EventRun
from tests.unit.podtools.files.event_files import (
    VERSION,
    block,
    event,
    event_file,
    record,
    simple,
    start,
    tensor,
    varint,
)

ODD_VALUES = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e-45, 3.4e38)


class CountingRun(EventRun):
    """Counts the records that the full parser reads."""

    parsed = 0

    def add(self, body):
        self.parsed += 1
        return super().add(body)


def one_by_one(stream, run):
    """The full parser alone."""
    offset = stream.tell()
    while (record := next_record(stream, offset)) is not None:
        offset, body = record
        if body:
            run.add(body)
        yield offset


def outcome(reader, data, *, cuts=()):
    """Return all that a reader makes of a file that grows."""
    run, offset, faults = CountingRun(), 0, []
    for end in (*cuts, len(data)):
        stream = io.BytesIO(data[:end])
        stream.seek(offset)
        try:
            for reached in reader(stream, run):
                offset = reached
        except CorruptRecord as error:
            faults.append(str(error))
    # As bytes, since NaN is not equal to itself.
    tags = {
        tag: (points.steps.tobytes(), points.times.tobytes(), points.values.tobytes())
        for tag, points in run.tags.items()
    }
    return run, (tags, run.count, run.is_truncated, offset, faults)


def both(data, **options):
    """Return how many records the full parser read for the reader of rows, whose outcome is the same."""
    run, ours = outcome(read_events, data, **options)
    full, expected = outcome(one_by_one, data, **options)
    assert ours == expected
    return run.parsed, full.parsed


def loop(count, *, tags=("loss",), first=0, every=1):
    steps = range(first, first + count * every, every)
    return [event(step, simple(tag, 1 / (1 + step)), time=1e9 + step / 7) for step in steps for tag in tags]


def test_of_a_loop_the_full_parser_reads_only_where_the_layout_changes():
    parsed, records = both(event_file(*loop(4_200, every=4)))
    # Steps get a second byte at 128, a third one at 16,384.
    assert (parsed, records) == (7, 4_201)


def test_a_loop_may_write_several_metrics_in_records_of_their_own_or_in_one():
    tags = ("loss", "accu", "learning_rate", "b", "c")
    assert both(event_file(*loop(500, tags=tags)))[0] < 50
    together = [event(step, *(simple(tag, step / 3) for tag in tags)) for step in range(500)]
    assert both(event_file(*together))[0] < 10
    wide = [[simple(f"{part}.{number}", step) for number in range(20)] for step in range(60) for part in range(10)]
    assert both(event_file(*(event(index // 10, *values) for index, values in enumerate(wide))))[0] < 50


def test_tensors_of_every_type_are_read_by_rows():
    for form, value in (("f", 0.1), ("d", 0.1), ("q", -(2**53) - 1)):
        events = [event(step, tensor("m", value, form=form, has_metadata=step == 0)) for step in range(500)]
        assert both(event_file(*events))[0] < 10


def test_values_and_times_that_are_no_ordinary_numbers_are_kept():
    events = [event(step, simple("loss", ODD_VALUES[step % 7]), time=ODD_VALUES[step % 5]) for step in range(500)]
    assert both(event_file(*events))[0] < 10


def test_large_and_negative_steps_are_read():
    for first in (2**31, 2**62, -500, -(2**63)):
        both(event_file(*loop_at(first)))


def loop_at(first):
    return [event(first + index, simple("loss", index)) for index in range(200)]


def test_a_wrong_checksum_in_a_row_is_the_fault_of_its_record():
    events = [record(data) for data in loop(300)]
    for place in (20, 150, 299):
        for byte in (-1, -5, 14):
            damaged = bytearray(events[place])
            damaged[byte] ^= 0x10
            data = VERSION + b"".join((*events[:place], bytes(damaged), *events[place + 1 :]))
            _, (_, count, _, offset, faults) = outcome(read_events, data)
            assert (count, offset) == (place, len(VERSION) + sum(map(len, events[:place])))
            assert faults == ["the checksum of a record is wrong"]
            both(data)


def test_a_byte_that_must_be_the_same_is_compared():
    # A record of another metric with a right checksum, of the same length.
    events = loop(300)
    events[200] = event(200, simple("lost", 0.5), time=1e9)
    run, _ = outcome(read_events, event_file(*events))
    assert {tag: len(points.steps) for tag, points in run.tags.items()} == {"loss": 299, "lost": 1}
    both(event_file(*events))


def test_a_step_that_does_not_end_where_those_before_it_did_is_read_by_the_full_parser():
    # A number of two bytes whose second one goes on: the next field is its third byte.
    events = [event(200 + index, simple("loss", 1.0)) for index in range(100)]
    odd = bytearray(events[60])
    odd[11] |= 0x80
    data = VERSION + b"".join(map(record, [*events[:60], bytes(odd), *events[61:]]))
    both(data)
    short = bytearray(events[60])
    short[10] &= 0x7F
    both(VERSION + b"".join(map(record, [*events[:60], bytes(short), *events[61:]])))


def test_a_training_that_starts_again_is_noticed_between_rows():
    data = event_file(start(0), *loop(500), start(300), *loop(500, first=300))
    _, (_, count, *_) = outcome(read_events, data)
    assert count == 800
    both(data)


@pytest.mark.parametrize("limit", [10, 100, 101, 399])
def test_the_bound_of_points_holds_in_rows(monkeypatch, limit):
    monkeypatch.setattr(tfevents, "MOST_POINTS", limit)
    for tags in (("loss",), ("a", "b", "c")):
        data = event_file(*loop(400, tags=tags))
        assert outcome(read_events, data)[1][1:3] == (limit, True)
        both(data)


def test_the_bound_of_metrics_holds_in_rows(monkeypatch):
    monkeypatch.setattr(tfevents, "MOST_TAGS", 2)
    both(event_file(*loop(200, tags=("a", "b", "c"))))


def test_a_file_that_never_repeats_costs_few_attempts(monkeypatch):
    attempts = []
    row = repeated_rows.RepeatedRow
    monkeypatch.setattr(repeated_rows, "RepeatedRow", lambda records: attempts.append(1) or row(records))
    # Every metric twice, so that each pair looks like the beginning of rows.
    events = [event(step, simple(f"m{step // 2 % 50}", 1.0)) for step in range(2_000)]
    both(event_file(*events))
    assert len(attempts) < 20


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("seed", range(10))
def test_both_readers_agree_on_random_and_hostile_files(seed, rounds, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(repeated_rows, "MOST_BYTES", 4096)
    monkeypatch.setattr(event_records, "MOST_RECORD", 3000)
    monkeypatch.setattr(tfevents, "MOST_POINTS", chance.choice((150, 1_000_000)))
    rows = 0
    for _ in range(rounds):
        data = VERSION + b"".join(hostile(chance, part(chance)) for _ in range(chance.randrange(1, 5)))
        data = data[: chance.randrange(len(data) // 2, len(data) + 1)]
        if chance.random() < 0.3:
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            data = bytes(changed)
        cuts = sorted(chance.randrange(len(data)) for _ in range(chance.choice((0, 0, 3))))
        parsed, full = both(data, cuts=cuts)
        rows += parsed < full
    assert rows, "no file had rows"


def part(chance):
    """Return the events of a loop."""
    tags = chance.sample(("loss", "lost", "a", "b", "train/accuracy"), chance.randrange(1, 5))
    form = chance.choice((simple, simple, tensor, with_unknown_fields, histogram))
    is_together = chance.random() < 0.3
    step, events = chance.choice((0, 1, 100, 127, 16_300, 2**35, -20)), []
    for _ in range(chance.randrange(5, 120)):
        step += chance.choice((0, 1, 1, 1, 1, 3))
        values = [form(tag, chance.choice((chance.random(), *ODD_VALUES))) for tag in tags]
        groups = [values] if is_together else [[value] for value in values]
        events += [event(step, *group, time=chance.choice((1e9 + step, chance.random(), math.nan))) for group in groups]
        if chance.random() < 0.01:
            events.append(chance.choice((start(step), event(step, histogram("h", 1.0)), event(step))))
    return events


def with_unknown_fields(tag, value):
    return simple(tag, value) + block(15, b"?") + varint(16 << 3) + varint(300)


def histogram(tag, value):
    return block(1, tag.encode()) + block(5, varint(1 << 3 | 1) + struct.pack("<d", value) * 3)


def hostile(chance, events):
    """Return records, some of them damaged, also with right checksums."""
    records = []
    for data in events:
        if chance.random() < 0.01:
            changed = bytearray(data)
            changed[chance.randrange(len(data))] = chance.randrange(256)
            records.append(record(bytes(changed)))
        elif chance.random() < 0.002:
            changed = bytearray(record(data))
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            records.append(bytes(changed))
        elif chance.random() < 0.002:
            records.append(record(event(1, block(4, bytes(4000)))))
        else:
            records.append(record(data))
    return b"".join(records)
