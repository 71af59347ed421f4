"""The messages of `/api/live`: requests of a tab as typed values, and answers as frames."""

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.selector import parse_labels
from paceline.client.interface import Collection, Select
from paceline.errors import BadRequest, PacelineError

MAX_MESSAGE_BYTES = 64 * 1024
MAX_ID = 2**32 - 1
# Frames with more than this are compressed.
LARGE_BYTES = 8 * 1024
LOG_BYTES, COMPRESSED = b"\0", b"\1"
# The gzip level with the best balance of size and time for rows.
LEVEL = 4
# The gzip header: deflate, no file name, no time, no operating system.
GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[a-z0-9.-]+))/(?P<version>v[a-z0-9]+)"
    r"(?:/namespaces/(?P<namespace>[a-z0-9.-]+)(?=/))?/(?P<plural>[a-z0-9-]+)(?:/(?P<name>[a-z0-9.:-]+))?"
)
LABELS, FIELDS = "labelSelector", "fieldSelector"


class TooManyRequests(PacelineError):
    """The tab has as many subscriptions as one tab may have."""

    code, reason = 429, "TooManyRequests"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRequest:
    """Rows of a resource, in one namespace or in all."""

    type: ClassVar[str] = "rows"
    resource: str
    namespace: str
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsRequest:
    """Whole objects of a collection."""

    type: ClassVar[str] = "objects"
    collection: Collection
    select: Select
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """What a page shows about an object and all that belongs to it."""

    type: ClassVar[str] = "view"
    of: str
    kind: str = ""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSubscription:
    """The log of one container."""

    type: ClassVar[str] = "log"
    namespace: str
    pod: str
    container: str
    # Which pod of that name; empty for the newest.
    uid: str = ""
    is_followed: bool = False
    is_previous: bool = False
    tail: int | None = None
    # The stamp of the last line that the tab has, and how many lines with that stamp are left out. Many lines have the
    # same one: the node gives it to all that it reads at once.
    after: str = ""
    after_lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The tab has taken so many bytes of a log."""

    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribe:
    """The tab needs a subscription no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """The tab was hidden, or is shown again."""

    is_hidden: bool


Subscribe = RowsRequest | ObjectsRequest | ViewRequest | LogSubscription
Request = Subscribe | Credit | Unsubscribe | Visibility


class Malformed(BadRequest):
    """A message that cannot be read; `id` is its subscription, if that can be."""

    def __init__(self, message: str, subscription: int | None = None) -> None:
        super().__init__(message)
        self.subscription = subscription


def read_message(text: str) -> tuple[int, Request]:
    """Return the subscription and the request of a message; raise Malformed if it is none."""
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"a message must be JSON: {error}") from error
    if not isinstance(message, dict):
        raise Malformed("a message must be a JSON object")
    number: Any = message.get("id")
    subscription: int | None = number if _is_count(number) and number <= MAX_ID else None
    try:
        request = _read(_Fields(message))
    except BadRequest as error:
        raise Malformed(str(error), subscription) from error
    if subscription is None and not isinstance(request, Visibility):
        raise Malformed(f"id must be a whole number up to {MAX_ID}")
    return subscription or 0, request


def _read(fields: "_Fields") -> Request:
    match fields.text("type"):
        case "rows":
            return RowsRequest(
                resource=fields.text("resource"), namespace=fields.name("namespace"), since=fields.text("since")
            )
        case "objects":
            collection, select = read_path(fields.text("path"))
            return ObjectsRequest(collection=collection, select=select, since=fields.text("since"))
        case "view":
            return ViewRequest(
                of=fields.text("of"),
                kind=fields.matching("kind", _KIND),
                namespace=fields.name("namespace"),
                name=fields.name("name"),
            )
        case "log":
            return _read_log(fields)
        case "credit":
            return Credit(bytes=fields.count("bytes") or 0)
        case "unsubscribe":
            return Unsubscribe()
        case "hide" | "show" as word:
            return Visibility(is_hidden=word == "hide")
        case unknown:
            raise BadRequest(f"type {unknown!r} is unknown")


def _read_log(fields: "_Fields") -> LogSubscription:
    request = LogSubscription(
        namespace=fields.name("namespace"),
        pod=fields.name("pod"),
        container=fields.name("container"),
        uid=fields.text("uid"),
        is_followed=fields.flag("follow"),
        is_previous=fields.flag("previous"),
        tail=fields.count("tail"),
        after=fields.matching("after", _STAMP),
        after_lines=fields.count("afterLines") or 0,
    )
    if not (request.namespace and request.pod and request.container):
        raise BadRequest("a log needs namespace, pod and container")
    return request


@dataclass(frozen=True, slots=True)
class _Fields:
    """Reads the fields of a message; a missing one is empty."""

    message: Object

    def text(self, key: str) -> str:
        value = self.message.get(key)
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{key} must be a string")
        return value or ""

    def matching(self, key: str, pattern: re.Pattern[str]) -> str:
        value = self.text(key)
        if value and not pattern.fullmatch(value):
            raise BadRequest(f"{key}: {value[:80]!r} is not allowed")
        return value

    def name(self, key: str) -> str:
        return self.matching(key, _NAME)

    def count(self, key: str) -> int | None:
        value = self.message.get(key)
        if value is not None and not _is_count(value):
            raise BadRequest(f"{key} must be a whole number of at least 0")
        return value

    def flag(self, key: str) -> bool:
        value = self.message.get(key, False)
        if not isinstance(value, bool):
            raise BadRequest(f"{key} must be true or false")
        return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def read_path(path: str) -> tuple[Collection, Select]:
    """Return the collection and selection that a path of the Kubernetes API names; raise BadRequest if it is none."""
    address, _, query = path.partition("?")
    match = _PATH.fullmatch(address)
    if match is None:
        raise BadRequest(f"path: {path[:200]!r} is not the path of a collection, such as /api/v1/namespaces/team/pods")
    group, version, namespace, plural, name = match.group("group", "version", "namespace", "plural", "name")
    selectors = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := selectors.keys() - {LABELS, FIELDS}:
        raise BadRequest(f"path: {min(unknown)} is not supported; use {LABELS} or {FIELDS}")
    labels, fields = selectors.get(LABELS, ""), selectors.get(FIELDS, "")
    # This also raises BadRequest.
    parse_labels(labels)
    if name:
        fields = f"{fields},metadata.name={name}" if fields else f"metadata.name={name}"
    collection = Collection(group=group or "", version=version, plural=plural, namespaced=bool(namespace))
    return collection, Select(namespace=namespace or "", labels=labels, fields=fields)


@dataclass(frozen=True, slots=True)
class Body:
    """The rest of a message after its type, as JSON: made and compressed once for all tabs that get it."""

    content: bytes
    packed: bytes

    @classmethod
    def of(cls, content: bytes) -> "Body":
        """Return a body, compressed if it is large."""
        return cls(content, _deflated(content, zlib.Z_FINISH) if len(content) > LARGE_BYTES else b"")

    def frame(self, subscription: int, kind: str) -> str | bytes:
        """Return the message of one subscription."""
        head = f'{{"id":{subscription},"type":"{kind}",'
        if not self.packed:
            return head + self.content.decode()
        # The head is a block of its own before the shared ones, as RFC 1951 and 1952 allow.
        start = head.encode()
        checksum = zlib.crc32(self.content, zlib.crc32(start))
        trailer = struct.pack("<II", checksum, (len(start) + len(self.content)) % 2**32)
        packed = (GZIP_HEADER, _deflated(start, zlib.Z_FULL_FLUSH), self.packed, trailer)
        return subscription.to_bytes(4, "big") + COMPRESSED + b"".join(packed)


def _deflated(data: bytes, flush: int) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(flush)


def log_frame(subscription: int, data: bytes) -> bytes:
    """Return bytes of a log as a frame."""
    return subscription.to_bytes(4, "big") + LOG_BYTES + data


def message(subscription: int | None, kind: str, **fields: Any) -> str:
    """Return a small message as a frame."""
    head = {} if subscription is None else {"id": subscription}
    return orjson.dumps({**head, "type": kind, **fields}).decode()


def error_message(subscription: int | None, error: PacelineError) -> str:
    """Return an error as a frame."""
    body = {"code": error.code, "reason": error.reason, "message": str(error)}
    return message(subscription, "error", error=body)
