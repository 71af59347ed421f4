"""Who asks: the person of a session, and a client that acts as this person."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import cast

from starlette.requests import HTTPConnection

from paceline.client.http.cluster import Endpoint, HttpCluster, endpoint_of
from paceline.client.http.reverse_proxy import ANY_POD, Tls
from paceline.client.http.transport import tls_context
from paceline.client.rest_config import Access
from paceline.console.config import ConsoleConfig
from paceline.console.sessions import LoginSession

# Clients that are kept; their connections are closed when idle, so they hold little more than a TLS context.
MAX_CLIENTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """The API server as one credential reaches it, for requests that are passed on as they are."""

    endpoint: Endpoint
    tls: Tls
    # Headers that every request needs.
    headers: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A logged-in person. Handlers get it with `person_of`, or as `request.state.person`."""

    name: str
    session_id: str
    # When the session ends, in seconds since the epoch.
    expires: float
    # The same for all sessions with the same credential: the key of what may be shared between them.
    credential_id: str
    client: HttpCluster = field(repr=False, compare=False)
    upstream: Upstream = field(repr=False, compare=False)


def person_of(connection: HTTPConnection) -> Person:
    """Return the person of a request or WebSocket that the gate has let in."""
    return cast("Person", connection.state.person)


class Clients:
    """The clients of all credentials in use."""

    def __init__(self, config: ConsoleConfig) -> None:
        self._config = config
        self._clients: OrderedDict[str, tuple[HttpCluster, Upstream]] = OrderedDict()

    def person(self, session: LoginSession) -> Person:
        """Return the person of a session, who acts with its token or with the console's own credential."""
        token = session.login.token
        key = credential_id(token)
        if key not in self._clients:
            access = access_with(self._config.access, token)
            self._clients[key] = (HttpCluster(access, self._config.chance), upstream_of(access))
            if len(self._clients) > MAX_CLIENTS:
                # Not closed: its requests may be in progress, and idle connections close by themselves.
                self._clients.popitem(last=False)
        self._clients.move_to_end(key)
        client, upstream = self._clients[key]
        return Person(
            name=session.login.name,
            session_id=session.id,
            expires=session.expires,
            credential_id=key,
            client=client,
            upstream=upstream,
        )

    async def close(self) -> None:
        """Close all connections to the cluster."""
        for client, _ in self._clients.values():
            await client.close()
        self._clients.clear()


def upstream_of(access: Access) -> Upstream:
    """Return the API server of an access; its certificate is verified as the kubeconfig says."""
    endpoint, context = endpoint_of(access.server), tls_context(access)
    tls = Tls(context=context, name=access.tls_server_name) if context is not None else ANY_POD
    bearer = (("Authorization", f"Bearer {access.token}"),) if access.token else ()
    return Upstream(endpoint=endpoint, tls=tls, headers=(("Host", endpoint.host), *bearer))


def access_with(access: Access, token: str) -> Access:
    """Return how to reach the same cluster with a token, and with nothing of the console's own credential."""
    return replace(access, token=token, client_certificate=b"", client_key=b"") if token else access


def credential_id(token: str) -> str:
    """Return a name for a credential that does not reveal it; empty for the console's own one."""
    return sha256(token.encode()).hexdigest() if token else ""
