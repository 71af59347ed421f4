"""Whether the caller of an open stream may still have it: its account may be gone, or its token may have run out."""

import asyncio
from collections.abc import Awaitable

from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.http_types import HttpRequest, Scope
from paceline.apiserver.status_errors import StatusError

# Streams end within five seconds after their caller lost its rights; asking takes some ten microseconds.
AGAIN_SECONDS = 3.0


class StreamAuthorization:
    """Asks the gate again and again for one caller."""

    def __init__(self, gate: Authenticator, scope: Scope, request: HttpRequest) -> None:
        self._gate = gate
        self._scope = scope
        self._headers = request.headers
        self._account = request.caller.account

    @property
    def may_end(self) -> bool:
        """Tell whether the caller can lose its rights: the administrator and our own processes cannot."""
        return self._account is not None

    async def is_over(self) -> None:
        """Return when the caller may not go on; also when its rights changed, for it may ask again."""
        while True:
            if not self._is_welcome():
                return
            await asyncio.sleep(AGAIN_SECONDS)

    async def during(self, work: Awaitable[None]) -> bool:
        """Do something for as long as the caller may; False when that ended first."""
        if not self.may_end:
            await work
            return True
        async with asyncio.TaskGroup() as group:
            working, over = group.create_task(_outcome(work)), group.create_task(self.is_over())
            await asyncio.wait((working, over), return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            over.cancel()
        if working.cancelled():
            return False
        if (error := working.result()) is not None:
            raise error
        return True

    def _is_welcome(self) -> bool:
        try:
            return self._gate.admit(self._scope, self._headers).account == self._account
        except StatusError:
            return False


async def _outcome(work: Awaitable[None]) -> Exception | None:
    """Return how something failed: a task group would wrap it."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - raised again by whoever waits
        return error
    return None
