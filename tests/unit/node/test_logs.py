"""A log is read back byte for byte, from any point, while it grows."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.errors import BadRequest
from paceline.node.logs import logs
from paceline.node.logs.logs import LogQuery, RotatedLog, log_query, read_log
from paceline.node.runtime import cri_log, shim
from paceline.node.runtime.cri_log import CriStream, stamp
from paceline.testing.sim.effects import SimFiles
from tests.unit.node.pods import NOW

FOLDER = Path("/pods/x")
START = 1_893_456_000  # 2030-01-01 in seconds since the epoch.


def written(*writes):
    """Give the log of a container that wrote these pieces, one per second; a piece is bytes, or (stream, bytes)."""
    streams = {name: CriStream(name, -1) for name in ("stdout", "stderr")}
    data = b""
    for second, piece in enumerate(writes):
        name, text = piece if isinstance(piece, tuple) else ("stdout", piece)
        data += streams[name].take(text, stamp((START + second) * 10**9).encode())
    return data + b"".join(stream.flush(stamp((START + len(writes)) * 10**9).encode()) for stream in streams.values())


def files_with(data, *, is_over=True):
    files = SimFiles()
    files.make_folder(FOLDER)
    files.overwrite(FOLDER / shim.LOG, data)
    if is_over:
        files.write(FOLDER / shim.EXIT, b"{}")
    return files


def read(data, **query):
    async def collect():
        chunks = read_log(files_with(data), FOLDER, LogQuery(**query))
        return b"".join([chunk async for chunk in chunks])

    return asyncio.run(collect())


LINES = st.lists(st.binary(max_size=60).map(lambda text: text.replace(b"\n", b"") + b"\n"), max_size=30)
PIECES = st.lists(st.binary(max_size=200), max_size=20)


@given(PIECES)
@example([b"x" * 100_000, b"\n" * 3, b"y" * 16_384 + b"\n" + b"z" * 16_385 + b"\n", b"\r\x00\xff"])
def test_what_a_container_wrote_is_what_is_read(pieces):
    assert read(written(*pieces)) == b"".join(pieces)


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=50)), max_size=20))
def test_each_stream_keeps_its_order(pieces):
    entries = [entry.split(b" ", 3) for entry in written(*pieces).split(b"\n")[:-1]]
    for name in ("stdout", "stderr"):
        parts = [(tag, content) for _, stream, tag, content in entries if stream == name.encode()]
        whole = b"".join(content + (b"\n" if tag == b"F" else b"") for tag, content in parts)
        assert whole == b"".join(text for stream, text in pieces if stream == name)


@given(st.binary(max_size=100_000))
def test_no_entry_is_longer_than_its_limit(data):
    assert all(len(entry) <= logs.HEAD + cri_log.LINE_LIMIT for entry in written(data).split(b"\n"))


@given(PIECES, st.integers(0, 40))
@example([b"a\nb"], 1)
@example([b"a\nb\n"], 1)
@example([b"x" * 50_000 + b"\nlast\n"], 2)
@example([b"x" * 400_000 + b"\nlast"], 2)
def test_the_last_lines_are_exactly_those(pieces, count):
    """H-65, S-44"""
    whole = b"".join(pieces)
    lines = whole.split(b"\n")
    ends = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])

    assert read(written(*pieces), tail=count) == b"".join(ends[len(ends) - count :] if count <= len(ends) else ends)


def test_the_last_lines_of_a_large_log_are_found_from_its_end():
    class Counted(SimFiles):
        taken = 0

        def read_range(self, path, offset, limit):
            data = super().read_range(path, offset, limit)
            self.taken += len(data)
            return data

    files = Counted()
    files.make_folder(FOLDER)
    text = b"".join(b"line %d\n" % number for number in range(200_000))
    files.overwrite(FOLDER / shim.LOG, written(text))

    offset = logs.tail_offset(RotatedLog(files, FOLDER), files.size(FOLDER / shim.LOG), 10)

    assert files.read(FOLDER / shim.LOG)[offset:].count(b"\n") == 10
    assert files.taken < files.size(FOLDER / shim.LOG) / 10


@given(LINES, st.integers(-1, 31))
def test_a_log_is_read_from_a_moment_on(lines, second):
    """S-43"""
    since = datetime.fromtimestamp(START + second, UTC)

    assert read(written(*lines), since=since) == b"".join(lines[max(second, 0) :])


@given(LINES, st.integers(1, 500))
def test_no_more_bytes_are_given_than_asked_for(lines, limit):
    assert read(written(*lines), limit_bytes=limit) == b"".join(lines)[:limit]


def test_timestamps_stand_at_the_start_of_each_line_and_nowhere_else():
    data = written(b"a\n", b"x" * 20_000, b"\nb\n")

    assert read(data, timestamps=True).split(b"\n") == [
        b"2030-01-01T00:00:00.000000000Z a",
        b"2030-01-01T00:00:01.000000000Z " + b"x" * 20_000,
        b"2030-01-01T00:00:02.000000000Z b",
        b"",
    ]


def test_an_entry_that_is_being_written_is_not_shown_in_parts():
    whole = written(b"one\n", b"two\n")

    assert read(whole[:-3]) == b"one\n"
    assert read(whole[:-3], tail=1) == b"one\n"


def test_a_log_that_is_not_there_is_empty():
    async def collect():
        return [chunk async for chunk in read_log(SimFiles(), FOLDER, LogQuery(tail=3))]

    assert asyncio.run(collect()) == []


async def test_a_follower_sees_what_comes_and_ends_with_the_container():
    files = files_with(written(b"one\n"), is_over=False)
    follower = read_log(files, FOLDER, LogQuery(follow=True))

    assert await anext(follower) == b"one\n"
    files.append(FOLDER / shim.LOG, written(b"two\n")[:20])
    files.append(FOLDER / shim.LOG, written(b"two\n")[20:])
    assert await anext(follower) == b"two\n"
    # The last words and the end come together; the words first.
    files.append(FOLDER / shim.LOG, written(b"bye\n"))
    files.write(FOLDER / shim.EXIT, b"{}")
    assert [chunk async for chunk in follower] == [b"bye\n"]


async def test_the_last_words_are_seen_although_the_end_comes_between_two_looks():
    class Sudden(SimFiles):
        """The container says a last word and ends right after it was found to have nothing to say."""

        def read_range(self, path, offset, limit):
            data = super().read_range(path, offset, limit)
            if not data and not self.exists(FOLDER / shim.EXIT):
                self.append(path, written(b"bye\n"))
                self.write(FOLDER / shim.EXIT, b"{}")
            return data

    files = Sudden()
    files.make_folder(FOLDER)
    files.overwrite(FOLDER / shim.LOG, written(b"one\n"))

    chunks = [chunk async for chunk in read_log(files, FOLDER, LogQuery(follow=True))]

    assert chunks == [b"one\n", b"bye\n"]


def test_the_query_is_read_as_kubernetes_spells_it():
    query = {"follow": "true", "tailLines": "5", "limitBytes": "9", "timestamps": "true", "previous": "false"}

    assert log_query(query, NOW) == LogQuery(follow=True, tail=5, limit_bytes=9, timestamps=True)
    assert log_query({"sinceSeconds": "60"}, NOW).since == NOW - timedelta(seconds=60)
    assert log_query({"sinceTime": "2030-01-01T12:00:00Z"}, NOW).since == NOW


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"tailLines": "many"},
        {"limitBytes": "0"},
        {"sinceSeconds": "0"},
        {"sinceTime": "yesterday"},
        {"follow": "perhaps"},
    ],
)
def test_a_query_that_cannot_be_read_is_refused_by_name(query):
    (name,) = query
    with pytest.raises(BadRequest, match=name):
        log_query(query, NOW)
