"""Run one probe or hook of a container: an HTTP request, a TCP connection, or a command in the container."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import container_named, port_number
from paceline.node.host_info import CannotStart
from paceline.node.lifecycle.starter import Starter
from paceline.node.lifecycle.state_files import latest_folder, read_started
from paceline.node.probes.probes import Probe
from paceline.node.runtime.exec_types import ContainerGone, ExecError, RunExec
from paceline.node.runtime.sandbox import exec_request

# Kubernetes shows as much of the output of a failed probe; the rest is read and dropped.
MAX_OUTPUT = 10 * 1024
_ANY_CERTIFICATE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_ANY_CERTIFICATE.check_hostname = False
_ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE
# OpenSSL's reasons for a server that does not speak TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one probe or hook, and a text for people."""

    is_good: bool
    text: str = ""
    # Nothing is known about the container itself. Without a text: it has ended meanwhile.
    is_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecProbe:
    """Runs commands in the containers of this node to their end."""

    starter: Starter
    command: RunExec

    async def run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        """Run a command; return its exit code and output. ExecError says why it cannot be run."""
        try:
            return await self._run(pod, container, argv)
        except CannotStart as error:
            raise ExecError(str(error)) from error

    async def _run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        world, folders = self.starter.world, self.starter.folders
        spec = container_named(pod, container)
        folder = latest_folder(world, folders, uid_of(pod), container)
        started = read_started(world.files, folder) if folder else None
        if spec is None or started is None or started.identity is None:
            raise ContainerGone(f"container {container} is not running")
        config = await self.starter.config_of(pod, spec)
        request = exec_request(config, self.starter.host, shim=started.identity, argv=argv, has_terminal=False)
        output = b""
        with contextlib.closing(await self.command(request)) as process:
            async with contextlib.aclosing(process.output()) as chunks:
                async for _, data in chunks:
                    output = (output + data)[:MAX_OUTPUT]
            return await process.code(), output


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """Runs the actions of probes and hooks."""

    # None where nothing runs commands in containers.
    exec_probe: ExecProbe | None

    async def probe(self, probe: Probe, pod: Object, container: Mapping[str, Any], address: str) -> ProbeResult:
        """Run a probe once; a timeout is a failure."""
        try:
            async with asyncio.timeout(probe.timeout.total_seconds()):
                return await self.act(probe.action, probe.settings, pod, container=container, address=address)
        except TimeoutError:
            return ProbeResult(is_good=False, text=_timeout_message(probe, container, address))

    async def act(
        self, action: str, settings: Mapping[str, Any], pod: Object, *, container: Mapping[str, Any], address: str
    ) -> ProbeResult:
        """Run the action of a probe or a hook."""
        match action:
            case "exec" if self.exec_probe is not None:
                argv = tuple(settings.get("command") or ())
                try:
                    code, output = await self.exec_probe.run(pod, str(container["name"]), argv)
                except ContainerGone:
                    return ProbeResult(is_good=False, is_unknown=True)
                except ExecError as error:
                    return ProbeResult(is_good=False, is_unknown=True, text=str(error))
                return ProbeResult(is_good=code == 0, text=output[:MAX_OUTPUT].decode(errors="replace"))
            case "httpGet" | "tcpSocket":
                host, port = str(settings.get("host") or address), port_number(settings.get("port") or 0, (container,))
                if port is None:
                    text = f"couldn't find port {settings.get('port')!r} of container {container['name']}"
                    return ProbeResult(is_good=False, is_unknown=True, text=text)
                return await (_get(settings, host, port) if action == "httpGet" else _connect(host, port))
            case "sleep":
                await asyncio.sleep(float(settings.get("seconds") or 0))
                return ProbeResult(is_good=True)
        text = f"{action or 'this kind of probe'} is not supported by this cluster's node agent"
        return ProbeResult(is_good=False, text=text)


async def _connect(host: str, port: int) -> ProbeResult:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return ProbeResult(is_good=False, text=f"dial tcp {host}:{port}: connect: {_reason(error)}")
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ProbeResult(is_good=True)


async def _get(settings: Mapping[str, Any], host: str, port: int) -> ProbeResult:
    is_tls = str(settings.get("scheme") or "HTTP").upper() == "HTTPS"
    url = _url(settings, f"{host}:{port}")
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=_ANY_CERTIFICATE if is_tls else None)
        with contextlib.closing(writer):
            writer.write(_request(settings, f"{host}:{port}"))
            status = await reader.readline()
    except ssl.SSLError as error:
        is_plain = error.reason in _NO_TLS
        reason = "http: server gave HTTP response to HTTPS client" if is_plain else f"tls: {error.reason}"
        return ProbeResult(is_good=False, text=f'Get "{url}": {reason}')
    except (OSError, ValueError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "the response is not HTTP"
        return ProbeResult(is_good=False, text=f'Get "{url}": dial tcp {host}:{port}: connect: {reason}')
    fields = status.split()
    if len(fields) < 2 or not fields[0].startswith(b"HTTP/") or not fields[1].isdigit():
        return ProbeResult(is_good=False, text=f'Get "{url}": malformed HTTP response')
    code = int(fields[1])
    is_good = 200 <= code < 400
    return ProbeResult(is_good=is_good, text="" if is_good else f"HTTP probe failed with statuscode: {code}")


def _path(settings: Mapping[str, Any]) -> str:
    return "/" + str(settings.get("path") or "/").lstrip("/")


def _url(settings: Mapping[str, Any], address: str) -> str:
    return f"{str(settings.get('scheme') or 'HTTP').lower()}://{address}{_path(settings)}"


def _timeout_message(probe: Probe, container: Mapping[str, Any], address: str) -> str:
    settings = probe.settings
    target = f"{settings.get('host') or address}:{port_number(settings.get('port') or 0, (container,))}"
    match probe.action:
        case "exec":
            command = " ".join(settings.get("command") or ())
            return f'command timed out: "{command}" timed out after {probe.timeout.total_seconds():g}s'
        case "httpGet":
            late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return f'Get "{_url(settings, target)}": {late}'
    return f"dial tcp {target}: i/o timeout"


def _request(settings: Mapping[str, Any], host: str) -> bytes:
    chosen = {str(header["name"]): str(header["value"]) for header in settings.get("httpHeaders") or ()}
    headers = {"Host": host, "User-Agent": "kube-probe/paceline", "Accept": "*/*", "Connection": "close", **chosen}
    lines = [f"GET {_path(settings)} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    # The value of a header must not begin another one.
    clean = [line.replace("\r", " ").replace("\n", " ") for line in lines]
    return ("\r\n".join(clean) + "\r\n\r\n").encode()


def _reason(error: OSError) -> str:
    # asyncio repeats the address in its message.
    return "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
