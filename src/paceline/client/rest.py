"""The verbs of a cluster over any transport: build the request, send it, read the answer."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client import requests, responses
from paceline.client.http.transport import Transport
from paceline.client.interface import Collection, Page, PatchType, Select, WatchEvent
from paceline.client.requests import Request, Response
from paceline.errors import Expired

log = logging.getLogger(__name__)

# What is done with the text of each Warning header.
OnWarning = Callable[[str], None]


def log_warning(text: str) -> None:
    """Write a server's warning to the log."""
    # That a kind is old concerns who maintains the controllers, not who runs them.
    level = logging.INFO if "is deprecated in" in text else logging.WARNING
    log.log(level, "the server warns", extra={"warning": text})


class Verbs:
    """A cluster at the far end of a transport. Keeps the contract of `paceline.client.interface`."""

    def __init__(self, transport: Transport, *, on_warning: OnWarning = log_warning) -> None:
        self._transport = transport
        self._on_warning = on_warning

    async def get(self, where: Collection, namespace: str, name: str) -> Object:
        """Read one object; Missing when it is not there."""
        return await self._object(requests.get(where, namespace, name))

    async def list(self, where: Collection, select: Select | None = None, *, limit: int = 500) -> Page:
        """Read all objects that are selected, `limit` at a time, at one revision."""
        select = select or Select()
        first = page = await self.page(where, select, limit=limit)
        items = list(first.items)
        while page.next:
            try:
                page = await self.page(where, select, limit=limit, after=page.next)
            except Expired:
                # Reading took longer than history is kept; all at once needs no history.
                return await self.page(where, select, limit=0)
            items.extend(page.items)
        return Page(items=tuple(items), revision=first.revision)

    async def page(self, where: Collection, select: Select, *, limit: int, after: str = "") -> Page:
        """Read one page of a list; Expired when the list it continues is no longer kept."""
        request = requests.page(where, select, limit=limit, after=after)
        page = responses.read_page(await self._send(request))
        # Page by page: all of them together in full would be what was not wanted.
        return responses.metadata_only(page) if select.only_ties else page

    async def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Follow what happens after a revision until the server ends the stream."""
        request = requests.watch(where, select, since=since, timeout_seconds=timeout_seconds)
        lines = responses.Lines()
        async with aclosing(self._transport.stream(request)) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    event = responses.read_event(line)
                    yield responses.metadata_only(event) if select.only_ties else event

    async def create(self, where: Collection, obj: Object, *, author: str = "") -> Object:
        """Store a new object; Exists when the name is taken, Invalid when it breaks rules."""
        return await self._object(requests.create(where, obj, author=author))

    async def replace(self, where: Collection, obj: Object, *, subresource: str = "") -> Object:
        """Store a whole object in place of the one it was read from; Conflict when that has changed."""
        return await self._object(requests.replace(where, obj, subresource=subresource))

    async def patch(
        self,
        where: Collection,
        key: tuple[str, str],
        patch: Any,
        *,
        kind: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        """Change parts of an object; a `metadata.resourceVersion` in a merge patch guards it."""
        request = requests.patch(where, key, patch, kind=kind, subresource=subresource)
        return await self._object(request)

    async def apply(self, where: Collection, obj: Object, *, author: str, force: bool = False) -> Object:
        """Make true what an author wants of an object, made if need be; Conflict when others own what would change."""
        return await self._object(requests.apply(where, obj, author=author, force=force))

    async def delete(self, where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> None:
        """Ask for an object to go; Missing when it is not there, Conflict when a precondition fails."""
        await self._object(requests.delete(where, key, options))

    async def post(self, path: str, body: Object) -> Object:
        """Send a body to a subresource that is not an object of its own (binding, eviction)."""
        return await self._object(requests.post(path, body))

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Read a path as it grows (logs); closing the generator hangs up."""
        async with aclosing(self._transport.stream(requests.stream(path, query))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _object(self, request: Request) -> Object:
        return responses.read_object(await self._send(request))

    async def _send(self, request: Request) -> Response:
        response = await self._transport.send(request)
        for text in responses.warnings_of(response):
            self._on_warning(text)
        return response
