"""Get and list, from the encoded objects in memory."""

import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import orjson

from paceline.apimachinery.meta import Object
from paceline.apiserver import status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import (
    META_API,
    Representation,
    TableRenderer,
    list_response,
    partial_list_response,
    render_object,
    representation_of,
)
from paceline.apiserver.handlers.list_options import (
    ListOptions,
    Selection,
    list_options_of,
    resource_version_param,
    selection_of,
)
from paceline.apiserver.http_types import HttpRequest, HttpResponse
from paceline.apiserver.object_strategy import in_version
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import in_slices
from paceline.errors import Expired
from paceline.store.store import Store, Stored
from paceline.store.watch_hub import Ahead

# Keep this many lists; the oldest one is dropped.
MAX_KEPT_LISTS = 32
_TOO_OLD = "the continue token is too old; list again, or continue in the newest list with the token in this response"
_TOO_OLD_FOR_LIST = "the resourceVersion of the list is too old; list again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueToken:
    """Position in a paginated list: its revision (0 for the newest) and the last key."""

    revision: int
    last_key: str

    def to_text(self) -> str:
        wire = {"v": META_API, "rv": self.revision or -1, "start": self.last_key}
        return urlsafe_b64encode(orjson.dumps(wire)).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> "ContinueToken":
        """Parse a token, or raise BadRequest."""
        try:
            wire = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            version, revision, last_key = wire.get("v", ""), wire.get("rv"), wire.get("start")
        except (NotBase64, ValueError, AttributeError) as error:
            raise status_errors.bad_request("invalid continue token: continue key is not valid") from error
        if version != META_API:
            reason = f"server does not recognize this encoded version {version}"
            raise status_errors.bad_request(f"invalid continue token: continue key is not valid: {reason}")
        if type(revision) is not int or not isinstance(last_key, str) or not last_key:
            raise status_errors.bad_request("invalid continue token: continue key is not valid")
        return cls(revision=max(revision, 0), last_key=last_key)


class ListSnapshots:
    """Lists that clients read page by page, so that all pages show the same revision."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lists_by_revision: OrderedDict[tuple[str, int], tuple[Stored, ...]] = OrderedDict()

    def newest(self, prefix: str) -> tuple[int, tuple[Stored, ...]]:
        return self._store.revision, self._store.list(prefix)

    def remember(self, prefix: str, revision: int, items: tuple[Stored, ...]) -> None:
        """Keep a list; it shares its objects with the store."""
        self._lists_by_revision[prefix, revision] = items
        self._lists_by_revision.move_to_end((prefix, revision))
        while len(self._lists_by_revision) > MAX_KEPT_LISTS:
            self._lists_by_revision.popitem(last=False)

    def at_token(self, prefix: str, token: ContinueToken) -> tuple[int, tuple[Stored, ...]]:
        """Return the list of a token, or raise Expired with a token that continues in the newest list."""
        if token.revision in {0, self._store.revision}:
            return self.newest(prefix)
        try:
            return token.revision, self.at(prefix, token.revision)
        except (Ahead, Expired) as error:
            # A revision in the future is from before a restore, or forged.
            raise status_errors.expired(_TOO_OLD, continue_token=replace(token, revision=0).to_text()) from error

    def at(self, prefix: str, revision: int) -> tuple[Stored, ...]:
        items = self._lists_by_revision.get((prefix, revision))
        return self._store.list_at(prefix, revision) if items is None else items


class ReadHandler:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._lists = ListSnapshots(server.store)

    async def get(self, request: HttpRequest, target: Target) -> HttpResponse:
        if request.query:
            self._check_revision(resource_version_param(request))
        stored = self._server.find(target)
        return HttpResponse(body=render_object(request, target.resource, stored, clock=self._server.clock))

    async def list(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Respond with the selected objects, or with a page of them."""
        form, selection, options = (
            representation_of(request, many=True),
            selection_of(request, target),
            list_options_of(request),
        )
        prefix = selection.prefix(target)
        position = ContinueToken.of(options.token) if options.token else ContinueToken(revision=0, last_key="")
        revision, items = self._lists.at_token(prefix, position) if options.token else self._first_list(prefix, options)
        page, has_more = await _page(items, selection, position.last_key, limit=options.limit)
        metadata: Object = {"resourceVersion": str(revision)}
        if has_more:
            self._lists.remember(prefix, revision, items)
            metadata["continue"] = ContinueToken(revision=revision, last_key=page[-1].key).to_text()
            if selection.is_all:
                metadata["remainingItemCount"] = sum(1 for _ in _items_after(items, page[-1].key))
        return await self._respond(request, target, form, page=page, metadata=metadata)

    def _first_list(self, prefix: str, options: ListOptions) -> tuple[int, tuple[Stored, ...]]:
        self._check_revision(options.revision)
        if not options.revision or not options.is_exact:
            return self._lists.newest(prefix)
        try:
            return options.revision, self._lists.at(prefix, options.revision)
        except Expired as error:
            raise status_errors.expired(_TOO_OLD_FOR_LIST) from error

    def _check_revision(self, revision: int | None) -> None:
        if revision and revision > self._server.store.revision:
            raise status_errors.revision_too_large(revision, self._server.store.revision)

    async def _respond(
        self, request: HttpRequest, target: Target, form: Representation, *, page: tuple[Stored, ...], metadata: Object
    ) -> HttpResponse:
        values = [stored.value for stored in page]
        if target.resource.is_shared:
            slices = in_slices(values, len)
            values = [in_version(target.resource, value) async for some in slices for value in some]
        match form:
            case Representation.TABLE:
                return await TableRenderer(request, target.resource, self._server.clock).response(values, metadata)
            case Representation.METADATA:
                return await partial_list_response(request, values, metadata)
            case Representation.OBJECT:
                return list_response(target.resource, values, metadata)


async def _page(
    items: tuple[Stored, ...], selection: Selection, last_key: str, *, limit: int
) -> tuple[tuple[Stored, ...], bool]:
    remaining = _items_after(items, last_key)
    if selection.is_all:
        page = tuple(islice(remaining, limit or None))
        return page, next(remaining, None) is not None
    # One more than the limit shows that there is another page.
    most = limit + 1 if limit else sys.maxsize
    chosen: list[Stored] = []
    async for some in in_slices(remaining, lambda stored: len(stored.value)):
        chosen += [stored for stored in some if selection.takes(stored.key, stored.value)]
        if len(chosen) >= most:
            break
    return tuple(chosen[: limit or None]), len(chosen) >= most


def _items_after(items: tuple[Stored, ...], key: str) -> Iterator[Stored]:
    return (stored for stored in items if stored.key > key) if key else iter(items)
