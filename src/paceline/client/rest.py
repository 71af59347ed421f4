"""The verbs of a cluster over any transport: build the request, send it, parse the response."""

import asyncio
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

TOO_MANY_REQUESTS = 429
# How often a request is sent again that the server did not accept and wants later.
MAX_RETRIES = 10
# Called with the text of each Warning header.
OnWarning = Callable[[str], None]


def log_warning(text: str) -> None:
    """Write a server's warning to the log."""
    # A deprecated kind concerns the maintainers of the controllers, not their users.
    level = logging.INFO if "is deprecated in" in text else logging.WARNING
    log.log(level, "the server warns", extra={"warning": text})


class Verbs:
    """A cluster behind a transport; implements `paceline.client.interface.Cluster`."""

    def __init__(self, transport: Transport, *, on_warning: OnWarning = log_warning) -> None:
        self._transport = transport
        self._on_warning = on_warning

    async def get(self, where: Collection, namespace: str, name: str) -> Object:
        return await self._object(requests.get(where, namespace, name))

    async def list(self, where: Collection, select: Select | None = None, *, limit: int = 500) -> Page:
        select = select or Select()
        first = page = await self.page(where, select, limit=limit)
        items = list(first.items)
        while page.next:
            try:
                page = await self.page(where, select, limit=limit, after=page.next)
            except Expired:
                # Reading took longer than the server keeps history; one request for everything needs none.
                return await self.page(where, select, limit=0)
            items.extend(page.items)
        return Page(items=tuple(items), revision=first.revision)

    async def page(self, where: Collection, select: Select, *, limit: int, after: str = "") -> Page:
        """Read one page of a list; Expired when the list it continues is no longer kept."""
        request = requests.page(where, select, limit=limit, after=after)
        return responses.trimmed(responses.read_page(await self.send(request)), select)

    async def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        request = requests.watch(where, select, since=since, timeout_seconds=timeout_seconds)
        lines = responses.Lines()
        async with aclosing(self._transport.stream(request)) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    yield responses.trimmed(responses.read_event(line), select)

    async def create(self, where: Collection, obj: Object, *, author: str = "") -> Object:
        return await self._object(requests.create(where, obj, author=author))

    async def replace(self, where: Collection, obj: Object, *, subresource: str = "") -> Object:
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
        request = requests.patch(where, key, patch, kind=kind, subresource=subresource)
        return await self._object(request)

    async def apply(self, where: Collection, obj: Object, *, author: str, force: bool = False) -> Object:
        return await self._object(requests.apply(where, obj, author=author, force=force))

    async def delete(self, where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> None:
        await self._object(requests.delete(where, key, options))

    async def post(self, path: str, body: Object) -> Object:
        return await self._object(requests.post(path, body))

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._transport.stream(requests.stream(path, query))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _object(self, request: Request) -> Object:
        return responses.read_object(await self.send(request))

    async def send(self, request: Request) -> Response:
        response = await self._transport.send(request)
        for _ in range(MAX_RETRIES):
            seconds = responses.retry_after_of(response)
            if response.status != TOO_MANY_REQUESTS or not seconds:
                break
            # It was not carried out. Ask through the whole transport again: a leader may have lost its lease meanwhile.
            await asyncio.sleep(seconds)
            response = await self._transport.send(request)
        for text in responses.warnings_of(response):
            self._on_warning(text)
        return response
