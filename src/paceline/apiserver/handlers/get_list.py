"""Get and list: straight from the bytes in memory."""

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
from paceline.apiserver.crd.conversion import in_version
from paceline.apiserver.encoding.negotiation import (
    META_API,
    Representation,
    TableRenderer,
    list_response,
    partial_list_response,
    render_object,
    representation_of,
)
from paceline.apiserver.handlers.list_options import ListOptions, list_options_of, resource_version_param
from paceline.apiserver.handlers.selection import Selection, selection_of
from paceline.apiserver.http_types import HttpRequest, HttpResponse
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import in_slices
from paceline.errors import Expired
from paceline.store.store import Store, Stored
from paceline.store.watch_hub import Ahead

# Lists that are read page by page and have changed meanwhile: kept until newer ones push them out.
MAX_KEPT_LISTS = 32
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_TOO_OLD_FOR_LIST = "The resourceVersion for the provided list is too old."


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueToken:
    """Where a list goes on: at which revision it is, 0 for whatever is newest, and after which key."""

    revision: int
    after: str

    def to_text(self) -> str:
        """Write it as the token that clients send back."""
        wire = {"v": META_API, "rv": self.revision or -1, "start": self.after}
        return urlsafe_b64encode(orjson.dumps(wire)).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> "ContinueToken":
        """Read a token, or refuse."""
        try:
            wire = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            version, revision, after = wire.get("v", ""), wire.get("rv"), wire.get("start")
        except (NotBase64, ValueError, AttributeError) as error:
            raise status_errors.bad_request("invalid continue token: continue key is not valid") from error
        if version != META_API:
            why = f"server does not recognize this encoded version {version}"
            raise status_errors.bad_request(f"invalid continue token: continue key is not valid: {why}")
        if type(revision) is not int or not isinstance(after, str) or not after:
            raise status_errors.bad_request("invalid continue token: continue key is not valid")
        return cls(revision=max(revision, 0), after=after)


class ListSnapshots:
    """The lists that someone is in the middle of reading, so that every page shows the same moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, int], tuple[Stored, ...]] = OrderedDict()

    def newest(self, prefix: str) -> tuple[int, tuple[Stored, ...]]:
        """Give what is there now, and the revision of it."""
        return self._store.revision, self._store.list(prefix)

    def keep(self, prefix: str, revision: int, items: tuple[Stored, ...]) -> None:
        """Remember a list; it shares its objects with the store, so only what changes costs memory."""
        self._kept[prefix, revision] = items
        self._kept.move_to_end((prefix, revision))
        while len(self._kept) > MAX_KEPT_LISTS:
            self._kept.popitem(last=False)

    def again(self, prefix: str, mark: ContinueToken) -> tuple[int, tuple[Stored, ...]]:
        """Give the list that a mark belongs to, or refuse and say how to go on without it."""
        if mark.revision in {0, self._store.revision}:
            return self.newest(prefix)
        try:
            return mark.revision, self.at(prefix, mark.revision)
        except (Ahead, Expired) as error:
            # A revision that is yet to come is of a store before it was restored, or of nobody.
            raise status_errors.expired(_TOO_OLD, go_on=replace(mark, revision=0).to_text()) from error

    def at(self, prefix: str, revision: int) -> tuple[Stored, ...]:
        """Give what was there at a revision; Expired when that is not known any more."""
        kept = self._kept.get((prefix, revision))
        return self._store.list_at(prefix, revision) if kept is None else kept


class ReadHandler:
    """The verbs that only look."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lists = ListSnapshots(server.store)

    async def get(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Answer with one object."""
        if request.query:
            self._check_new(resource_version_param(request))
        stored = self._server.store.get(target.key)
        if stored is None:
            raise status_errors.not_found(target.resource, target.name)
        return HttpResponse(body=render_object(request, target.resource, stored, clock=self._server.clock))

    async def list(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Answer with all objects that are meant, or with a page of them."""
        form, selection, asked = (
            representation_of(request, many=True),
            selection_of(request, target),
            list_options_of(request),
        )
        prefix = selection.prefix(target)
        mark = ContinueToken.of(asked.token) if asked.token else ContinueToken(revision=0, after="")
        revision, items = self._lists.again(prefix, mark) if asked.token else self._from(prefix, asked)
        page, more = await _page(items, selection, mark.after, limit=asked.limit)
        metadata: Object = {"resourceVersion": str(revision)}
        if more:
            self._lists.keep(prefix, revision, items)
            metadata["continue"] = ContinueToken(revision=revision, after=page[-1].key).to_text()
            if selection.is_all:
                metadata["remainingItemCount"] = sum(1 for _ in _after(items, page[-1].key))
        return await self._answer(request, target, form, page=page, metadata=metadata)

    def _from(self, prefix: str, asked: ListOptions) -> tuple[int, tuple[Stored, ...]]:
        """Give the list that a request begins with, and its revision."""
        self._check_new(asked.revision)
        if not asked.revision or not asked.is_exact:
            return self._lists.newest(prefix)
        try:
            return asked.revision, self._lists.at(prefix, asked.revision)
        except Expired as error:
            raise status_errors.expired(_TOO_OLD_FOR_LIST) from error

    def _check_new(self, wanted: int | None) -> None:
        """Refuse a revision that is yet to come."""
        if wanted and wanted > self._server.store.revision:
            raise status_errors.revision_too_large(wanted, self._server.store.revision)

    async def _answer(
        self, request: HttpRequest, target: Target, form: Representation, *, page: tuple[Stored, ...], metadata: Object
    ) -> HttpResponse:
        values = [stored.value for stored in page]
        if target.resource.is_shared:
            slices = in_slices(values, len)
            values = [in_version(target.resource, value) async for some in slices for value in some]
        match form:
            case Representation.TABLE:
                return await TableRenderer(request, target.resource, self._server.clock).answer(values, metadata)
            case Representation.METADATA:
                return await partial_list_response(request, values, metadata)
            case Representation.OBJECT:
                return list_response(target.resource, values, metadata)


async def _page(
    items: tuple[Stored, ...], selection: Selection, after: str, *, limit: int
) -> tuple[tuple[Stored, ...], bool]:
    rest = _after(items, after)
    if selection.is_all:
        page = tuple(islice(rest, limit or None))
        return page, next(rest, None) is not None
    # One more than a page says that there are more.
    most = limit + 1 if limit else sys.maxsize
    chosen: list[Stored] = []
    async for some in in_slices(rest, _size_of):
        chosen += [stored for stored in some if selection.takes(stored.key, stored.value)]
        if len(chosen) >= most:
            break
    return tuple(chosen[: limit or None]), len(chosen) >= most


def _size_of(stored: Stored) -> int:
    return len(stored.value)


def _after(items: tuple[Stored, ...], key: str) -> Iterator[Stored]:
    return (stored for stored in items if stored.key > key) if key else iter(items)
