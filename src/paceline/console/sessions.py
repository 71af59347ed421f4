"""One-time codes, and sessions that live in a sealed cookie of the browser."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from paceline.console.config import LOCAL_DOMAIN, ConsoleConfig
from paceline.console.sealed_cookies import cookie_names, decode, encode, join_cookie, split_cookie
from paceline.effects import Clock, Ids
from paceline.errors import Forbidden, ServiceUnavailable, Unauthorized

CODE_SECONDS = 60.0
# Codes that wait for their login, or are remembered as used.
MAX_CODES = 1000
SESSION = b"session"
LOG_IN = "run `paceline ui` to log in"
PASTE = "log in with a token"
AGAIN = "run `paceline ui` again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Whom a session is for. Without a token it acts with the console's own credential."""

    name: str
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSession:
    """One login of one browser. Times are in seconds since the epoch."""

    id: str
    login: Login
    issued: float
    expires: float


@dataclass(slots=True)
class _Code:
    login: Login
    deadline: float
    is_used: bool = False


class OneTimeCodes:
    """Codes that a browser exchanges for a session: once, and within a minute."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        # By hash, so that a lookup reveals nothing about similar codes.
        self._codes: dict[str, _Code] = {}

    def create(self, login: Login) -> str:
        """Return a new code."""
        now = self._clock.monotonic()
        # Expired codes are remembered for another minute, so that the error can say that the code has expired.
        self._codes = {key: code for key, code in self._codes.items() if now < code.deadline + CODE_SECONDS}
        if len(self._codes) >= MAX_CODES:
            raise ServiceUnavailable(f"{MAX_CODES} logins have begun within two minutes; try again in a minute")
        text = self._ids.secret()
        self._codes[_hash(text)] = _Code(login, now + CODE_SECONDS)
        return text

    def redeem(self, text: str) -> Login:
        """Return whom a code is for; raise Forbidden if it is unknown, used or expired."""
        code = self._codes.get(_hash(text))
        if code is None:
            raise Forbidden(f"the login code is not valid; {AGAIN}")
        if code.is_used:
            raise Forbidden(f"the login code has been used already; if that was not you, log out, then {AGAIN}")
        if self._clock.monotonic() >= code.deadline:
            raise Forbidden(f"the login code is older than {CODE_SECONDS:.0f} seconds; {AGAIN}")
        code.is_used = True
        return code.login


class Sessions:
    """Makes and reads the cookies of sessions."""

    def __init__(self, config: ConsoleConfig) -> None:
        self._config = config
        self._how = LOG_IN if config.has_own_credential else PASTE

    def begin(self, login: Login) -> LoginSession:
        """Return a new session, which ends with the token, and after some weeks at the latest."""
        now = self._config.clock.now().timestamp()
        expires = min(now + self._config.session_seconds, expiry_of(login.token))
        return LoginSession(id=self._config.ids.uid(), login=login, issued=now, expires=expires)

    def cookies(self, session: LoginSession, host: str) -> Iterator[str]:
        """Yield the Set-Cookie headers of a session; a long token takes several."""
        text = encode(self._config.seal.seal(orjson.dumps(session_to_wire(session)), SESSION))
        for name, chunk in split_cookie(self._name(host), text):
            yield self._cookie(name, chunk, int(session.expires - session.issued))

    def expired_cookies(self, host: str) -> Iterator[str]:
        """Yield the Set-Cookie headers that remove a session from the browser."""
        for name in cookie_names(self._name(host)):
            yield self._cookie(name, "", 0)

    def read(self, cookies: Mapping[str, str], host: str) -> LoginSession:
        """Return the session of a request; raise Unauthorized if it has none, or one that is over."""
        text = join_cookie(self._name(host), cookies)
        if not text:
            raise Unauthorized(f"you are not logged in; {self._how}")
        sealed = decode(text)
        wire = self._config.seal.open(sealed, SESSION) if sealed else None
        if wire is None:
            raise Unauthorized(f"the session is not valid any more; {self._how}")
        session = session_from_wire(orjson.loads(wire))
        if self.seconds_left(session) <= 0:
            raise Unauthorized(f"the session has expired; {self._how}")
        return session

    def seconds_left(self, session: LoginSession) -> float:
        """Return how long a session is still valid."""
        return session.expires - self._config.clock.now().timestamp()

    def _name(self, host: str) -> str:
        """Return the name of the cookie, with the port, because browsers share cookies between ports of a host."""
        name, _, port = host.rpartition(":")
        bare = f"paceline-{port}" if name else "paceline"
        return f"__Host-{bare}" if self._is_host_only(host) else bare

    def _is_host_only(self, host: str) -> bool:
        """Return whether browsers accept a cookie that no page of another host, such as a TensorBoard, can replace.

        Safari refuses it at plain HTTP; there the console is at `localhost`, which no other page shares.
        """
        return self._config.scheme == "https" or host.rpartition(":")[0] == LOCAL_DOMAIN

    def _cookie(self, name: str, text: str, seconds: int) -> str:
        secure = "; Secure" if name.startswith("__Host-") else ""
        return f"{name}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def session_to_wire(session: LoginSession) -> list[object]:
    """Return a session as JSON, with its token: only sealed may it leave this process."""
    return [session.id, session.login.name, session.issued, session.expires, session.login.token]


def session_from_wire(wire: list[Any]) -> LoginSession:
    """Return the session that was sealed."""
    session_id, name, issued, expires, token = wire
    return LoginSession(id=session_id, login=Login(name=name, token=token), issued=issued, expires=expires)


def expiry_of(token: str) -> float:
    """Return when a token expires, if it is a JWT that says so. The cluster verifies it; this is a display value."""
    parts = token.split(".")
    try:
        claims = orjson.loads(decode(parts[1])) if len(parts) == 3 else {}
        return float(claims.get("exp") or "inf")
    except (AttributeError, TypeError, ValueError):
        return float("inf")


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
