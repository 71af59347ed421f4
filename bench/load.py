"""Clients that cost less than any server: raw sockets over TLS, requests as ready-made bytes, answers counted only."""

import asyncio
import contextlib
import re
import shutil
import socket
import ssl
import subprocess
import time

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
READ_BYTES = 1 << 20
PIPELINED = 16


def request(method, path, body=b"", *, host, token=""):
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n"
    return head.encode() + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def unchecked():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextlib.contextmanager
def connection(port):
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with unchecked().wrap_socket(plain) as sock:
            yield sock


def ask(sock, wanted):
    """Send one request and give the body of its answer."""
    sock.sendall(wanted)
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += sock.recv(READ_BYTES)
    assert data.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), bytes(data[:300])
    length = int(LENGTH.search(data)[1])
    parts, size = [bytes(data[end + 4 :])], len(data) - end - 4
    while size < length:
        parts.append(sock.recv(READ_BYTES))
        size += len(parts[-1])
    return b"".join(parts)


def gets_per_second(subject, path, seconds):
    """Ask for the same thing again and again, as fast as the server can."""
    if wrk := shutil.which("wrk"):
        return wrk_rate(wrk, f"https://{subject.host}{path}", token=subject.token, seconds=seconds)
    wanted = subject.request("GET", path)
    with connection(subject.port) as sock:
        one = len(ask(sock, wanted))
        sock.sendall(wanted)
        answer = sock.recv(READ_BYTES)
        while len(answer) < one:
            answer += sock.recv(READ_BYTES)
        size, many, count = len(answer) * PIPELINED, wanted * PIPELINED, 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            sock.sendall(many)
            left = size
            while left > 0:
                left -= len(sock.recv(READ_BYTES))
            count += PIPELINED
        return count / (time.perf_counter() - start)


def wrk_rate(wrk, url, *, token, seconds):
    command = [wrk, "-t1", "-c16", f"-d{seconds}s", "-H", f"Authorization: Bearer {token}", url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in said, said
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


class Counting(asyncio.Protocol):
    """Sends requests one after the other, the next when the answer to the last is there."""

    def __init__(self, requests, done):
        self.requests, self.done, self.left = requests, done, 0
        self.head = bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def ask(self):
        wanted = next(self.requests, None)
        if wanted is None:
            self.done.set_result(None)
        else:
            self.transport.write(wanted)

    def data_received(self, data):
        if self.left:
            self.left -= len(data)
        else:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self.head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), bytes(self.head[:600])
            self.left = int(LENGTH.search(self.head)[1]) - (len(self.head) - end - 4)
            self.head.clear()
        if not self.left:
            self.ask()


class Listening(asyncio.Protocol):
    """Counts the lines that it is told."""

    def __init__(self, wanted, lines, done):
        self.wanted, self.lines, self.done, self.is_open = wanted, lines, done, asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.wanted)

    def data_received(self, data):
        self.is_open.set()
        self.lines -= data.count(b'{"type":"ADDED"')
        if self.lines <= 0 and not self.done.done():
            self.done.set_result(None)


async def send_all(port, requests, clients, meter=lambda: 0.0):
    """Send requests from so many clients at once; gives seconds, and what a meter has run meanwhile."""
    loop, shared = asyncio.get_running_loop(), iter(requests)
    dones = [loop.create_future() for _ in range(clients)]
    made = [
        await loop.create_connection(lambda done=done: Counting(shared, done), "127.0.0.1", port, ssl=unchecked())
        for done in dones
    ]
    before, start = meter(), time.perf_counter()
    for _, protocol in made:
        protocol.ask()
    await asyncio.gather(*dones)
    seconds, used = time.perf_counter() - start, meter() - before
    for transport, _ in made:
        transport.close()
    return seconds, used


async def fan_out(subject, listen, requests, *, watchers, clients):
    """Let many follow what others write; gives seconds until the last of them knows all of it, and the CPU it took."""
    loop = asyncio.get_running_loop()
    dones = [loop.create_future() for _ in range(watchers)]
    made = [
        await loop.create_connection(
            lambda done=done: Listening(listen, len(requests), done), "127.0.0.1", subject.port, ssl=unchecked()
        )
        for done in dones
    ]
    for _, protocol in made:
        await protocol.is_open.wait()
    before, start = subject.cpu(), time.perf_counter()
    await send_all(subject.port, requests, clients)
    await asyncio.gather(*dones)
    seconds, used = time.perf_counter() - start, subject.cpu() - before
    for transport, _ in made:
        transport.close()
    return seconds, used
