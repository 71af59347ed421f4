"""Logs of containers as downloads: whole or a part, streamed and never kept in memory as a whole."""

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.timestamps import moment_from, to_wire_micro
from paceline.console.people import person_of
from paceline.console.runtime import runtime_of
from paceline.console.subscriptions.log_source import PodLogSource
from paceline.console.subscriptions.messages import LogSubscription
from paceline.errors import BadRequest, PacelineError
from paceline.presentation.log_lines import NEVER, STAMPS, Moment, in_micros, moment_at, moment_of, without_stamp

log = logging.getLogger(__name__)

# To find the last lines that match, the most recent ones are kept in memory: at most this many bytes.
MAX_TAIL_BYTES = 16 * 1024 * 1024
MAX_FIND = 1000
PARAMETERS = frozenset({"since", "until", "tail", "find", "ignoreCase", "timestamps", "previous", "uid"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilter:
    """Which lines of a log a download has, and how they are written."""

    until: Moment | None = None
    # In lower case if case is ignored.
    text: bytes = b""
    is_case_ignored: bool = False
    has_timestamps: bool = False
    # How many of the lines that pass the other criteria, counted from the end; None for all.
    tail: int | None = None

    @property
    def takes_all(self) -> bool:
        """Return whether no line is left out."""
        return self.until is None and not self.text and self.tail is None

    def select(self, line: bytes, moment: Moment) -> bool:
        """Return whether the download has a line; `moment` is its time."""
        if self.until is not None and in_micros(moment) > self.until:
            return False
        text = without_stamp(line)
        return self.text in (text.lower() if self.is_case_ignored else text)


async def filtered(chunks: AsyncIterator[bytes], line_filter: LineFilter) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a log that the filter selects; chunks end at line breaks."""
    if line_filter.takes_all:
        async for chunk in chunks:
            yield chunk if line_filter.has_timestamps else STAMPS.sub(b"", chunk)
        return
    last, last_lines, size = NEVER, deque[bytes](), 0
    async for chunk in chunks:
        selected = []
        for line in _lines(chunk):
            # A part of a split line has no timestamp: it is treated like its beginning.
            last = max(last, moment_of(line))
            if line_filter.select(line, last):
                selected.append(line if line_filter.has_timestamps else without_stamp(line))
        if line_filter.tail is None:
            yield b"".join(selected)
            continue
        last_lines.extend(selected)
        size += sum(map(len, selected))
        while last_lines and (len(last_lines) > line_filter.tail or size > MAX_TAIL_BYTES):
            size -= len(last_lines.popleft())
    yield b"".join(last_lines)


def _lines(chunk: bytes) -> list[bytes]:
    """Return the lines of a chunk; a carriage return does not end one."""
    *lines, last = chunk.split(b"\n")
    return [*(line + b"\n" for line in lines), *((last,) if last else ())]


async def download(request: Request) -> Response:
    """Answer with the log of a container as a file."""
    query, path = request.query_params, request.path_params
    if unknown := query.keys() - PARAMETERS:
        raise BadRequest(f"{min(unknown)} is not supported; use one of: {', '.join(sorted(PARAMETERS))}")
    for name, value in path.items():
        if problem := subdomain_problem(value):
            raise BadRequest(f"{name}: {value!r} {problem}")
    line_filter, since = _filter(query), query.get("since")
    if not (line_filter.until or line_filter.text):
        # The node finds the last lines, and reads no others.
        line_filter, tail = replace(line_filter, tail=None), line_filter.tail
    else:
        tail = None
    subscription = LogSubscription(
        **path,
        uid=query.get("uid", ""),
        is_previous=_flag(query, "previous"),
        tail=tail,
        after=to_wire_micro(_moment("since", since)) if since else "",
    )
    source = PodLogSource(
        client=person_of(request).client, request=subscription, chance=runtime_of(request).config.chance
    )
    lines = filtered(source.read(), line_filter)
    # Errors are answered as such as long as nothing is sent.
    first = await anext(lines, b"")
    headers = {"content-disposition": f'attachment; filename="{subscription.pod}-{subscription.container}.log"'}
    body = _body(first, lines, abort=request.state.abort)
    return StreamingResponse(body, media_type="text/plain; charset=utf-8", headers=headers)


async def _body(
    first: bytes, lines: AsyncGenerator[bytes, None], *, abort: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    """Yield what is sent; if it breaks off, the browser must not take a part for the whole."""
    async with aclosing(lines):
        yield first
        try:
            async for chunk in lines:
                if chunk:
                    yield chunk
        except PacelineError as error:
            log.warning("the download of a log broke off", extra={"error": str(error)})
            abort()


def _filter(query: Mapping[str, str]) -> LineFilter:
    text, is_case_ignored = query.get("find", ""), _flag(query, "ignoreCase")
    if len(text) > MAX_FIND:
        raise BadRequest(f"find may have {MAX_FIND} characters")
    until = query.get("until")
    return LineFilter(
        until=moment_at(_moment("until", until)) if until else None,
        text=(text.lower() if is_case_ignored else text).encode(),
        is_case_ignored=is_case_ignored,
        has_timestamps=_flag(query, "timestamps"),
        tail=_count(query, "tail"),
    )


def _moment(name: str, text: str) -> datetime:
    try:
        return moment_from(text)
    except ValueError as error:
        raise BadRequest(f"{name}: {text!r} is not an RFC 3339 time") from error


def _count(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadRequest(f"{name}: {text!r} is not a whole number")
    return None if text is None else int(text)


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false", "1", "0"):
        raise BadRequest(f"{name}: {text!r} is neither true nor false")
    return text in ("true", "1")


ROUTES: tuple[BaseRoute, ...] = (Route("/api/logs/{namespace}/{pod}/{container}", download),)
