"""Get and list: straight from the bytes in memory."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import orjson

from paceline.api import refusal
from paceline.api.exchange import Answer, Request
from paceline.api.paths import Target
from paceline.api.render import Form, Tables, form_of, list_of, one_of, partial_list_of
from paceline.api.select import Selection, selection_of
from paceline.api.server import Server
from paceline.objects.meta import Object
from paceline.store.store import Store, Stored

# Lists that are read page by page and have changed meanwhile: kept until newer ones push them out.
MAX_KEPT_LISTS = 32
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a list goes on: at which revision it is, 0 for whatever is newest, and after which key."""

    revision: int
    after: str

    def to_text(self) -> str:
        """Write it as the token that clients send back."""
        wire = {"v": "meta.k8s.io/v1", "rv": self.revision or -1, "start": self.after}
        return urlsafe_b64encode(orjson.dumps(wire)).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> "Mark":
        """Read a token, or refuse."""
        try:
            wire = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            revision, after = wire["rv"], wire["start"]
        except (NotBase64, ValueError, TypeError, KeyError) as error:
            raise refusal.bad_request("invalid continue token: continue key is not valid") from error
        if not isinstance(revision, int) or not isinstance(after, str):
            raise refusal.bad_request("invalid continue token: continue key is not valid")
        return cls(revision=max(revision, 0), after=after)


class KeptLists:
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

    def again(self, prefix: str, mark: Mark) -> tuple[int, tuple[Stored, ...]]:
        """Give the list that a mark belongs to, or refuse and say how to go on without it."""
        if mark.revision in {0, self._store.revision}:
            return self.newest(prefix)
        kept = self._kept.get((prefix, mark.revision))
        if kept is None:
            raise refusal.expired(_TOO_OLD, go_on=replace(mark, revision=0).to_text())
        return mark.revision, kept


class Reads:
    """The verbs that only look."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lists = KeptLists(server.store)

    async def get(self, request: Request, target: Target) -> Answer:
        """Answer with one object."""
        check_revision(request, self._server.store)
        stored = self._server.store.get(target.key)
        if stored is None:
            raise refusal.not_found(target.resource, target.name)
        return Answer(body=one_of(request, target.resource, stored, clock=self._server.clock))

    async def list(self, request: Request, target: Target) -> Answer:
        """Answer with all objects that are meant, or with a page of them."""
        form, selection = form_of(request), selection_of(request, target)
        limit = number_of(request, "limit") or 0
        prefix, token = selection.prefix(target), request.query.get("continue", "")
        if token:
            mark = Mark.of(token)
            revision, items = self._lists.again(prefix, mark)
        else:
            check_revision(request, self._server.store)
            mark = Mark(revision=0, after="")
            revision, items = self._lists.newest(prefix)
        page, more = _page(items, selection, mark.after, limit=limit)
        metadata: Object = {"resourceVersion": str(revision)}
        if more:
            self._lists.keep(prefix, revision, items)
            metadata["continue"] = Mark(revision=revision, after=page[-1].key).to_text()
            if selection.is_all:
                metadata["remainingItemCount"] = sum(1 for _ in _after(items, page[-1].key))
        return Answer(body=self._body(request, target, form, page=page, metadata=metadata))

    def _body(
        self, request: Request, target: Target, form: Form, *, page: tuple[Stored, ...], metadata: Object
    ) -> bytes:
        values = (stored.value for stored in page)
        match form:
            case Form.TABLE:
                return Tables(request, target.resource, self._server.clock).of(values, metadata)
            case Form.METADATA:
                return partial_list_of(values, metadata)
            case Form.OBJECT:
                return list_of(target.resource, values, metadata)


def _page(
    items: tuple[Stored, ...], selection: Selection, after: str, *, limit: int
) -> tuple[tuple[Stored, ...], bool]:
    rest = _after(items, after)
    if not selection.is_all:
        rest = (stored for stored in rest if selection.takes(stored.key, stored.value))
    if not limit:
        return tuple(rest), False
    page = tuple(islice(rest, limit))
    return page, next(rest, None) is not None


def _after(items: tuple[Stored, ...], key: str) -> Iterator[Stored]:
    return (stored for stored in items if stored.key > key) if key else iter(items)


def number_of(request: Request, name: str) -> int | None:
    """Read a query parameter that is a number."""
    text = request.query.get(name, "")
    if not text:
        return None
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise refusal.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def revision_of(request: Request) -> int | None:
    """Read the revision that a request asks for."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= _LARGEST):
        raise refusal.bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}"')
    return int(text)


def check_revision(request: Request, store: Store) -> None:
    """Refuse what cannot be shown: a revision to come, or exactly one that has passed."""
    wanted, current = revision_of(request), store.revision
    if not wanted:
        return
    if wanted > current:
        raise refusal.too_new(wanted, current)
    if request.query.get("resourceVersionMatch") == "Exact" and wanted != current:
        raise refusal.expired(f"The resourceVersion for the provided list is too old: {wanted} ({current})")
