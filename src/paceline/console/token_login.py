"""Sessions of people who bring a token: into the login page, or by a proxy that has authenticated them."""

from collections import OrderedDict
from dataclasses import dataclass
from hmac import compare_digest
from ipaddress import ip_address

from starlette.requests import HTTPConnection

from paceline.client.http.cluster import HttpCluster
from paceline.console.config import ConsoleConfig
from paceline.console.people import access_with, credential_id
from paceline.console.sessions import Login, LoginSession, Sessions
from paceline.errors import Unauthorized

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
# The cluster is asked again after this long whether it still accepts a proxy's token.
REVIEW_SECONDS = 300.0
MAX_SESSIONS = 1000


async def login_of(config: ConsoleConfig, token: str) -> Login:
    """Return whose token it is, according to the cluster; raise Unauthorized if the cluster does not accept it."""
    try:
        async with HttpCluster(access_with(config.access, token), config.chance) as cluster:
            name = await name_of_caller(cluster)
    except Unauthorized as error:
        raise Unauthorized("the cluster does not accept this token; it may have expired") from error
    is_own = compare_digest(token.encode(), config.access.token.encode())
    return Login(name=name, token="" if is_own else token)


async def name_of_caller(cluster: HttpCluster) -> str:
    """Return the user name that the cluster knows the caller of a client by."""
    review = await cluster.post(REVIEWS, dict(REVIEW))
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "unknown")


def bearer_of(connection: HTTPConnection) -> str:
    """Return the bearer token of a request; empty if it has none."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def proxied_token(connection: HTTPConnection, config: ConsoleConfig) -> str:
    """Return the token that a trusted proxy has added to a request; empty for every other sender."""
    client = connection.scope.get("client")
    if not config.trusted_proxies or not client:
        return ""
    address = ip_address(client[0])
    is_trusted = any(address in network for network in config.trusted_proxies)
    return bearer_of(connection) if is_trusted else ""


@dataclass(slots=True)
class _Reviewed:
    session: LoginSession
    # By the monotonic clock.
    deadline: float


class ProxiedSessions:
    """The sessions of tokens that a trusted proxy sends with every request."""

    def __init__(self, config: ConsoleConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions
        # By hash of the token, least recently used first.
        self._reviewed: OrderedDict[str, _Reviewed] = OrderedDict()

    async def of(self, token: str) -> LoginSession:
        """Return the session of a token; raise Unauthorized if the cluster does not accept it."""
        key, clock = credential_id(token), self._config.clock
        reviewed = self._reviewed.get(key)
        if reviewed is None or clock.monotonic() >= reviewed.deadline:
            login = await login_of(self._config, token)
            reviewed = _Reviewed(self._sessions.begin(login), clock.monotonic() + REVIEW_SECONDS)
            self._reviewed[key] = reviewed
            if len(self._reviewed) > MAX_SESSIONS:
                self._reviewed.popitem(last=False)
        self._reviewed.move_to_end(key)
        if self._sessions.seconds_left(reviewed.session) <= 0:
            raise Unauthorized("the token of the proxy has expired")
        return reviewed.session
