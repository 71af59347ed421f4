"""Sealed bytes as the text of cookies. Browsers take cookies of 4,096 bytes, so a long one is split into several."""

import base64
import binascii
from collections.abc import Iterator, Mapping

from paceline.errors import TooLarge

# Leaves room for the name and the attributes.
CHUNK_CHARS = 3600
MAX_CHUNKS = 4
COUNTS = tuple(str(count + 1) for count in range(MAX_CHUNKS))


def cookie_names(name: str) -> list[str]:
    """Return the names of all cookies that a text may be split into."""
    return [name, *(f"{name}-{number}" for number in range(1, MAX_CHUNKS))]


def split_cookie(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the cookies of a text; the first one starts with their number."""
    chunks = [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)]
    if len(chunks) > MAX_CHUNKS:
        raise TooLarge(f"the token is too long for a session, which may have {MAX_CHUNKS * CHUNK_CHARS} bytes")
    yield from zip(cookie_names(name), [f"{len(chunks)}.{chunks[0]}", *chunks[1:]], strict=False)


def join_cookie(name: str, cookies: Mapping[str, str]) -> str:
    """Return the text of a request's cookies; empty if it has none of this name."""
    names = cookie_names(name)
    count, _, first = cookies.get(name, "").partition(".")
    part_names = names[1 : int(count)] if count in COUNTS else []
    return first + "".join(cookies.get(name, "") for name in part_names)


def encode(data: bytes) -> str:
    """Return bytes as URL-safe base64."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Return the bytes of URL-safe base64; nothing if it is none."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
