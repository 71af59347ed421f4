"""What carries requests: the small contract under the verbs, and its one error of its own."""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Protocol

from paceline.client.requests import Request, Response
from paceline.errors import HostError, ServiceUnavailable


class Unreachable(ServiceUnavailable):
    """Nothing answered: the server does not run, or the way to it is cut."""


@contextmanager
def translate_errors(server: str, *others: type[Exception]) -> Generator[None, None, None]:
    """Translate everything that can go wrong on the way to a server, `others` being the words of a library."""
    unreached: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
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
