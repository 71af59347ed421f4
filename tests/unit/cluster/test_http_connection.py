"""What a connection takes: a bounded head in a bounded time, and a clean answer to everything else."""

import asyncio
import contextlib
import json
import logging

import pytest

from paceline.host import http_connection as subject
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.connection_limits import HEAD_BYTES, HEAD_FIELDS, Bounds, ConnectionLimiter

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


async def app(scope, receive, send):
    """Answers with the length of the path, after the body unless it is not asked for."""
    size = 0
    while scope["path"] != "/unread":
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    seen = {"path": len(scope["raw_path"]), "body": size, "headers": len(scope["headers"])}
    if scope["path"] == "/who":
        seen = {"client": scope["client"][0], "scheme": scope["scheme"]}
    body = json.dumps(seen).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving(front=None):
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    started = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(serve(app, sock, tls=None, started=started, limiter=front))
        await started.wait()
        try:
            yield port
        finally:
            task.cancel()


@pytest.fixture
async def port():
    async with serving() as port:
        yield port


async def said(port, *pieces, reads_on=False):
    """Everything that is answered to some bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if reads_on:
                return await reader.readuntil(b"}")
            return await reader.read()
        return b""
    finally:
        writer.close()


def status_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


REFUSED = {
    "fields": (GET + b"X: y\r\n" * HEAD_FIELDS + b"\r\n", 431),
    "small fields that are large together": (GET + (b"X: " + b"y" * 1000 + b"\r\n") * 66 + b"\r\n", 431),
    "one field": (GET + b"X: " + b"y" * HEAD_BYTES + b"\r\n\r\n", 431),
    "one name": (GET + b"X" * (HEAD_BYTES + 1) + b": y\r\n\r\n", 431),
    "a URL": (b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "a head without end": (GET + b"X: " + b"y" * (1024 * 1024), 431),
    "fields without end": (GET + b"X: y\r\n" * 100_000, 431),
    "a URL without end": (b"GET /" + b"a" * (1024 * 1024), 414),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400),
    "a length that is no number": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ten\r\n\r\n", 400),
    "a path that is no URL": (b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_request_is_refused_with_a_status(port, case, caplog):
    sent, code = REFUSED[case]
    with caplog.at_level(logging.INFO):
        answered, body = status_of(await said(port, sent))

    assert (answered, body["code"], body["kind"]) == (code, code, "Status")
    # Anyone can send this: it must not fill the log.
    assert caplog.records == []


async def test_a_large_head_within_the_bounds_is_taken(port):
    fields = (b"X: " + b"y" * 600 + b"\r\n") * (HEAD_FIELDS - 1)
    answer = await said(port, GET + fields + b"\r\n", reads_on=True)

    assert status_of(answer)[1]["headers"] == HEAD_FIELDS


async def test_a_head_in_single_bytes_is_read(port):
    sent = b"GET /abc HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
    answer = await said(port, *(sent[at : at + 1] for at in range(len(sent))), reads_on=True)

    assert status_of(answer)[1] == {"path": 4, "body": 2, "headers": 2}


async def test_what_a_client_says_about_itself_is_not_believed(port):
    forwarded = b"X-Forwarded-For: 10.9.8.7\r\nX-Forwarded-Proto: https\r\n\r\n"
    answer = await said(port, b"GET /who HTTP/1.1\r\nHost: a\r\n" + forwarded, reads_on=True)

    assert status_of(answer)[1] == {"client": "127.0.0.1", "scheme": "http"}


async def test_several_requests_in_one_piece_are_answered_in_order(port):
    answer = await said(port, (GET + b"\r\n") * 60 + GET + b"Connection: close\r\n\r\n")

    assert answer.count(b"HTTP/1.1 200") == 61


async def test_requests_without_end_in_one_piece_are_cut_off(port):
    answer = await said(port, (GET + b"\r\n") * 5000)

    assert answer.count(b"HTTP/1.1 200") < 5000


async def test_a_large_body_after_a_head_is_read(port):
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n"
    answer = await said(port, head + b"x" * 3_000_000, reads_on=True)

    assert status_of(answer)[1]["body"] == 3_000_000


async def test_small_chunks_are_read(port):
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await said(port, head + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n", reads_on=True)

    assert status_of(answer)[1]["body"] == 50_000


async def test_trailers_without_end_are_cut_off(port):
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"

    assert b" 200 " not in await said(port, head, b"X: " + b"y" * (16 * HEAD_BYTES))


async def test_a_body_that_nobody_reads_is_not_taken_without_end(port):
    head = b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n"
    answer = await said(port, head, *[b"x" * HEAD_BYTES] * 200)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"G", GET, GET + b"X: y", b"\r\n\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch, sent):
    monkeypatch.setattr(subject, "HEAD_SECONDS", 0.05)
    async with asyncio.timeout(10), serving() as port:
        answer = await said(port, sent)

    assert answer == b"" if not sent else status_of(answer)[0] == 408


async def test_a_head_that_trickles_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(subject, "HEAD_SECONDS", 0.2)
    async with asyncio.timeout(10), serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        # Only until the answer: what is written to a closed connection resets it, and reading on would fail.
        answering = asyncio.ensure_future(reader.read(4096))
        while not answering.done():
            with contextlib.suppress(ConnectionError):
                writer.write(b"X: y\r\n")
                await writer.drain()
            await asyncio.wait((answering,), timeout=0.02)
        writer.close()

    assert status_of(answering.result())[0] == 408


async def test_a_second_head_has_its_own_time(monkeypatch):
    monkeypatch.setattr(subject, "HEAD_SECONDS", 0.3)
    async with asyncio.timeout(10), serving() as port:
        answer = await said(port, GET + b"\r\n" + GET)

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in answer


async def test_half_sent_requests_give_way_to_a_client_that_behaves():
    front = ConnectionLimiter(Bounds(all=10, local=8, peer=4))
    async with serving(front) as port:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        for _, writer in opened:
            with contextlib.suppress(ConnectionError):
                writer.write(GET)
                await writer.drain()

        answer = await said(port, GET + b"\r\n", reads_on=True)

        assert status_of(answer)[0] == 200
        assert front.count <= 8
        for _, writer in opened:
            writer.close()


async def test_no_place_is_left_behind():
    front = ConnectionLimiter(Bounds(all=100, local=100, peer=100))
    async with serving(front) as port:
        for sent in (GET + b"\r\n", GET + b"Connection: close\r\n\r\n", b"nonsense\r\n\r\n", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            await writer.drain()
            writer.close()
            await reader.read()
        async with asyncio.timeout(10):
            while front.count:
                await asyncio.wait((asyncio.ensure_future(asyncio.to_thread(int)),))


async def test_a_websocket_does_not_end_as_an_idle_connection_does(port, monkeypatch):
    """A terminal in which nobody types is silent for longer than an idle connection may be."""
    upgraded = []
    upgrade = subject.ServerConnection.handle_websocket_upgrade

    def noted(connection):
        upgraded.append(connection)
        upgrade(connection)

    monkeypatch.setattr(subject.ServerConnection, "handle_websocket_upgrade", noted)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        writer.write(GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + key + b"\r\n")
        await reader.readline()
        (connection,) = upgraded
        assert connection.timeout_keep_alive_task is None
    finally:
        writer.close()


WEBSOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
WEBSOCKET += b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
HALF_OPEN = {
    "with a body": GET.replace(b"GET", b"PUT") + WEBSOCKET + b"Content-Length: 4\r\n\r\nabcd",
    "with a long line": GET + WEBSOCKET + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
    "with a long URL": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n" + WEBSOCKET + b"\r\n",
}


@pytest.mark.parametrize("case", HALF_OPEN)
async def test_a_websocket_that_cannot_be_opened_is_refused(port, monkeypatch, case):
    """Otherwise it would stay as it is: no timer is left, and it counts as busy."""
    monkeypatch.setattr(subject, "LINGER_SECONDS", 0.1)
    async with asyncio.timeout(10):
        answer = await said(port, HALF_OPEN[case])

    assert status_of(answer)[0] == 400


async def test_trailers_are_no_headers(port):
    """They come after the gate has seen the head, or before, as the pieces happen to arrive."""
    head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailers = b"Host: b\r\nAuthorization: Bearer x\r\n"

    answer = await said(port, head + b"1\r\na\r\n0\r\n" + trailers + b"\r\n")

    assert status_of(answer) == (200, {"path": 1, "body": 1, "headers": 3})


async def test_trailers_are_bounded(port):
    head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert await said(port, head + b"0\r\n" + b"X: y\r\n" * (HEAD_FIELDS + 1) + b"\r\n") == b""
