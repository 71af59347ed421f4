"""Ask a container how it is: over HTTP, by a connection, or with a command inside it."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Any, Protocol

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import containers_of, port_number
from paceline.node.host_info import CannotStart
from paceline.node.lifecycle.starter import Starter
from paceline.node.lifecycle.state_files import latest_folder, read_started
from paceline.node.probes.probes import Probe
from paceline.node.runtime.exec_types import Gone, NotRun, Run, order_for

# Kubernetes shows as much of a failed answer.
SHOWN_BYTES = 10 * 1024
_ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY_CERTIFICATE.check_hostname = False
_ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE
# How a server says that it speaks without encryption.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


class ExecProbe(Protocol):
    """Runs commands in containers."""

    async def run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        """Run one to its end; give its exit code and what it wrote. NotRun says why it cannot be run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One answer: good or not, and the words for people."""

    is_good: bool
    text: str = ""
    # Nothing was heard of the container itself: it may be well or not. Without words: it has ended meanwhile.
    is_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """The ways to ask."""

    inside: ExecProbe | None

    async def ask(self, probe: Probe, pod: Object, container: Mapping[str, Any], address: str) -> ProbeResult:
        """Ask once; no answer in time is a bad one."""
        try:
            async with asyncio.timeout(probe.timeout.total_seconds()):
                return await self.act(probe.action, probe.what, pod, container=container, address=address)
        except TimeoutError:
            return ProbeResult(is_good=False, text=_too_late(probe, container, address))

    async def act(
        self, action: str, what: Mapping[str, Any], pod: Object, *, container: Mapping[str, Any], address: str
    ) -> ProbeResult:
        """Do what a probe or a hook says."""
        match action:
            case "exec" if self.inside is not None:
                try:
                    code, output = await self.inside.run(pod, str(container["name"]), tuple(what.get("command") or ()))
                except Gone:
                    return ProbeResult(is_good=False, is_unknown=True)
                except NotRun as error:
                    return ProbeResult(is_good=False, is_unknown=True, text=str(error))
                return ProbeResult(is_good=code == 0, text=output[:SHOWN_BYTES].decode(errors="replace"))
            case "httpGet":
                return await _get(what, container, address)
            case "tcpSocket":
                return await _connect(what, container, address)
            case "sleep":
                await asyncio.sleep(float(what.get("seconds") or 0))
                return ProbeResult(is_good=True)
        return ProbeResult(
            is_good=False, text=f"{action or 'this sort of probe'} is not offered by this cluster's node agent"
        )


async def _connect(what: Mapping[str, Any], container: Mapping[str, Any], address: str) -> ProbeResult:
    host, port = str(what.get("host") or address), port_number(what.get("port") or 0, (container,))
    if port is None:
        return ProbeResult(is_good=False, is_unknown=True, text=_no_port(what, container))
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return ProbeResult(is_good=False, text=f"dial tcp {host}:{port}: connect: {_reason(error)}")
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ProbeResult(is_good=True)


async def _get(what: Mapping[str, Any], container: Mapping[str, Any], address: str) -> ProbeResult:
    host, port = str(what.get("host") or address), port_number(what.get("port") or 0, (container,))
    if port is None:
        return ProbeResult(is_good=False, is_unknown=True, text=_no_port(what, container))
    is_tls = str(what.get("scheme") or "HTTP").upper() == "HTTPS"
    path, url = _path(what), _url(what, f"{host}:{port}")
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=_ANY_CERTIFICATE if is_tls else None)
        with contextlib.closing(writer):
            writer.write(_request(what, f"{host}:{port}", path))
            status = await reader.readline()
    except ssl.SSLError as error:
        said = "http: server gave HTTP response to HTTPS client"
        return ProbeResult(
            is_good=False, text=f'Get "{url}": {said if error.reason in _NO_TLS else f"tls: {error.reason}"}'
        )
    except (OSError, ValueError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "the answer is no HTTP"
        return ProbeResult(is_good=False, text=f'Get "{url}": dial tcp {host}:{port}: connect: {reason}')
    words = status.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return ProbeResult(is_good=False, text=f'Get "{url}": malformed HTTP response')
    code = int(words[1])
    is_good = 200 <= code < 400
    return ProbeResult(is_good=is_good, text="" if is_good else f"HTTP probe failed with statuscode: {code}")


def _path(what: Mapping[str, Any]) -> str:
    return "/" + str(what.get("path") or "/").lstrip("/")


def _url(what: Mapping[str, Any], place: str) -> str:
    return f"{str(what.get('scheme') or 'HTTP').lower()}://{place}{_path(what)}"


def _too_late(probe: Probe, container: Mapping[str, Any], address: str) -> str:
    """Say that an answer did not come in time."""
    what = probe.what
    place = f"{what.get('host') or address}:{port_number(what.get('port') or 0, (container,))}"
    match probe.action:
        case "exec":
            command = " ".join(what.get("command") or ())
            return f'command timed out: "{command}" timed out after {probe.timeout.total_seconds():g}s'
        case "httpGet":
            late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return f'Get "{_url(what, place)}": {late}'
    return f"dial tcp {place}: i/o timeout"


def _no_port(what: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    return f"couldn't find port {what.get('port')!r} of container {container['name']}"


def _request(what: Mapping[str, Any], host: str, path: str) -> bytes:
    own = {str(each["name"]): str(each["value"]) for each in what.get("httpHeaders") or ()}
    headers = {"Host": host, "User-Agent": "kube-probe/paceline", "Accept": "*/*", "Connection": "close", **own}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    # What stands in a header must not begin another one.
    clean = [line.replace("\r", " ").replace("\n", " ") for line in lines]
    return ("\r\n".join(clean) + "\r\n\r\n").encode()


def _reason(error: OSError) -> str:
    # asyncio puts the address into its words, and that is told already.
    return "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)


# What a command may say; the rest is read and forgotten.
MAX_OUTPUT = 10 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInside:
    """Knows the containers of this machine and the way into them."""

    starter: Starter
    command: Run

    async def run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        """Run a command; NotRun says why it cannot be run."""
        try:
            return await self._run(pod, container, argv)
        except CannotStart as error:
            raise NotRun(str(error)) from error

    async def _run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        world, folders = self.starter.world, self.starter.folders
        spec = next(each for each in containers_of(pod) if each["name"] == container)
        folder = latest_folder(world, folders, uid_of(pod), container)
        started = read_started(world.files, folder) if folder else None
        if started is None or started.identity is None:
            raise Gone(f"container {container} does not run")
        launch = await self.starter.launch(pod, spec)
        order = order_for(launch, self.starter.host, shim=started.identity, argv=argv, has_terminal=False)
        output = b""
        with closing(await self.command(order)) as running:
            async with aclosing(running.output()) as pieces:
                async for _, data in pieces:
                    output = (output + data)[:MAX_OUTPUT]
            return await running.code(), output
