"""What carries requests: the small contract under the verbs, and its one error of its own."""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Protocol

from paceline.client.requests import Request, Response
from paceline.client.rest_config import Access
from paceline.errors import HostError, ServiceUnavailable


class Unreachable(ServiceUnavailable):
    """Nothing answered: the server does not run, or the way to it is cut."""


@contextmanager
def translate_errors(server: str, *others: type[Exception]) -> Generator[None, None, None]:
    """Translate everything that can go wrong on the way to a server, `others` being the words of a library."""
    unreached: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
        # The connection was cut, which says nothing about who is at its other end.
        raise Unreachable(f"{server} hung up: {error.reason or 'the connection was cut'}") from error
    except ssl.SSLError as error:
        raise HostError(f"{server} cannot be trusted: {error}; is this the right kubeconfig?") from error
    except TimeoutError as error:
        raise Unreachable(f"{server} does not answer in time") from error
    except unreached as error:
        raise Unreachable(f"{server} does not answer: {error}") from error


class Transport(Protocol):
    """Carries requests to one server. Failing to reach it raises Unreachable."""

    async def send(self, request: Request) -> Response:
        """Return the whole answer, whatever its status."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Return the body as it comes; a status that says failure is raised. Closing it hangs up."""
        ...


def tls_context(access: Access) -> ssl.SSLContext | None:
    """Make the context for connections to a server; None when it speaks plain HTTP."""
    if access.server.startswith("http://"):
        return None
    try:
        context = ssl.create_default_context(cadata=access.ca.decode() or None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise HostError(f"the kubeconfig's certificate authority is not PEM: {error}") from error
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.client_certificate:
        _identify(context, access)
    return context


def _identify(context: ssl.SSLContext, access: Access) -> None:
    # OpenSSL reads a certificate and its key from a file only; this one is ours alone, and short-lived.
    with NamedTemporaryFile(prefix="paceline-") as file:
        file.write(access.client_certificate + b"\n" + access.client_key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            message = f"the kubeconfig's client certificate and key do not fit each other: {error}"
            raise HostError(message) from error
