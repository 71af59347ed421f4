"""Replaces ssh, pdsh and sshd between the members of one job.

This program is copied as text into the user's image under three names, so it uses only the standard library and only
what Python 3.7 has. Its folder also holds `hosts.json` (host → port) and `key`, which only members of this job have.

agent serve --port=N [--bind=HOST]   run the commands of members that have the key; return their output and exit code
ssh [options] HOST COMMAND…          run a command on a member; exit with its exit code, or 255
pdsh [options] -w HOSTS COMMAND…     run a command on several members at once; %n is replaced by the member's number,
                                     %h by its name, and %% by a %

Both sides prove with a challenge and a response that they have the key; the key itself is never sent.
The traffic after that is neither encrypted nor signed, as with rsh and as with the members' own traffic.
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
CONNECT_SECONDS = 300.0
RETRY_SECONDS = 0.2
# How long a client may take to prove that it has the key.
HANDSHAKE_SECONDS = 10.0
GRACE_SECONDS = 5.0
HANG_UP_SECONDS = 60.0
CHUNK = 64 * 1024
MAX_MESSAGE = 4 * 1024 * 1024
CONNECTION_FAILED = 255
FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STDOUT, STDERR, EXIT, STDIN, END, SIGNAL = b"o", b"e", b"x", b"i", b"f", b"s"
# Options of ssh and of pdsh that take an argument.
SSH_OPTIONS_WITH_VALUE = frozenset("BbcDEeFIiJLlmOopQRSWw")
PDSH_OPTIONS_WITH_VALUE = frozenset("lftuRwxg")


class MessageStream:
    """Messages over a connection: one byte for the type, four for the length, then the data."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._send_lock = threading.Lock()

    def send(self, message_type: bytes, data: bytes = b"") -> None:
        with self._send_lock:
            self.connection.sendall(message_type + len(data).to_bytes(4, "big") + data)

    def receive(self) -> tuple[bytes, bytes]:
        """Return the type and data of the next message; raise EOFError when the peer has closed the connection."""
        message_type, size = self._read(1), int.from_bytes(self._read(4), "big")
        if size > MAX_MESSAGE:
            raise EOFError
        return message_type, self._read(size)

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            data = self.connection.recv(min(size, CHUNK))
            if not data:
                raise EOFError
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def authenticate(self, role: bytes, peer_role: bytes) -> None:
        """Prove that this side has the key, and check the peer's proof; raise PermissionError when it is wrong."""
        key = (FOLDER / "key").read_bytes().strip()
        challenge = secrets.token_bytes(32)
        self.send(b"q", challenge)
        peer_challenge = self.receive()[1]
        if len(peer_challenge) != len(challenge) or peer_challenge == challenge:
            raise PermissionError
        self.send(b"a", _response(key, role, peer_challenge, challenge))
        if not hmac.compare_digest(self.receive()[1], _response(key, peer_role, challenge, peer_challenge)):
            raise PermissionError


def _response(key: bytes, role: bytes, challenge: bytes, counter_challenge: bytes) -> bytes:
    return hmac.new(key, role + challenge + counter_challenge, sha256).digest()


class CommandHandler(socketserver.BaseRequestHandler):
    """Runs one command for another member."""

    def handle(self) -> None:
        """Authenticate the client, run its command, and end the command when the client disconnects."""
        stream = MessageStream(self.request)
        try:
            self.request.settimeout(HANDSHAKE_SECONDS)
            stream.authenticate(b"agent", b"member")
            request = json.loads(stream.receive()[1])
            self.request.settimeout(None)
        except (OSError, EOFError, ValueError):
            return
        process = subprocess.Popen(  # noqa: S602 - a member with the key may run anything, as with ssh
            request["command"],
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        input_thread = threading.Thread(target=_forward_input, args=(stream, process), daemon=True)
        input_thread.start()
        try:
            _forward_output(process, stream)
            code = process.wait()
            stream.send(EXIT, str(code if code >= 0 else 128 - code).encode())
        except OSError:
            _terminate(process)
        # The client must close first: closing a socket with unread input resets it, which would discard our last data.
        input_thread.join(HANG_UP_SECONDS)


def _forward_input(stream: MessageStream, process: subprocess.Popen[bytes]) -> None:
    """Forward input and signals to the command, and terminate it when the client disconnects."""
    stdin = process.stdin
    try:
        while True:
            message_type, data = stream.receive()
            if message_type == SIGNAL:
                _signal(process, int(data))
            elif message_type == END and stdin:
                stdin.close()
            elif message_type == STDIN and stdin and not stdin.closed:
                _write(stdin, data)
    except (OSError, EOFError, ValueError):
        _terminate(process)


def _write(stdin: IO[bytes], data: bytes) -> None:
    try:
        stdin.write(data)
        stdin.flush()
    except OSError:
        stdin.close()


def _forward_output(process: subprocess.Popen[bytes], stream: MessageStream) -> None:
    """Send output as it is written, until the command has ended and its pipes are empty.

    A command may leave a daemon behind that keeps the pipes open, as mpirun's does, so do not wait for them to close.
    """
    types = {pipe: kind for pipe, kind in ((process.stdout, STDOUT), (process.stderr, STDERR)) if pipe}
    while types:
        has_ended = process.poll() is not None
        ready = select.select(list(types), [], [], 0.0 if has_ended else 0.1)[0]
        if has_ended and not ready:
            return
        for pipe in ready:
            data = os.read(pipe.fileno(), CHUNK)
            if data:
                stream.send(types[pipe], data)
            else:
                del types[pipe]


def _terminate(process: subprocess.Popen[bytes]) -> None:
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


class AgentServer(socketserver.ThreadingTCPServer):
    """The replacement of sshd in one member."""

    allow_reuse_address = True
    daemon_threads = True
    # All members of a large job may connect at once.
    request_queue_size = 1024


def serve(arguments: list[str]) -> int:
    """Run the commands of other members until SIGTERM."""
    options = dict(argument.lstrip("-").split("=", 1) for argument in arguments)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with AgentServer((_address(options.get("bind", "")), int(options["port"])), CommandHandler) as server:
        server.serve_forever()
    return 0


def _address(host: str) -> str:
    """Return the address of this member's name, or "" (all addresses) while the name does not resolve."""
    try:
        return socket.gethostbyname(host) if host else ""
    except OSError:
        return ""


class RemoteCommand:
    """A command on one member."""

    def __init__(self, host: str, stop: threading.Event | None = None) -> None:
        """Connect to the member; raise OSError when `stop` is set before that."""
        self.stream = MessageStream(_connect(host, stop or threading.Event()))
        # Held to send the command or a signal, so that a signal is never sent before the command.
        self._start_lock = threading.Lock()
        self._is_started = False

    def start(self, command: str) -> None:
        """Start the command; raise OSError or EOFError when a signal came first or the member is gone."""
        self.stream.authenticate(b"member", b"agent")
        with self._start_lock:
            self.stream.send(b"c", json.dumps({"command": command}).encode())
            self._is_started = True

    def signal(self, number: int) -> None:
        """Send a signal to the command, or keep it from starting when it has not started yet."""
        with self._start_lock:
            try:
                if self._is_started:
                    self.stream.send(SIGNAL, str(int(number)).encode())
                else:
                    self.stream.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def forward_output(self, out: IO[bytes], err: IO[bytes], prefix: bytes = b"") -> int:
        """Write the command's output until the command ends, and return its exit code."""
        partial = {STDOUT: b"", STDERR: b""}
        streams = {STDOUT: out, STDERR: err}
        while True:
            message_type, data = self.stream.receive()
            if message_type == EXIT:
                for kind, line in partial.items():
                    _write_output(streams[kind], prefix + line + b"\n" if line else b"")
                return int(data)
            if not prefix:
                _write_output(streams[message_type], data)
                continue
            # Write whole lines only, so that the lines of several members do not mix.
            *lines, partial[message_type] = (partial[message_type] + data).split(b"\n")
            _write_output(streams[message_type], b"".join(prefix + line + b"\n" for line in lines))

    def forward_input(self, source: IO[bytes]) -> None:
        """Send input to the command until the input ends."""
        try:
            while True:
                data = os.read(source.fileno(), CHUNK)
                self.stream.send(STDIN if data else END, data)
                if not data:
                    return
        except OSError:
            return


def _write_output(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)
    stream.flush()


def _connect(host: str, stop: threading.Event) -> socket.socket:
    """Return a connection to a member, which may not have started yet."""
    address = (host, _port(host))
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            connection = socket.create_connection(address, timeout=HANDSHAKE_SECONDS)
        except OSError:
            if stop.wait(RETRY_SECONDS) or time.monotonic() > deadline:
                raise
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
    raise OSError(f"{host} is not a member of this job; the members are {', '.join(hosts)}")


def ssh(arguments: list[str]) -> int:
    """Run a command on one member."""
    _, operands = _parse(arguments, SSH_OPTIONS_WITH_VALUE)
    if not operands:
        raise OSError("specify a host")
    remote = RemoteCommand(operands[0].split("@")[-1])
    remote.start(" ".join(operands[1:]))
    for number in FORWARDED_SIGNALS:
        signal.signal(number, lambda number, _: remote.signal(number))
    threading.Thread(target=remote.forward_input, args=(sys.stdin.buffer,), daemon=True).start()
    return remote.forward_output(sys.stdout.buffer, sys.stderr.buffer)


class ParallelCommand:
    """One command on several members; the first failure or a signal ends it on all of them."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.failures: list[int] = []
        self.remotes: list[RemoteCommand] = []
        self._stopped = threading.Event()
        self._stop_signal = 0

    def run(self, number: int, host: str) -> None:
        """Run the command on one member; when it fails, stop the others.

        A training cannot go on without a member: the others would wait for it. Their exit codes are not the cause.
        """
        code = CONNECTION_FAILED
        try:
            values = {"%n": str(number), "%h": host, "%%": "%"}
            remote = RemoteCommand(host, self._stopped)
            self.remotes.append(remote)
            # stop() sets the event before it reads the list, so after this append one of the two sees the other.
            if self._stopped.is_set():
                remote.signal(self._stop_signal)
            remote.start(re.sub("%[nh%]", lambda match: values[match[0]], self.command))
            code = remote.forward_output(sys.stdout.buffer, sys.stderr.buffer, f"{host}: ".encode())
        except (OSError, EOFError) as error:
            if self._stopped.is_set():
                code = 128 + self._stop_signal
            else:
                print(f"{host}: cannot be reached: {error}", file=sys.stderr, flush=True)
        if code:
            self.failures.append(code)
            self.stop(signal.SIGTERM)

    def stop(self, number: int) -> None:
        """Send a signal to every command that runs, and start no further one."""
        self._stop_signal = self._stop_signal or int(number)
        self._stopped.set()
        for remote in tuple(self.remotes):
            remote.signal(number)


def pdsh(arguments: list[str]) -> int:
    """Run a command on several members at once, and return the exit code of the first one that fails."""
    options, operands = _parse(arguments, PDSH_OPTIONS_WITH_VALUE)
    hosts = [host for host in options.get("w", "").split(",") if host]
    if not hosts:
        raise OSError("specify the hosts, as in -w ONE,TWO")
    parallel = ParallelCommand(" ".join(operands))
    for number in FORWARDED_SIGNALS:
        signal.signal(number, lambda number, _: parallel.stop(number))
    threads = [threading.Thread(target=parallel.run, args=member, daemon=True) for member in enumerate(hosts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return parallel.failures[0] if parallel.failures else 0


def _parse(arguments: list[str], with_value: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    """Split options from the operands, as ssh and pdsh do."""
    options: dict[str, str] = {}
    operands = list(arguments)
    while operands and operands[0].startswith("-") and operands[0] != "-":
        option = operands.pop(0)[1:]
        if option == "-":
            break
        letter = next((character for character in option if character in with_value), None)
        if letter is None:
            continue
        value = option.split(letter, 1)[1]
        options[letter] = value or (operands.pop(0) if operands else "")
    return options, operands


PROGRAMS = {"ssh": ssh, "pdsh": pdsh}


def main(arguments: list[str]) -> int:
    """Run the program that this file was started as."""
    name, operands = Path(arguments[0]).name, arguments[1:]
    if name == "agent" and operands[:1] == ["serve"]:
        return serve(operands[1:])
    if name not in PROGRAMS:
        print("start this program as ssh, as pdsh, or as agent serve", file=sys.stderr)
        return CONNECTION_FAILED
    try:
        return PROGRAMS[name](operands)
    except PermissionError:
        print(f"{name}: the other side does not have this job's key", file=sys.stderr)
    except EOFError:
        print(f"{name}: the other side closed the connection", file=sys.stderr)
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
    return CONNECTION_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv))
