"""Stands in for ssh, pdsh and sshd between the members of one job.

A program of its own that travels into the user's image as text, under three names: standard library only, and nothing
that Python 3.7 does not have. Beside it lie `hosts.json` (host → port) and `key`, which only members of this job have.

agent serve --port=N [--bind=HOST]   waits, runs what a member with the key asks for, and passes output and exit code on
ssh [options] HOST COMMAND…          runs a command at a member; ends with its exit code, or 255
pdsh [options] -w HOSTS COMMAND…     the same at several members at once; %n becomes a member's number, %h its
                                     name, and %% a %

Both sides prove that they have the key, by answering a question that is new each time; the key itself never travels.
What follows is neither hidden nor sealed, as with rsh: members' own traffic is not either.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import IO

FOLDER = Path(__file__).parent
# Members start at different moments; a launcher is often the first.
PATIENCE_SECONDS = 300.0
RETRY_SECONDS = 0.2
# How long a stranger may take to show the key.
GREETING_SECONDS = 10.0
GRACE_SECONDS = 5.0
HANG_UP_SECONDS = 60.0
CHUNK = 64 * 1024
MAX_WORDS = 4 * 1024 * 1024
BROKEN = 255
STDOUT, STDERR, EXIT, STDIN, END, SIGNAL = b"o", b"e", b"x", b"i", b"f", b"s"
# Options of ssh and of pdsh that are followed by a word of their own.
SSH_TAKES = frozenset("BbcDEeFIiJLlmOopQRSWw")
PDSH_TAKES = frozenset("lftuRwxg")


class Wire:
    """Messages over a connection: one byte says which sort, four how long."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._sending = threading.Lock()

    def send(self, sort: bytes, data: bytes = b"") -> None:
        with self._sending:
            self.connection.sendall(sort + len(data).to_bytes(4, "big") + data)

    def receive(self) -> tuple[bytes, bytes]:
        """Give the next message; EOFError when the other side has gone."""
        sort, size = self._exactly(1), int.from_bytes(self._exactly(4), "big")
        if size > MAX_WORDS:
            raise EOFError
        return sort, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            data = self.connection.recv(min(size, CHUNK))
            if not data:
                raise EOFError
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def meet(self, me: bytes, other: bytes) -> None:
        """Show that this side has the key, and see that the other side has it; PermissionError when it has not."""
        key = (FOLDER / "key").read_bytes().strip()
        question = secrets.token_bytes(32)
        self.send(b"q", question)
        asked = self.receive()[1]
        if len(asked) != len(question) or asked == question:
            raise PermissionError
        self.send(b"a", _answer(key, me, asked, question))
        if not hmac.compare_digest(self.receive()[1], _answer(key, other, question, asked)):
            raise PermissionError


def _answer(key: bytes, who: bytes, asked: bytes, own: bytes) -> bytes:
    return hmac.new(key, who + asked + own, sha256).digest()


class Visit(socketserver.BaseRequestHandler):
    """One command that another member asks for."""

    def handle(self) -> None:
        """Let in who has the key, run one command, and end what is left of it when they go."""
        wire = Wire(self.request)
        try:
            self.request.settimeout(GREETING_SECONDS)
            wire.meet(b"agent", b"member")
            asked = json.loads(wire.receive()[1])
            self.request.settimeout(None)
        except (OSError, EOFError, ValueError):
            return
        process = subprocess.Popen(  # noqa: S602 - the caller may run anything here: that is what it is for
            asked["command"],
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        obeying = threading.Thread(target=_obey, args=(wire, process), daemon=True)
        obeying.start()
        try:
            _pump(process, wire)
            wire.send(EXIT, str(_code(process.wait())).encode())
        except OSError:
            _end(process)
        # The caller hangs up first: closing on words of theirs that nobody has read would take back our last ones.
        obeying.join(HANG_UP_SECONDS)


def _obey(wire: Wire, process: subprocess.Popen[bytes]) -> None:
    """Pass input and signals on; when the caller goes, what it started goes too."""
    stdin = process.stdin
    try:
        while True:
            sort, data = wire.receive()
            if sort == SIGNAL:
                _signal(process, int(data))
            elif sort == END and stdin:
                stdin.close()
            elif sort == STDIN and stdin and not stdin.closed:
                _write(stdin, data)
    except (OSError, EOFError, ValueError):
        _end(process)


def _write(stdin: IO[bytes], data: bytes) -> None:
    try:
        stdin.write(data)
        stdin.flush()
    except OSError:
        stdin.close()


def _pump(process: subprocess.Popen[bytes], wire: Wire) -> None:
    """Send output as it comes, until the command has ended and nothing more is there.

    A command may leave a daemon behind that keeps the pipes open, as mpirun's does: the command's end counts.
    """
    sorts = {stream: sort for stream, sort in ((process.stdout, STDOUT), (process.stderr, STDERR)) if stream}
    while sorts:
        has_ended = process.poll() is not None
        ready = select.select(list(sorts), [], [], 0.0 if has_ended else 0.1)[0]
        if has_ended and not ready:
            return
        for stream in ready:
            data = os.read(stream.fileno(), CHUNK)
            if data:
                wire.send(sorts[stream], data)
            else:
                del sorts[stream]


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _code(code: int) -> int:
    return code if code >= 0 else 128 - code


class Agent(socketserver.ThreadingTCPServer):
    """The door of one member."""

    allow_reuse_address = True
    daemon_threads = True
    # All members of a large job may come at once.
    request_queue_size = 1024


def serve(words: list[str]) -> int:
    """Wait for other members until told to stop."""
    options = dict(word.lstrip("-").split("=", 1) for word in words)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with Agent((_address(options.get("bind", "")), int(options["port"])), Visit) as agent:
        agent.serve_forever()
    return 0


def _address(host: str) -> str:
    """Give the address of a name of this member; all addresses when the name is not known yet."""
    try:
        return socket.gethostbyname(host) if host else ""
    except OSError:
        return ""


class Call:
    """A command at one member."""

    def __init__(self, host: str, command: str) -> None:
        self.host = host
        self.wire = Wire(_connected(host))
        self.wire.meet(b"member", b"agent")
        self.wire.send(b"c", json.dumps({"command": command}).encode())

    def follow(self, out: IO[bytes], err: IO[bytes], prefix: bytes = b"") -> int:
        """Pass output on until the command ends, and give its exit code."""
        kept = {STDOUT: b"", STDERR: b""}
        streams = {STDOUT: out, STDERR: err}
        while True:
            sort, data = self.wire.receive()
            if sort == EXIT:
                for each, rest in kept.items():
                    _say(streams[each], prefix + rest + b"\n" if rest else b"")
                return int(data)
            if not prefix:
                _say(streams[sort], data)
                continue
            # Lines of several members stay whole.
            *lines, kept[sort] = (kept[sort] + data).split(b"\n")
            _say(streams[sort], b"".join(prefix + line + b"\n" for line in lines))

    def feed(self, source: IO[bytes]) -> None:
        """Pass input on until it ends."""
        try:
            while True:
                data = os.read(source.fileno(), CHUNK)
                self.wire.send(STDIN if data else END, data)
                if not data:
                    return
        except OSError:
            return


def _say(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)
    stream.flush()


def _connected(host: str) -> socket.socket:
    """Reach a member, which may not have started yet."""
    address = (host, _port(host))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection = socket.create_connection(address, timeout=GREETING_SECONDS)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection


def _port(host: str) -> int:
    hosts: dict[str, int] = json.loads((FOLDER / "hosts.json").read_text())
    for name, port in hosts.items():
        if host in (name, name.split(".")[0]):
            return port
    raise OSError(f"{host} is no member of this job; there are {', '.join(hosts)}")


def ssh(words: list[str]) -> int:
    """Run a command at one member."""
    _, rest = _parsed(words, SSH_TAKES)
    if not rest:
        raise OSError("name a host")
    call = Call(rest[0].split("@")[-1], " ".join(rest[1:]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: call.wire.send(SIGNAL, str(int(number)).encode()))
    threading.Thread(target=call.feed, args=(sys.stdin.buffer,), daemon=True).start()
    return call.follow(sys.stdout.buffer, sys.stderr.buffer)


def pdsh(words: list[str]) -> int:
    """Run a command at several members at once, and end with the exit code of the first that fails."""
    options, rest = _parsed(words, PDSH_TAKES)
    hosts = [host for host in options.get("w", "").split(",") if host]
    if not hosts:
        raise OSError("name hosts, as -w ONE,TWO")
    command = " ".join(rest)
    failed: list[int] = []
    calls: list[Call] = []

    def run(number: int, host: str) -> None:
        code = BROKEN
        try:
            meant = {"%n": str(number), "%h": host, "%%": "%"}
            call = Call(host, re.sub("%[nh%]", lambda found: meant[found[0]], command))
            calls.append(call)
            code = call.follow(sys.stdout.buffer, sys.stderr.buffer, f"{host}: ".encode())
        except (OSError, EOFError) as error:
            print(f"{host}: cannot be reached: {error}", file=sys.stderr, flush=True)
        if code:
            # One lost member is a lost training: the others would wait for it, and their end is not the cause.
            failed.append(code)
            _signal_all(calls, signal.SIGTERM)

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(hosts)]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: _signal_all(calls, number))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed[0] if failed else 0


def _signal_all(calls: list[Call], number: int) -> None:
    # A copy: other threads may still be calling.
    for call in tuple(calls):
        try:
            call.wire.send(SIGNAL, str(int(number)).encode())
        except OSError:
            continue


def _parsed(words: list[str], takes: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    """Split options from what follows them, as ssh and pdsh do."""
    options: dict[str, str] = {}
    left = list(words)
    while left and left[0].startswith("-") and left[0] != "-":
        word = left.pop(0)[1:]
        if word == "-":
            break
        letter = next((each for each in word if each in takes), None)
        if letter is None:
            continue
        value = word.split(letter, 1)[1]
        options[letter] = value or (left.pop(0) if left else "")
    return options, left


PROGRAMS = {"ssh": ssh, "pdsh": pdsh}


def main(words: list[str]) -> int:
    """Be whichever program this was called as."""
    name, rest = Path(words[0]).name, words[1:]
    if name == "agent" and rest[:1] == ["serve"]:
        return serve(rest[1:])
    if name not in PROGRAMS:
        print("call me as ssh, as pdsh, or as agent serve", file=sys.stderr)
        return BROKEN
    try:
        return PROGRAMS[name](rest)
    except PermissionError:
        print(f"{name}: the other side does not have this job's key", file=sys.stderr)
    except EOFError:
        print(f"{name}: the other side has gone", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
    return BROKEN


if __name__ == "__main__":
    sys.exit(main(sys.argv))
