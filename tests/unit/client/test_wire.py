"""One connection and a pool of them, against servers that misbehave; on either event loop."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import uvloop

from paceline.client.http.cluster import HttpCluster, Pool
from paceline.client.http.http1 import MAX_HEAD_BYTES, MAX_HELD_BYTES, Broken, dial, head_of
from paceline.client.http.transport import Unreachable
from paceline.client.interface import PODS
from paceline.client.rest_config import Access
from paceline.errors import BadRequest, HostError
from tests.unit.client.serving import server

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS)
def run(request):
    """Runs a test on an event loop, and not for ever."""

    def on_loop(main):
        async def in_time():
            async with asyncio.timeout(20):
                return await main

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(in_time())

    return on_loop


@dataclass(frozen=True)
class Cut:
    """What is said before the server hangs up."""

    said: bytes


class Script:
    """Answers one request after the other, each with what is next; None hangs up without a word."""

    def __init__(self, *answers, drips=False):
        self.answers = list(answers)
        self.drips = drips
        self.connections = 0
        self.requests = []

    async def __call__(self, reader, writer):
        self.connections += 1
        while True:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            said = self.answers.pop(0)
            if said is None or isinstance(said, Cut):
                writer.write(said.said if said else b"")
                return
            for piece in (said[at : at + 1] for at in range(len(said))) if self.drips else (said,):
                writer.write(piece)
                await writer.drain()
            if not self.answers:
                return


@asynccontextmanager
async def pooled(script):
    async with server(script) as (place, _):
        pool = Pool(place, None, "")
        try:
            yield pool
        finally:
            await pool.close()


async def ask(pool, method="GET"):
    async with pool.exchange(method, head_of(method, "/", [("Host", "h")])) as connection:
        head = await connection.head()
        return head.status, await connection.body()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = {
    "a length": ("GET", OK, (200, b"ok")),
    "no body at all": ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b"")),
    "chunks": ("GET", CHUNKED + b"3\r\none\r\n3;x=y\r\ntwo\r\n0\r\n\r\n", (200, b"onetwo")),
    "headers behind the body": ("GET", CHUNKED + b"1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n", (200, b"a")),
    "nothing to say": ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
    "not changed": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", (304, b"")),
    "the head alone": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", (200, b"")),
    "go on, first": ("PUT", b"HTTP/1.1 100 Continue\r\n\r\n" + OK, (200, b"ok")),
    "a hint, first": ("GET", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK, (200, b"ok")),
    "lines that end as in Unix": ("GET", b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", (200, b"ok")),
}


@pytest.mark.parametrize("drips", [False, True], ids=["at once", "byte by byte"])
@pytest.mark.parametrize(("method", "said", "read"), WHOLE.values(), ids=WHOLE)
def test_an_answer_is_read_to_its_end_and_the_connection_serves_the_next(run, method, said, read, drips):
    script = Script(said, OK, drips=drips)

    async def main():
        async with pooled(script) as pool:
            assert await ask(pool, method) == read
            assert await ask(pool) == (200, b"ok")

    run(main())
    assert script.connections == 1


LAST = {
    "no length": b"HTTP/1.1 200 OK\r\n\r\nok",
    "an encoding that is not chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
    "a goodbye": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "an old version": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
}


@pytest.mark.parametrize("said", LAST.values(), ids=LAST)
def test_a_connection_that_ends_with_its_answer_is_not_asked_again(run, said):
    places = []

    async def once(reader, writer):
        places.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()

    async def main():
        async with pooled(once) as pool:
            assert await ask(pool) == (200, b"ok")
            # A POST would not be sent again.
            assert await ask(pool, "POST") == (200, b"ok")

    run(main())
    assert len(places) == 2


BROKEN = {
    "nothing": (b"", "without an answer"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "in the middle"),
    "a head alone": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "in the middle"),
    "half a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", "in the middle"),
    "chunks without an end": (CHUNKED + b"3\r\none\r\n", "in the middle"),
    "a chunk that is none": (CHUNKED + b"hello\r\n", "not HTTP"),
    "only a hint": (b"HTTP/1.1 100 Continue\r\n\r\n", "in the middle"),
    "garbage": (b"\x15\x03\x01\x00\x02\x02\x16", "not HTTP"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "not HTTP"),
    "a length and chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "not HTTP",
    ),
    "another protocol": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello",
        "not HTTP",
    ),
}


@pytest.mark.parametrize(("said", "why"), BROKEN.values(), ids=BROKEN)
def test_an_answer_that_is_not_whole_is_never_taken_for_one(run, said, why):
    async def main():
        async with pooled(Script(said)) as pool:
            await ask(pool)

    with pytest.raises(Broken, match=why):
        run(main())


ENDLESS = {
    "a head": (b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nX-More: ", b"and more" * 8),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "headers behind the body": (CHUNKED + b"1\r\na\r\n0\r\n", b"X-More: and more\r\n"),
    "what stands behind the length of a chunk": (CHUNKED + b"1;", b"and-more" * 8),
}


@pytest.mark.parametrize(("first", "more"), ENDLESS.values(), ids=ENDLESS)
def test_what_is_no_body_has_a_bound(run, first, more):
    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        while not writer.is_closing():
            writer.write(more)
            await writer.drain()

    async def main():
        async with pooled(endless) as pool:
            await ask(pool)

    with pytest.raises(Broken, match=str(MAX_HEAD_BYTES)):
        run(main())


EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
TOO_MUCH = {
    "a second answer": ("GET", OK + EVIL, (200, b"ok")),
    "half a second answer": ("GET", OK + EVIL[:20], (200, b"ok")),
    "garbage": ("GET", OK + b"\r\n\x00", (200, b"ok")),
    "a body behind a head alone": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + EVIL, (200, b"")),
    "a body where none may be": ("GET", b"HTTP/1.1 204 No Content\r\n\r\n" + EVIL, (204, b"")),
}


@pytest.mark.parametrize(("method", "said", "read"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_nobody_asked_for_does_not_become_the_next_answer(run, method, said, read):
    script = Script(said, OK)

    async def main():
        async with pooled(script) as pool:
            assert await ask(pool, method) == read
            assert await ask(pool, "POST") == (200, b"ok")

    run(main())
    assert script.connections == 2


def test_what_comes_while_nobody_asks_ends_the_connection(run, monkeypatch):
    monkeypatch.setattr("paceline.client.http.cluster.KEEP_SECONDS", 1000.0)
    is_answered, over, connections = asyncio.Event(), asyncio.Event(), []

    async def talks_on(reader, writer):
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await is_answered.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        # Hung up on at once, whatever it is.
        assert await reader.read() == b""
        over.set()

    async def main():
        async with pooled(talks_on) as pool:
            assert await ask(pool, "POST") == (200, b"ok")
            is_answered.set()
            await over.wait()
            assert await ask(pool, "POST") == (200, b"ok")

    run(main())
    assert len(connections) == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_what_may_be_repeated_is_asked_again_when_a_kept_connection_was_closed(run, method):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    script = Script(OK, None, head, OK)

    async def main():
        async with pooled(script) as pool:
            await ask(pool)
            return await ask(pool, method)

    assert run(main()) == (200, b"")
    assert [each.split()[0] for each in script.requests] == ["GET", method, method]


TOO_OFTEN = {
    "POST": ("POST", None, OK),
    "PATCH": ("PATCH", None, OK),
    "more than once": ("PUT", None, None, OK),
    # The server lives, and may have done it.
    "after half an answer": ("PUT", Cut(b"HTTP/1.1 2"), OK),
}


@pytest.mark.parametrize("said", TOO_OFTEN.values(), ids=TOO_OFTEN)
def test_nothing_is_sent_more_often_than_that(run, said):
    method, *answers = said
    script = Script(OK, *answers)

    async def main():
        async with pooled(script) as pool:
            await ask(pool)
            await ask(pool, method)

    with pytest.raises(Broken):
        run(main())
    # The last one was for whoever asks once more.
    assert script.answers == [OK]


def test_a_body_that_nobody_reads_waits_at_the_server(run):
    stuck, piece, count = asyncio.Event(), b"x" * 65536, 512

    async def much(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(piece) * count))
        for _ in range(count):
            writer.write(piece)
            try:
                await asyncio.wait_for(writer.drain(), 0.5)
            except TimeoutError:
                stuck.set()
                await writer.drain()

    async def main():
        async with server(much) as (place, _):
            connection = await dial(place)
            connection.ask(head_of("GET", "/", [("Host", "h")]))
            await connection.head()
            await stuck.wait()
            assert len(await connection.piece()) < 4 * MAX_HELD_BYTES
            rest = len(await connection.body())
            connection.abort()
            return rest

    assert run(main()) > len(piece) * (count - 32)


def test_a_request_that_nobody_takes_waits_too(run):
    stuck, piece, count = asyncio.Event(), b"x" * 65536, 512

    async def slow(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await stuck.wait()
        await reader.readexactly(len(piece) * count)
        writer.write(OK)

    async def main():
        async with server(slow) as (place, _):
            connection = await dial(place)
            connection.ask(head_of("PUT", "/", [("Host", "h"), ("Content-Length", str(len(piece) * count))]))
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(pour(connection))
                done, _ = await asyncio.wait((writing,), timeout=0.5)
                assert not done
                stuck.set()
            body = await connection.body()
            connection.abort()
            return body

    async def pour(connection):
        for _ in range(count):
            await connection.write(piece)

    assert run(main()) == b"ok"


def test_a_connection_that_nobody_asks_is_hung_up(run, monkeypatch):
    monkeypatch.setattr("paceline.client.http.cluster.KEEP_SECONDS", 0.05)

    async def waits(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        assert await reader.read() == b""

    async def main():
        async with server(waits) as (place, finished):
            pool = Pool(place, None, "")
            await ask(pool)
            await finished.wait()
            await pool.close()

    run(main())


def test_more_than_the_bound_wait_for_each_other(run, monkeypatch):
    monkeypatch.setattr("paceline.client.http.cluster.MAX_CONNECTIONS", 2)
    script = Script(*[OK] * 10)

    async def main():
        async with pooled(script) as pool, asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(ask(pool))

    run(main())
    assert script.connections <= 2


def test_an_answer_that_is_left_unread_is_hung_up_on(run):
    async def streams(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"3\r\none\r\n")
        assert await reader.read() == b""

    async def main():
        async with server(streams) as (place, finished):
            pool = Pool(place, None, "")
            async with pool.exchange("GET", head_of("GET", "/", [("Host", "h")])) as connection:
                assert await connection.piece() == b"one"
            await finished.wait()
            await pool.close()

    run(main())


def test_closing_hangs_up_on_whoever_still_waits(run):
    asked = asyncio.Event()

    async def never(reader, _writer):
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()

    async def main():
        async with server(never) as (place, finished), asyncio.TaskGroup() as group:
            pool = Pool(place, None, "")
            waiting = group.create_task(refused(pool))
            await asked.wait()
            await pool.close()
            assert "without an answer" in await waiting
            await finished.wait()

    async def refused(pool):
        with pytest.raises(Broken) as said:
            await ask(pool)
        return str(said.value)

    run(main())


def test_a_server_that_never_answers_is_said_so_and_hung_up_on(run, chance, monkeypatch):
    monkeypatch.setattr("paceline.client.http.cluster.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("paceline.client.http.cluster.MAX_TRIES", 1)

    async def never(reader, _writer):
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""

    async def main():
        async with server(never) as (place, finished), HttpCluster(Access(server=f"http://{place}"), chance) as cluster:
            with pytest.raises(Unreachable, match=f"http://{place} does not answer in time"):
                await cluster.get(PODS, "team", "a")
            await finished.wait()

    run(main())


WRONG = {
    "no scheme": "localhost:6443",
    "another scheme": "ftp://localhost",
    "no host": "https://",
    "a port beyond all": "https://localhost:70000",
    "half an address": "https://[::1",
    "a host that cannot be one": "https://a..b",
}


@pytest.mark.parametrize("url", WRONG.values(), ids=WRONG)
def test_what_is_no_url_is_said_so(run, chance, url):
    async def main():
        async with HttpCluster(Access(server=url, is_insecure=True), chance) as cluster:
            await cluster.get(PODS, "team", "a")

    with pytest.raises(HostError, match="is not a URL that can be reached"):
        run(main())


SMUGGLED = {
    "a line in a value": ("GET", "/", ("X-A", "secret\r\nX-B: 2")),
    "half a line in a value": ("GET", "/", ("X-A", "secret\n")),
    "a zero in a value": ("GET", "/", ("X-A", "secret\0")),
    "what Latin-1 has not": ("GET", "/", ("X-A", "secret\u20ac")),
    "a line in a name": ("GET", "/", ("X-A: 1\r\nX-B", "secret")),
    "a name that is none": ("GET", "/", ("", "secret")),
    "a line in the target": ("GET", "/ HTTP/1.1\r\nX-B: 2\r\n", ("X-A", "1")),
    "a space in the target": ("GET", "/a b", ("X-A", "1")),
    "no target": ("GET", "", ("X-A", "1")),
    "a line in the method": ("GET / HTTP/1.1\r\n", "/", ("X-A", "1")),
}


@pytest.mark.parametrize(("method", "target", "header"), SMUGGLED.values(), ids=SMUGGLED)
def test_no_part_of_a_request_can_become_another(method, target, header):
    with pytest.raises(BadRequest) as said:
        head_of(method, target, [header])
    assert "secret" not in str(said.value)


def test_bytes_of_a_target_and_a_value_arrive_as_they_are():
    assert head_of("GET", "/?a=\xe4", [("X-A", "\xe4\tb")]) == b"GET /?a=\xe4 HTTP/1.1\r\nX-A: \xe4\tb\r\n\r\n"
