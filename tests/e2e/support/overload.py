"""Attacks on the API server, and what a client that behaves notices of them."""

import contextlib
import itertools
import json
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Self

from paceline.client.kubeconfig import load
from paceline.client.rest_config import Access
from paceline.testing.embedded import Embedded, wait_until

CLIENT = Path(__file__).parents[1] / "jobs" / "normal_client.py"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """What a client that behaves saw while somebody else did not."""

    took: tuple[float, ...]
    failed: tuple[str, ...]
    # Seconds between two renewals of the node that follow each other.
    gaps: tuple[float, ...]
    # Bytes by which the control process had grown, at most.
    growth: int

    @property
    def p99(self) -> float:
        ranked = sorted(self.took)
        return ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]


def memory_of(pid: int) -> int:
    """Resident bytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


class Target:
    """The API server of a cluster, and how to reach it."""

    def __init__(self, cluster: Embedded) -> None:
        self.cluster = cluster
        self.access: Access = load(cluster.kubeconfig, Path.read_bytes)
        self.host = self.access.server.removeprefix("https://")
        self._context = ssl.create_default_context(cadata=self.access.ca.decode())

    def raw(self) -> socket.socket:
        name, _, port = self.host.partition(":")
        return socket.create_connection((name, int(port)), timeout=30)

    def dial(self) -> ssl.SSLSocket:
        return self._context.wrap_socket(self.raw(), server_hostname=self.host.partition(":")[0])

    def head(self, method: str, path: str, *lines: str, token: str = "") -> bytes:
        bearer = f"Authorization: Bearer {token or self.access.token}"
        return "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: {self.host}", bearer, *lines, "", "")).encode()

    def ask(self, method: str, path: str, body: bytes = b"", *, token: str = "") -> tuple[int, bytes]:
        lines = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
        with self.dial() as connection:
            connection.sendall(self.head(method, path, *lines, token=token) + body)
            answer = connection.makefile("rb").read()
        return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def allow_many_files() -> None:
    """Let this process open as many connections as an attacker would."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def lease_path(target: Target) -> str:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

    def name_of_first() -> str | None:
        _, body = target.ask("GET", path)
        return next((str(lease["metadata"]["name"]) for lease in json.loads(body)["items"]), None)

    # The agent writes it a moment after the cluster is ready.
    return f"{path}/{wait_until('the node has a lease', name_of_first)}"


class Beside:
    """A client that behaves, and a look at the server's memory, while the block lasts."""

    noticed: Noticed

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pid = target.cluster.control_pid
        self._over = threading.Event()
        self._peak = 0

    def __enter__(self) -> Self:
        path = lease_path(self._target)
        self.before = memory_of(self._pid)
        self._authority = tempfile.NamedTemporaryFile(suffix=".crt")
        self._authority.write(self._target.access.ca)
        self._authority.flush()
        command = [sys.executable, CLIENT, self._target.host, self._authority.name, self._target.access.token, path]
        self._client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._looking = threading.Thread(target=self._look)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._looking.join()
        out, _ = self._client.communicate(timeout=60)
        self._authority.close()
        said = json.loads(out)
        times = [datetime.fromisoformat(each) for each in said["renewed"]]
        gaps = tuple((after - before).total_seconds() for before, after in itertools.pairwise(times))
        self.noticed = Noticed(
            took=tuple(said["took"]),
            failed=tuple(said["failed"]),
            gaps=gaps,
            growth=self._peak - self.before,
        )

    def _look(self) -> None:
        while not self._over.wait(0.1):
            with contextlib.suppress(OSError):
                self._peak = max(self._peak, memory_of(self._pid))

    def wait(self, seconds: float) -> None:
        """Let the attack last."""
        self._over.wait(seconds)

    def assert_memory_comes_back(self, *, within: float = 60.0, most: int = 32 * MIB) -> None:
        now = {}

        def is_back() -> bool:
            now["bytes"] = memory_of(self._pid) - self.before
            return now["bytes"] < most

        wait_until("the control process has given its memory back", is_back, seconds=within)


def half_sent(target: Target, count: int, stack: contextlib.ExitStack) -> list[ssl.SSLSocket]:
    """Open connections on which half of a request is sent."""
    opened = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            connection = target.dial()
            stack.enter_context(connection)
            connection.sendall(f"GET /api HTTP/1.1\r\nHost: {target.host}\r\nX-Slow: ".encode())
            opened.append(connection)
    return opened


def flood(connection: ssl.SSLSocket, first: bytes, piece: bytes, size: int) -> tuple[int | None, bytes]:
    """Send a head that does not end, and give the code of the answer and what was sent with it."""
    try:
        connection.sendall(first)
        for _ in range(size // len(piece)):
            connection.sendall(piece)
    except OSError:
        pass
    try:
        answer = connection.makefile("rb").read()
    except OSError:
        return None, b""
    return (int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]) if answer else (None, b"")
