"""What carries requests: the small contract under the verbs, and its one error of its own."""

from collections.abc import AsyncGenerator
from typing import Protocol

from paceline.client.requests import Request, Response
from paceline.errors import Busy


class Unreached(Busy):
    """Nothing answered: the server does not run, or the way to it is cut."""


class Transport(Protocol):
    """Carries requests to one server. Failing to reach it raises Unreached."""

    async def send(self, request: Request) -> Response:
        """Give the whole answer, whatever its status."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Give the body as it comes; a status that says failure is raised. Closing it hangs up."""
        ...
