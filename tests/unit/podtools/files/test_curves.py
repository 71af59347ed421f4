"""Scalars are read from event files as TensorBoard reads them, and hostile files harm nobody."""

import json
import math
import os
import random

import pytest

from paceline.podtools.files import curves
from paceline.podtools.files.curves import CurveReader
from paceline.podtools.files.event_records import masked_crc
from paceline.podtools.files.volume import open_root
from tests.unit.podtools.files.event_files import block, event, event_file, record, simple, start, tensor

NAME = "events.out.tfevents.1700000000.host"


@pytest.fixture
def read(tmp_path):
    root = open_root(str(tmp_path))
    reader = CurveReader(root)
    yield lambda path="", **options: reader.read(path, **options)
    os.close(root)


def series(answer, run=".", tag="loss"):
    runs = {entry["name"]: entry for entry in answer["runs"]}
    return next(entry for entry in runs[run]["scalars"] if entry["tag"] == tag)


def test_the_checksum_is_the_one_of_the_record_format():
    # The masked CRC-32C of RFC 3720's vectors.
    def crc(masked):
        rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
        return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF

    assert crc(masked_crc(bytes(32))) == 0x8A9136AA
    assert crc(masked_crc(b"\xff" * 32)) == 0x62A8AB43
    assert crc(masked_crc(bytes(range(31)))) == crc(masked_crc(bytes(range(31))))
    assert crc(masked_crc(b"123456789")) == 0xE3069283


def test_scalars_of_pytorch_and_of_tensorflow_are_read_with_steps_and_times(tmp_path, read):
    (tmp_path / NAME).write_bytes(
        event_file(
            event(1, simple("loss", 0.5), tensor("accuracy", 0.25), time=10.5),
            event(2, simple("loss", 0.25), tensor("accuracy", 0.5, has_metadata=False), time=11.5),
            event(-3, tensor("count", 7, form="q")),
        )
    )
    answer = read()
    assert series(answer)["steps"] == [1, 2]
    assert series(answer)["times"] == [10.5, 11.5]
    assert series(answer)["values"] == [0.5, 0.25]
    assert series(answer, tag="accuracy")["values"] == [0.25, 0.5]
    assert series(answer, tag="count")["last"]["value"] == 7
    assert series(answer, tag="count")["last"]["step"] == -3
    assert series(answer)["min"] == {"step": 2, "time": 11.5, "value": 0.25}
    assert series(answer)["max"]["step"] == 1


def test_a_tensor_without_the_metadata_of_scalars_is_no_scalar(tmp_path, read):
    (tmp_path / NAME).write_bytes(event_file(event(1, tensor("image", 1.0, has_metadata=False))))
    assert read()["runs"][0]["scalars"] == []


def test_every_folder_with_event_files_is_a_run(tmp_path, read):
    for run in ("train", "deep/er/eval"):
        (tmp_path / "logs" / run).mkdir(parents=True)
        (tmp_path / "logs" / run / NAME).write_bytes(event_file(event(1, simple("loss", 1.0))))
    (tmp_path / "logs" / "notes.txt").write_text("no events")
    assert [run["name"] for run in read("logs")["runs"]] == ["deep/er/eval", "train"]
    assert [run["name"] for run in read("logs/train")["runs"]] == ["."]


def test_a_file_is_read_on_while_it_grows_also_from_the_middle_of_a_record(tmp_path, read):
    whole = event_file(*(event(step, simple("loss", 1.0)) for step in range(1, 4)))
    for end in range(0, len(whole), 7):
        with (tmp_path / NAME).open("ab") as file:
            file.write(whole[end : end + 7])
        answer = read()
    assert series(answer)["steps"] == [1, 2, 3]
    assert answer["runs"][0]["faults"] == []


def test_a_replaced_file_is_read_anew(tmp_path, read):
    file = tmp_path / NAME
    file.write_bytes(event_file(event(1, simple("loss", 1.0)), event(2, simple("loss", 1.0))))
    assert series(read())["steps"] == [1, 2]
    file.write_bytes(event_file(event(9, simple("loss", 1.0))))
    assert series(read())["steps"] == [9]


def test_a_restarted_training_writes_its_last_steps_again(tmp_path, read):
    first = event_file(start(0), *(event(step, simple("loss", 1.0)) for step in (1, 2, 3)))
    (tmp_path / f"{NAME}.1").write_bytes(first)
    (tmp_path / f"{NAME}.2").write_bytes(event_file(start(2), event(2, simple("loss", 5.0))))
    assert series(read())["steps"] == [1, 2]
    assert series(read())["values"] == [1.0, 5.0]


def test_a_loss_that_diverged_is_shown_as_such(tmp_path, read):
    values = [1.0, math.nan, math.inf, -math.inf]
    (tmp_path / NAME).write_bytes(event_file(*(event(i, simple("loss", value)) for i, value in enumerate(values))))
    loss = json.loads(json.dumps(series(read()), allow_nan=False))
    assert loss["values"] == [1.0, "NaN", "Infinity", "-Infinity"]
    assert loss["max"]["value"] == 1.0


def test_long_series_are_thinned_and_keep_their_extremes_and_their_end(tmp_path, read):
    events = [event(step, simple("loss", 100.0 if step == 777 else step % 10)) for step in range(1500)]
    (tmp_path / NAME).write_bytes(event_file(*events))
    loss = series(read(points=100))
    assert len(loss["steps"]) == len(loss["low"]) == 100
    assert loss["count"] == 1500
    assert loss["steps"][-1] == 1499
    assert max(loss["high"]) == 100.0
    assert min(loss["low"]) == 0.0
    assert loss["max"]["step"] == 777
    assert "steps" not in series(read(points=0))


def test_damage_ends_a_file_and_names_it_but_not_the_others(tmp_path, read):
    good = event_file(event(1, simple("loss", 1.0)))
    bad = bytearray(record(event(2, simple("loss", 2.0))))
    bad[-6] ^= 1
    (tmp_path / NAME).write_bytes(good + bytes(bad) + record(event(3, simple("loss", 3.0))))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / NAME).write_bytes(good)
    answer = read()
    assert series(answer)["steps"] == [1]
    assert answer["runs"][0]["faults"] == [f"{NAME}: the checksum of a record is wrong"]
    assert series(answer, run="other")["steps"] == [1]


def test_a_record_that_is_too_long_is_skipped_without_being_read(tmp_path, read, monkeypatch):
    monkeypatch.setattr("paceline.podtools.files.event_records.MOST_RECORD", 1000)
    huge = record(event(1, block(1, b"image") + block(4, bytes(1001))))
    (tmp_path / NAME).write_bytes(
        event_file(event(1, simple("loss", 1.0))) + huge + record(event(2, simple("loss", 2.0)))
    )
    assert series(read())["steps"] == [1, 2]


def test_event_files_that_are_links_or_pipes_are_not_read(tmp_path, read):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / NAME).write_bytes(event_file(event(1, simple("loss", 1.0))))
    (tmp_path / NAME).symlink_to(outside / NAME)
    (tmp_path / "run").symlink_to(outside)
    os.mkfifo(tmp_path / f"{NAME}.pipe")
    assert read()["runs"] == []


def test_the_points_of_one_run_are_bounded(tmp_path, read, monkeypatch):
    monkeypatch.setattr("paceline.podtools.files.tfevents.MOST_POINTS", 10)
    (tmp_path / NAME).write_bytes(event_file(*(event(step, simple("loss", 1.0)) for step in range(50))))
    answer = read()
    assert series(answer)["count"] == 10
    assert answer["runs"][0]["truncated"]


def test_the_folders_that_were_asked_for_first_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "MOST_KEPT", 30)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NAME).write_bytes(event_file(*(event(step, simple("loss", 1.0)) for step in range(20))))
    root = open_root(str(tmp_path))
    reader = CurveReader(root)
    assert series(reader.read("a"))["count"] == series(reader.read("b"))["count"] == 20
    assert list(reader._folders) == ["b"]
    os.close(root)


@pytest.mark.parametrize("rounds", [10, pytest.param(40, marks=pytest.mark.soak)])
@pytest.mark.parametrize("seed", range(20))
def test_hostile_event_files_crash_nothing(tmp_path, read, seed, rounds):
    chance = random.Random(seed)
    whole = event_file(
        *(event(step, simple("loss", 1.0), tensor("accuracy", 0.5)) for step in range(20)), start(5), event(6)
    )
    for number in range(rounds):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        # Damaged messages with right checksums reach the reader of messages.
        messages = [bytes(chance.randbytes(chance.randrange(60))) for _ in range(3)]
        messages += [_mutated(event(1, tensor("a", 1.0)), chance) for _ in range(10)]
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        (folder / NAME).write_bytes(bytes(data[: chance.randrange(len(data))]))
        (folder / f"{NAME}.2").write_bytes(b"".join(map(record, messages)))
    answer = read()
    assert len(answer["runs"]) == rounds
    json.dumps(answer, allow_nan=False)


def _mutated(data, chance):
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)
