"""The access of one browser to one app: a ticket that the console hands over, and the cookie it is exchanged for.

Both are sealed for the label of the app's host, and carry the person's session: an app's host never gets the cookie
of the console, and its own cookie opens nothing else.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import orjson

from paceline.console.app_origins.origin import EmbeddedApp
from paceline.console.config import ConsoleConfig
from paceline.console.sealed_cookies import decode, encode, join_cookie, split_cookie
from paceline.console.sessions import LoginSession, session_from_wire, session_to_wire
from paceline.errors import Forbidden, Unauthorized

TICKET_SECONDS = 30.0
COOKIE_SECONDS = 12 * 3600.0
# Tickets are remembered until they expire; more than this many within half a minute are refused.
MAX_USED = 10_000
NO_ACCESS = "access to this page has ended; open it from the console"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketAccess:
    """The app that a browser may use, the session it acts for, and when that ends."""

    id: str
    app: EmbeddedApp
    session: LoginSession
    # In seconds since the epoch.
    expires: float


class Tickets:
    """Makes and reads the tickets and cookies of apps."""

    def __init__(self, config: ConsoleConfig) -> None:
        self._config = config
        # Ids of redeemed tickets with the time they expire, oldest first.
        self._used: OrderedDict[str, float] = OrderedDict()

    def issue(self, session: LoginSession, app: EmbeddedApp) -> str:
        """Return a ticket for an app, valid once and for half a minute."""
        access = TicketAccess(
            id=self._config.ids.uid(), app=app, session=session, expires=self._until(session, TICKET_SECONDS)
        )
        return encode(self._seal(access, b"ticket"))

    def redeem(self, ticket: str, label: str) -> TicketAccess:
        """Return the access that a ticket gives; raise Forbidden if it has expired, was used, or is for another app."""
        access = self._open(decode(ticket), label, b"ticket")
        if access is None:
            raise Forbidden("the ticket is not valid for this page; open the page from the console again")
        if not self._is_first_use(access):
            raise Forbidden("the ticket has been used already; open the page from the console again")
        return replace(access, expires=self._until(access.session, COOKIE_SECONDS))

    def cookies(self, access: TicketAccess) -> Iterator[str]:
        """Yield the Set-Cookie headers that give a browser access to the app, on its host only."""
        seconds = int(access.expires - self._now())
        for name, text in split_cookie(self._name, encode(self._seal(access, b"app"))):
            yield f"{name}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict; Secure"

    def read(self, cookies: Mapping[str, str], label: str) -> TicketAccess:
        """Return the access of a request; raise Unauthorized if it has none, or for another app."""
        access = self._open(decode(join_cookie(self._name, cookies)), label, b"app")
        if access is None:
            raise Unauthorized(NO_ACCESS)
        return access

    @property
    def _name(self) -> str:
        """Return the name of the cookie, with the port, because browsers share cookies between ports of a host."""
        port = self._config.apps_host.partition(":")[2]
        return f"__Host-paceline-app-{port}" if port else "__Host-paceline-app"

    def _seal(self, access: TicketAccess, use: bytes) -> bytes:
        session, app = access.session, access.app
        wire = [access.id, access.expires, app.kind, app.namespace, app.name, *session_to_wire(session)]
        return self._config.seal.seal(orjson.dumps(wire), _purpose(use, app.label))

    def _open(self, sealed: bytes, label: str, use: bytes) -> TicketAccess | None:
        wire = self._config.seal.open(sealed, _purpose(use, label)) if sealed else None
        if wire is None:
            return None
        access_id, expires, kind, namespace, name, *session = orjson.loads(wire)
        app = EmbeddedApp(kind=kind, namespace=namespace, name=name)
        is_current = self._now() < expires
        access = TicketAccess(id=access_id, app=app, session=session_from_wire(session), expires=expires)
        return access if is_current else None

    def _is_first_use(self, access: TicketAccess) -> bool:
        now = self._now()
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)
        if access.id in self._used or len(self._used) >= MAX_USED:
            return False
        # Longer than the ticket lives, so that the order of entries is that of their expiry.
        self._used[access.id] = now + TICKET_SECONDS
        return True

    def _until(self, session: LoginSession, seconds: float) -> float:
        return min(self._now() + seconds, session.expires)

    def _now(self) -> float:
        return self._config.clock.now().timestamp()


def _purpose(use: bytes, label: str) -> bytes:
    return use + b" " + label.encode()
