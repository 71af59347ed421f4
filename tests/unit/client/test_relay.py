"""Requests and WebSockets that are passed on: both ways, as they come, and never held whole."""

import asyncio
import contextlib
import ssl

import pytest
from websockets.asyncio.server import serve

from paceline.client.http.http1 import Address
from paceline.client.http.reverse_proxy import ProxyRequest, join, kept, pass_on
from paceline.client.http.transport import Unreachable
from tests.unit.client.serving import server

HOST = ("Host", "cluster.test")


class Caller:
    """A client of the server that passes on: what it sends, and what it gets."""

    def __init__(self, *messages):
        self.got = []
        self.news = asyncio.Event()
        self.inbox = asyncio.Queue()
        for message in messages:
            self.inbox.put_nowait(message)

    async def send(self, message):
        self.got.append(message)
        self.news.set()

    @property
    def body(self):
        return b"".join(each.get("body", b"") for each in self.got)

    async def until(self, is_there):
        async with asyncio.timeout(30):
            while not is_there():
                self.news.clear()
                await self.news.wait()


def piece(body, *, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_request_and_its_answer_arrive_as_they_were_sent():
    heads = []

    async def answer(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        heads.append(await reader.readexactly(4))
        writer.write(b"HTTP/1.1 201 Created\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    passing = ProxyRequest(method="PUT", target="/a%2Fb?c=%20", headers=(HOST, ("Content-Length", "4"), ("X-A", "1")))
    async with server(answer) as (place, _):
        caller = Caller(piece(b"da", more=True), piece(b"ta"))
        await pass_on(place, passing, caller.inbox.get, caller.send)

    first, *lines = heads[0].strip().split("\r\n")
    assert first == "PUT /a%2Fb?c=%20 HTTP/1.1"
    assert {"Host: cluster.test", "X-A: 1", "Content-Length: 4", "Connection: close"} <= set(lines)
    assert not [line for line in lines if line.lower().startswith(("user-agent", "accept", "content-type"))]
    assert heads[1] == b"data"
    assert caller.got[0]["status"] == 201
    assert [value for name, value in caller.got[0]["headers"] if name == b"set-cookie"] == [b"a=1", b"b=2"]
    assert caller.body == b"ok"


async def test_an_answer_is_passed_back_while_it_is_still_made():
    go_on = asyncio.Event()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        await writer.drain()
        await go_on.wait()
        writer.write(b"two")
        await writer.drain()

    async with server(answer) as (place, _), asyncio.TaskGroup() as group:
        caller = Caller(piece(b""))
        group.create_task(pass_on(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send))
        await caller.until(lambda: caller.body == b"one")
        go_on.set()

    assert caller.body == b"onetwo"


async def test_a_client_that_hangs_up_is_hung_up_for():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        await writer.drain()
        await reader.read()

    async with server(answer) as (place, finished), asyncio.TaskGroup() as group:
        caller = Caller(piece(b""))
        group.create_task(pass_on(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send))
        await caller.until(lambda: caller.body == b"one")
        caller.inbox.put_nowait({"type": "http.disconnect"})
        async with asyncio.timeout(30):
            await finished.wait()


async def test_an_answer_that_breaks_off_is_not_ended():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        await writer.drain()

    async with server(answer) as (place, _):
        caller = Caller(piece(b""))
        with pytest.raises(Unreachable):
            await pass_on(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send)

    assert caller.body == b"one"
    assert all(each.get("more_body", True) for each in caller.got)


async def test_a_body_without_a_length_is_passed_on_as_it_comes():
    heads, bodies = [], []

    async def answer(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        bodies.append(await reader.readuntil(b"2\r\nda\r\n"))
        caller.inbox.put_nowait(piece(b"ta"))
        bodies.append(await reader.readuntil(b"2\r\nta\r\n0\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    caller = Caller(piece(b"da", more=True))
    async with server(answer) as (place, _):
        await pass_on(place, ProxyRequest(method="POST", target="/", headers=(HOST,)), caller.inbox.get, caller.send)

    assert "Transfer-Encoding: chunked" in heads[0]
    assert caller.body == b"ok"


async def test_an_answer_that_does_not_wait_for_the_body_is_passed_back():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()

    caller = Caller(piece(b"da", more=True))
    passing = ProxyRequest(method="PUT", target="/", headers=(HOST, ("Content-Length", "1000000")))
    async with server(answer) as (place, _):
        await pass_on(place, passing, caller.inbox.get, caller.send)

    assert (caller.got[0]["status"], caller.body) == (413, b"no")


async def test_the_head_alone_is_passed_back_with_its_length():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        await reader.read()

    caller = Caller(piece(b""))
    async with server(answer) as (place, _):
        await pass_on(place, ProxyRequest(method="HEAD", target="/", headers=(HOST,)), caller.inbox.get, caller.send)

    assert (b"content-length", b"1000") in caller.got[0]["headers"]
    assert caller.got[-1] == {"type": "http.response.body", "body": b""}


@pytest.mark.parametrize("relay", [pass_on, join])
async def test_nobody_there_is_said_with_the_place(relay, unused_tcp_port):
    place, caller = Address(address="127.0.0.1", port=unused_tcp_port), Caller(piece(b""))

    with pytest.raises(Unreachable, match=f"^dial tcp 127.0.0.1:{unused_tcp_port}: connect: "):
        await relay(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send)

    assert caller.got == []


def test_what_concerns_one_connection_only_is_left_out():
    headers = [
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "5"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "websocket"),
        ("TE", "trailers"),
        ("X-Stays", "2"),
    ]

    assert kept(headers) == (("X-Stays", "2"),)


@contextlib.asynccontextmanager
async def lines(answer, **options):
    async with serve(answer, "127.0.0.1", 0, **options) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield Address(address="127.0.0.1", port=port, is_tls="ssl" in options)


async def test_a_pod_with_a_certificate_of_its_own_is_reached_and_no_authority_is_asked_for(tls_files, monkeypatch):
    """Those of the system are some hundred, and reading them takes longer than a request."""
    read = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: read.append("authorities"))

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    async def greet(line):
        await line.send("hi")

    asking, joining = Caller(piece(b"")), Caller()
    async with server(answer, tls_files) as (place, _):
        await pass_on(place, ProxyRequest(target="/", headers=(HOST,)), asking.inbox.get, asking.send)
    async with lines(greet, ssl=tls_files) as place:
        await join(place, ProxyRequest(target="/", headers=(HOST,)), joining.inbox.get, joining.send)

    assert (asking.body, joining.got[1].get("text"), read) == (b"ok", "hi", [])


async def test_a_websocket_is_passed_on_both_ways_to_its_end():
    seen = []

    async def echo(line):
        seen.append((line.request.headers["Host"], line.request.path, line.request.headers["X-A"]))
        async for message in line:
            await line.send(message)
            if message == "bye":
                await line.close(4001, "done")

    passing = ProxyRequest(
        target="/k?x=1", headers=(HOST, ("X-A", "1"), ("Sec-WebSocket-Key", "no")), protocols=("echo",)
    )
    async with lines(echo, subprotocols=["echo"]) as place:
        caller = Caller(
            {"type": "websocket.receive", "text": "hi"},
            {"type": "websocket.receive", "bytes": b"\x00\x01"},
            {"type": "websocket.receive", "text": "bye"},
        )
        await join(place, passing, caller.inbox.get, caller.send)

    assert seen == [("cluster.test", "/k?x=1", "1")]
    assert caller.got == [
        {"type": "websocket.accept", "subprotocol": "echo"},
        {"type": "websocket.send", "text": "hi"},
        {"type": "websocket.send", "bytes": b"\x00\x01"},
        {"type": "websocket.send", "text": "bye"},
        {"type": "websocket.close", "code": 4001, "reason": "done"},
    ]


async def test_a_client_that_closes_its_websocket_closes_the_other():
    ended = asyncio.Event()

    async def wait(line):
        await line.wait_closed()
        assert (line.close_code, line.close_reason) == (4002, "enough")
        ended.set()

    async with lines(wait) as place:
        caller = Caller({"type": "websocket.disconnect", "code": 4002, "reason": "enough"})
        await join(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send)
        async with asyncio.timeout(30):
            await ended.wait()


async def test_a_websocket_that_is_refused_there_is_refused_here_with_the_same_answer():
    def refuse(line, _request):
        return line.respond(403, "not you")

    async with lines(lambda _line: None, process_request=refuse) as place:
        caller = Caller()
        await join(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, caller.send)

    head, body = caller.got
    assert (head["type"], head["status"]) == ("websocket.http.response.start", 403)
    assert body["body"] == b"not you"


@pytest.mark.parametrize("leaves_at", ["websocket.accept", "websocket.send", "websocket.close"])
async def test_a_client_that_has_just_left_is_no_failure(leaves_at):
    """It may go between any two messages; the server then refuses to send to it."""
    ended = asyncio.Event()

    async def once(line):
        await line.send("last words")
        await line.close()
        ended.set()

    caller = Caller()

    async def send(message):
        if message["type"] == leaves_at:
            raise ConnectionResetError
        await caller.send(message)

    async with lines(once) as place:
        await join(place, ProxyRequest(target="/", headers=(HOST,)), caller.inbox.get, send)
        async with asyncio.timeout(30):
            await ended.wait()

    assert leaves_at not in [each["type"] for each in caller.got]
