"""Serve the webhook over TLS, with a certificate that is renewed and told to the API server."""

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from paceline.client.http.reverse_proxy import Receive, Send
from paceline.client.interface import Cluster, Collection
from paceline.cluster.webhook.certificate import LIFETIME, ServingCertificate, make_certificate, with_authority
from paceline.cluster.webhook.review import answer
from paceline.effects import Clock
from paceline.errors import BadRequest, Conflict, HostError, NotFound, PacelineError, TooLarge
from paceline.host.asgi_server import serve
from paceline.settings import LOOPBACK

log = logging.getLogger(__name__)

# Of the ValidatingWebhookConfiguration, and of the Service that it names.
NAME, SERVICE = "paceline", "paceline-webhook"
PATH = "/validate"
CONFIGURATIONS = Collection(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    namespaced=False,
)
# A certificate is replaced when a third of its time is left.
RENEW_AFTER = LIFETIME * 2 / 3
# An upgrade may reset the bundle, so it is looked at again and again.
PUBLISH_SECONDS = 60.0
# How long an API server may take to notice a new bundle, before the new certificate is used.
NOTICED_SECONDS = 5.0
# Two objects of the largest size that an API server stores, and their envelope.
MAX_BODY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServer:
    """Answers AdmissionReviews at an address until it is cancelled."""

    cluster: Cluster
    clock: Clock
    # Host and port.
    address: str
    # The namespace of the Service.
    namespace: str

    async def run(self) -> None:
        """Serve, and renew the certificate in time."""
        host, port = split_address(self.address)
        with _listening(host, port) as sock:
            certificate = self._new_certificate(host)
            while True:
                begun = self.clock.now()
                async with asyncio.TaskGroup() as group:
                    serving = group.create_task(_serve(sock.dup(), certificate))
                    publishing = group.create_task(self._keep_published(certificate))
                    await self._sleep_until_due(begun + RENEW_AFTER - self.clock.now())
                    certificate = self._new_certificate(host)
                    publishing.cancel()
                    await self._publish(certificate)
                    await asyncio.sleep(NOTICED_SECONDS)
                    serving.cancel()

    def _new_certificate(self, host: str) -> ServingCertificate:
        names = [f"{SERVICE}.{self.namespace}.svc", f"{SERVICE}.{self.namespace}.svc.cluster.local", LOOPBACK]
        if host not in (LOOPBACK, "0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            names.append(host)
        return make_certificate(names, self.clock.now())

    async def _sleep_until_due(self, remaining: timedelta) -> None:
        await asyncio.sleep(max(0.0, remaining.total_seconds()))

    async def _keep_published(self, certificate: ServingCertificate) -> None:
        while True:
            await self._publish(certificate)
            await asyncio.sleep(PUBLISH_SECONDS)

    async def _publish(self, certificate: ServingCertificate) -> None:
        """Add the certificate to the bundle of the configuration, if that is there and lacks it."""
        try:
            await publish(self.cluster, certificate.certificate, self.clock)
        except NotFound:
            log.info("ValidatingWebhookConfiguration %s does not exist: this webhook is not called yet", NAME)
        except PacelineError as error:
            log.warning("the certificate of the webhook is not published: %s", error)


async def publish(cluster: Cluster, certificate: bytes, clock: Clock) -> None:
    """Let the API server trust a certificate; another controller may do the same meanwhile."""
    while True:
        changed = with_authority(await cluster.get(CONFIGURATIONS, "", NAME), certificate, clock.now())
        if changed is None:
            return
        with contextlib.suppress(Conflict):
            await cluster.replace(CONFIGURATIONS, changed)
            return


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; raise BadRequest if it is none."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadRequest(f"--webhook-bind-address {address!r} is not allowed; write HOST:PORT, such as 0.0.0.0:9443")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - API servers are on other machines


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            message = f"the webhook cannot listen at {host}:{port}: {error.strerror}"
            raise HostError(f"{message}; choose another --webhook-bind-address") from error
        sock.listen(128)
        sock.settimeout(0)
        yield sock


async def _serve(sock: socket.socket, certificate: ServingCertificate) -> None:
    # Files in memory: the container's file system may be read-only, and a key on disk would outlive this process.
    with _memory_file(certificate.certificate) as certificate_file, _memory_file(certificate.key) as key_file:
        await serve(app, sock, tls=(certificate_file, key_file), started=asyncio.Event())


@contextlib.contextmanager
def _memory_file(data: bytes) -> Iterator[Path]:
    descriptor = os.memfd_create("paceline-webhook", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        yield Path(f"/proc/self/fd/{descriptor}")


async def app(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer one request: POST /validate."""
    if scope["type"] != "http":
        return
    code, body = 200, b""
    try:
        if (scope["method"], scope["path"]) != ("POST", PATH):
            raise NotFound(f"only POST {PATH} is answered here")
        body = json.dumps(answer(_decoded(await _body(receive)))).encode()
    except PacelineError as error:
        code, body = error.code, f"{error}\n".encode()
    headers = [(b"content-type", b"application/json" if code == 200 else b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest("the body is not JSON") from error


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > MAX_BODY_BYTES:
            raise TooLarge(f"the body has more than {MAX_BODY_BYTES} bytes")
        if not message.get("more_body"):
            return b"".join(parts)
