"""A log that is cut into files reads as one, and what is kept of a flood is its end, exactly."""

import pytest

from paceline.host.effects import real_world
from paceline.node.logs import logs
from paceline.node.logs.logs import LogQuery, RotatedLog, end_of_log, read_log
from paceline.node.runtime import cri_log, shim

FILES = real_world().files
LINE = b"2030-01-01T00:00:00.%09dZ stdout F line %05d\n"
LENGTH = len(LINE % (0, 0))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cri_log, "FILE_BYTES", 10 * LENGTH)
    monkeypatch.setattr(cri_log, "FILES", 3)


def fill(folder, count):
    log = cri_log.CriLog(str(folder / shim.LOG))
    for number in range(count):
        log.write(LINE % (number, number))


async def shown(folder, **query):
    text = b"".join([chunk async for chunk in read_log(FILES, folder, LogQuery(**query))])
    return [int(line.split()[-1]) for line in text.splitlines()]


async def test_a_log_of_several_files_reads_as_one(tmp_path):
    fill(tmp_path, 25)

    assert len(list(tmp_path.iterdir())) == 3
    assert await shown(tmp_path) == list(range(25))


async def test_the_oldest_file_goes_when_there_are_too_many(tmp_path):
    fill(tmp_path, 57)

    assert len(list(tmp_path.iterdir())) == 3
    assert await shown(tmp_path) == list(range(30, 57))


@pytest.mark.parametrize("lines", [0, 1, 3, 7, 8, 17, 26, 27, 99])
async def test_the_last_lines_are_found_across_files(tmp_path, lines):
    fill(tmp_path, 57)

    assert await shown(tmp_path, tail=lines) == list(range(30, 57))[-lines or 57 :]


async def test_a_reader_that_is_overtaken_learns_where_the_log_begins_now(tmp_path):
    (tmp_path / shim.LOG).touch()
    pages = RotatedLog(FILES, tmp_path)
    fill(tmp_path, 57)

    assert pages.read_range(0, LENGTH) == b""
    assert pages.skip(0) == 30 * LENGTH
    assert pages.read_range(30 * LENGTH, LENGTH) == LINE % (30, 30)
    assert end_of_log(pages) == 57 * LENGTH


@pytest.mark.parametrize("read", [1, 5, 10, 11, 29])
async def test_a_follower_that_is_overtaken_sees_every_line_once_from_there_on(tmp_path, monkeypatch, read):
    monkeypatch.setattr(logs, "CHUNK", LENGTH)
    log = cri_log.CriLog(str(tmp_path / shim.LOG))
    for number in range(30):
        log.write(LINE % (number, number))
    following = read_log(FILES, tmp_path, LogQuery(follow=True))
    seen = [int((await anext(following)).split()[-1]) for _ in range(read)]
    for number in range(30, 57):
        log.write(LINE % (number, number))
    (tmp_path / shim.EXIT).touch()

    seen += [int(chunk.split()[-1]) async for chunk in following]

    assert seen == [*range(read), *range(30, 57)]


async def test_reading_goes_on_in_a_file_that_was_begun_meanwhile(tmp_path):
    log = cri_log.CriLog(str(tmp_path / shim.LOG))
    pages = RotatedLog(FILES, tmp_path)
    read = b""
    for number in range(25):
        log.write(LINE % (number, number))
        read += pages.read_range(len(read), 1 << 20)

    assert read == b"".join(LINE % (number, number) for number in range(25))


def test_other_files_beside_a_log_are_not_pages(tmp_path):
    for name in ("log.old", "log.", "logs", "lock"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / shim.LOG).write_bytes(LINE % (0, 0))

    assert RotatedLog(FILES, tmp_path).size() == LENGTH
