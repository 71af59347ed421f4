"""The probes and metrics of `paceline kube controller`: /healthz, /readyz and /metrics over plain HTTP."""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.apimachinery.metrics import CONTENT_TYPE, MetricRegistry
from paceline.apiserver.http_types import Receive, Scope, Send
from paceline.errors import Fault, HostError, Invalid
from paceline.host.asgi_server import serve

FLAG = "--metrics-bind-address"
TEXT = "text/plain; charset=utf-8"
# Values that switch it off, as in controller-runtime.
OFF = ("", "0")


@dataclass(slots=True, kw_only=True)
class Probes:
    """The metrics of a process and whether it is ready; an ASGI app that says so."""

    registry: MetricRegistry = field(default_factory=MetricRegistry)
    # Returns why the process is not ready; empty if it is.
    unready: Callable[[], str] = lambda: "the cluster is being checked"

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer one request, as an ASGI app."""
        if scope["type"] != "http":
            return
        code, content_type, body = self._answer(str(scope["method"]), str(scope["path"]))
        headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if method not in ("GET", "HEAD"):
            return 405, TEXT, b"only GET is allowed\n"
        match path:
            case "/metrics":
                return 200, CONTENT_TYPE, self.registry.write()
            case "/healthz":
                return 200, TEXT, b"ok\n"
            case "/readyz":
                reason = self.unready()
                return (503, TEXT, f"not ready: {reason}\n".encode()) if reason else (200, TEXT, b"ok\n")
        return 404, TEXT, b"the paths are /healthz, /metrics and /readyz\n"


def probe_socket(address: str) -> socket.socket | None:
    """Listen at ADDRESS:PORT, or :PORT for all addresses; None if it is switched off; HostError says why not."""
    if address in OFF:
        return None
    host, port = _parsed(address)
    is_six = ":" in host or (not host and socket.has_dualstack_ipv6())
    family = socket.AF_INET6 if is_six else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=is_six and not host)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise HostError(f"{FLAG} {address}: cannot listen there: {reason}; choose another") from error
    sock.settimeout(0)
    return sock


async def serve_probes(group: asyncio.TaskGroup, sock: socket.socket, probes: Probes) -> None:
    """Serve the probes in a task of the group, and return once they answer."""
    started = asyncio.Event()
    group.create_task(serve(probes, sock, tls=None, started=started))
    await started.wait()


def _parsed(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        hint = "write ADDRESS:PORT, :PORT for all addresses of this machine, or 0 to switch it off"
        raise Invalid((Fault(FLAG, address, hint),))
    return host.removeprefix("[").removesuffix("]"), int(port)
