"""Whether the caller of an open stream may still have it: its account may be gone, or its token may have run out."""

import asyncio
from collections.abc import Awaitable

from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.http_types import HttpRequest, Scope
from paceline.apiserver.status_errors import StatusError

# Streams end within five seconds after the authorization is lost; a check takes about 10 µs.
CHECK_SECONDS = 3.0


class StreamAuthorization:
    """Checks again and again whether the caller of an open stream is still authorized."""

    def __init__(self, gate: Authenticator, scope: Scope, request: HttpRequest) -> None:
        self._gate = gate
        self._scope = scope
        self._headers = request.headers
        self._account = request.caller.account

    @property
    def can_expire(self) -> bool:
        """Whether the caller can lose its authorization; users and our own processes cannot."""
        return self._account is not None

    async def wait_until_expired(self) -> None:
        """Return when the token expired, or the account is gone or changed (the client may reconnect)."""
        while True:
            if not self._is_welcome():
                return
            await asyncio.sleep(CHECK_SECONDS)

    async def run_while_valid(self, work: Awaitable[None]) -> bool:
        """Await some work while the caller is authorized; return False if it was cancelled."""
        if not self.can_expire:
            await work
            return True
        async with asyncio.TaskGroup() as group:
            working, expired = group.create_task(_outcome(work)), group.create_task(self.wait_until_expired())
            await asyncio.wait((working, expired), return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            expired.cancel()
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
    """Return the exception of some work: a task group would wrap it."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return error
    return None
