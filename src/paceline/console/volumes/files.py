"""`/api/volumes/NAMESPACE/CLAIM/…`: the files of a claim. Files are downloads, and never pages."""

from collections.abc import Iterable
from urllib.parse import quote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from paceline.apimachinery.name_validation import subdomain_problem
from paceline.client.http.reverse_proxy import Headers, ProxyRequest, pass_on
from paceline.client.http.transport import Unreachable
from paceline.console.people import Person, person_of
from paceline.console.responses import json_response
from paceline.console.runtime import runtime_of
from paceline.console.volumes.explorers import ClaimRef
from paceline.errors import BadRequest
from paceline.presentation import explorer

PREFIX = "/api/volumes/{namespace}/{claim}"
READS = ("list", "stat", "usage", "curves", "file", "archive", "upload")
CHANGES = ("folder", "rename")
REMOVALS = ("file", "upload")
DOWNLOADS = frozenset({"file", "archive"})
REQUEST_HEADERS = frozenset({"content-length", "content-type", "if-range", "range"})
RESPONSE_HEADERS = frozenset({"accept-ranges", "content-length", "content-range", "etag"})
ANSWERED = 503


async def open_volume(request: Request) -> Response:
    """Have the Explorer of a claim run; 503 with the reason if that takes long."""
    person, claim = person_of(request), claim_in(request)
    await runtime_of(request).explorers.token(person, claim)
    return json_response({"ready": True})


class ExplorerRoute:
    """Passes requests for one route of the Explorer on, with its token."""

    def __init__(self, route: str) -> None:
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what the Explorer answers."""
        connection = HTTPConnection(scope)
        person, claim, explorers = person_of(connection), claim_in(connection), runtime_of(connection).explorers
        token = await explorers.token(person, claim)
        headers = [(name, text) for name, text in connection.headers.items() if name in REQUEST_HEADERS]
        request = ProxyRequest(
            method=scope["method"],
            target=self._target(person, claim, scope),
            headers=(*person.upstream.headers, (explorer.TOKEN_HEADER, token), *headers),
        )

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == ANSWERED:
                    explorers.forget(person, claim)
                wire = [(name.encode(), text.encode()) for name, text in self._headers(message, connection)]
                message = {**message, "headers": wire}
            await send(message)

        try:
            await pass_on(person.upstream.endpoint.address, request, receive, answer, person.upstream.tls)
        except Unreachable:
            explorers.forget(person, claim)
            raise

    def _target(self, person: Person, claim: ClaimRef, scope: Scope) -> str:
        path = explorer.proxy_path(claim.namespace, explorer.explorer_name(claim.name), f"/{self._route}")
        query = scope.get("query_string", b"").decode("latin-1")
        return f"{person.upstream.endpoint.prefix}{path}{f'?{query}' if query else ''}"

    def _headers(self, message: Message, connection: HTTPConnection) -> Headers:
        received = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in message["headers"]]
        allowed = [(name, text) for name, text in received if name in RESPONSE_HEADERS]
        is_download = self._route in DOWNLOADS and connection.scope["method"] == "GET" and message["status"] < 300
        if not is_download:
            return (*allowed, ("content-type", "application/json"))
        name = download_name(connection.query_params.get("path", ""), claim_in(connection).name)
        suffix = f".{connection.query_params.get('format', 'zip')}" if self._route == "archive" else ""
        return (*allowed, *attachment(name + suffix))


def claim_in(connection: HTTPConnection) -> ClaimRef:
    """Return the claim that a request names; raise BadRequest if it cannot be the name of one."""
    namespace, name = connection.path_params["namespace"], connection.path_params["claim"]
    for word in (namespace, name):
        if problem := subdomain_problem(word):
            raise BadRequest(f"{word!r} {problem}")
    return ClaimRef(namespace=namespace, name=name)


def download_name(path: str, claim: str) -> str:
    """Return the name under which a browser saves a file: the last part of its path."""
    return next((part for part in reversed(path.split("/")) if part not in ("", ".")), claim)


def attachment(name: str) -> Iterable[tuple[str, str]]:
    """Return the headers of a download: no browser shows it as a page, whatever is in it."""
    yield "content-type", "application/octet-stream"
    yield "content-disposition", f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


def _routes() -> Iterable[BaseRoute]:
    yield Route(f"{PREFIX}/open", open_volume, methods=["POST"])
    verbs: dict[str, list[str]] = {}
    for method, names in (("GET", READS), ("PUT", ("upload",)), ("POST", CHANGES), ("DELETE", REMOVALS)):
        for name in names:
            verbs.setdefault(name, []).append(method)
    for name, methods in verbs.items():
        yield Route(f"{PREFIX}/{name}", ExplorerRoute(name), methods=methods)


ROUTES = tuple(_routes())
