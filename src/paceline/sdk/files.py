"""The files of a claim through its Explorer: list, download, upload, remove; cut transfers go on where they stopped."""

import hashlib
import json
import os
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import urlencode

from paceline.apimachinery.meta import Object, name_of, revision_of
from paceline.client.interface import CLAIMS, SECRETS, Change, Collection, Select
from paceline.client.requests import Request, Response
from paceline.client.sync import DirectCluster
from paceline.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    HostError,
    NotFound,
    ServiceUnavailable,
)
from paceline.kinds.kind_types import SERVICE_GROUP, VERSION
from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.presentation import explorer
from paceline.presentation.actions import resume_service
from paceline.presentation.explorer import PART_BYTES

EXPLORERS = Collection(group=SERVICE_GROUP, version=VERSION, plural=explorer.PLURAL)
WAIT_SECONDS = 120
# How long the end of an Explorer may take to be in its status.
END_SECONDS = 2
PAGE = 1_000
# How often a part is sent again after the connection was lost.
MOST_TRIES = 5
PARTIAL = 206
# The status of whatever sleeps says since when; this time is never used.
LONG_AGO = datetime.fromtimestamp(0, UTC)

Progress = Callable[[int, int], None]


def ignore_progress(_done: int, _total: int) -> None:
    """Ignore the progress of a transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file, folder or link of a claim."""

    name: str
    # file, folder, link or other.
    type: str
    size: int
    # Seconds since 1970.
    modified: float
    uid: int
    target: str = ""

    @property
    def is_folder(self) -> bool:
        """Return True for a folder."""
        return self.type == "folder"


@dataclass(slots=True, kw_only=True)
class VolumeFiles:
    """The files of one claim. The first request creates or wakes its Explorer, which sleeps again when idle."""

    cluster: DirectCluster
    namespace: str
    claim: str
    _token: str = field(default="", init=False, repr=False)

    def list(self, path: str = "") -> Iterator[FileEntry]:
        """Yield the entries of a folder, folders first; pages are read as they are needed."""
        cursor = ""
        while True:
            page = self._json("GET", "/list", path=path, limit=PAGE, after=cursor)
            yield from (FileEntry(**entry) for entry in page["entries"])
            cursor = page["next"]
            if not cursor:
                return

    def stat(self, path: str) -> FileEntry:
        """Return what a path leads to; NotFound if there is nothing."""
        return FileEntry(**self._json("GET", "/stat", path=path))

    def usage(self, path: str = "") -> dict[str, Any]:
        """Return the bytes of a tree (`bytes`), of the entries of the folder, and the capacity of the disk."""
        return dict(self._json("GET", "/usage", path=path))

    def curves(self, path: str = "", *, points: int) -> dict[str, Any]:
        """Return the training curves beneath a folder."""
        return dict(self._json("GET", "/curves", path=path, points=points))

    def make_folder(self, path: str) -> None:
        """Create a folder; AlreadyExists if there is one."""
        self._json("POST", "/folder", path=path)

    def rename(self, path: str, to: str) -> None:
        """Move a file or folder; AlreadyExists if the new name is taken."""
        self._json("POST", "/rename", path=path, to=to)

    def remove(self, path: str, *, is_recursive: bool = False) -> None:
        """Remove a file or an empty folder; with `is_recursive` a folder with everything in it."""
        self._json("DELETE", "/file", path=path, recursive=str(is_recursive).lower())

    def download(self, path: str, to: Path, progress: Progress = ignore_progress) -> None:
        """Write a file of the claim to a local path; a part that an earlier call left is not read again."""
        first = self._part(path, 0, 1)
        etag, size = _header(first, "etag"), _size(first)
        key = hashlib.sha256(f"{self.namespace}/{self.claim}/{path}/{etag}".encode(errors="surrogateescape"))
        unfinished = to.with_name(f".{to.name}.{key.hexdigest()[:12]}.part")
        with unfinished.open("ab") as file:
            while (offset := file.tell()) < size:
                progress(offset, size)
                answer = self._retried(partial(self._part, path, offset, offset + PART_BYTES))
                if _header(answer, "etag") != etag:
                    unfinished.unlink()
                    raise Conflict(f"{path} changed while it was read; try again")
                file.write(answer.body)
            file.flush()
            os.fsync(file.fileno())
        progress(size, size)
        unfinished.replace(to)

    def download_archive(self, path: str, to: BinaryIO, form: str = "tar") -> None:
        """Write a folder of the claim as a tar or zip archive."""
        request = self._request("GET", "/archive", {"path": path, "format": form})
        with closing(self.cluster.chunks(request)) as chunks:
            to.writelines(chunks)

    def upload(
        self, source: Path, path: str, *, is_replacing: bool = False, progress: Progress = ignore_progress
    ) -> None:
        """Write a local file to the claim; parts that an earlier call has sent are not sent again."""
        status = source.stat()
        fields = {"path": path, "size": status.st_size, "id": f"{status.st_mtime_ns}", "replace": _flag(is_replacing)}
        offset, is_done = int(self._json("GET", "/upload", **fields)["offset"]), False
        with source.open("rb") as file:
            while not is_done:
                progress(offset, status.st_size)
                file.seek(offset)
                data = file.read(min(PART_BYTES, status.st_size - offset))
                answer = self._put(fields, offset, data)
                offset, is_done = int(answer["offset"]), bool(answer["done"])
        progress(status.st_size, status.st_size)

    def _put(self, fields: dict[str, Any], offset: int, data: bytes) -> Any:
        """Send one part; if the connection is lost, ask how much has arrived."""
        digest = hashlib.sha256(data).hexdigest()
        for tries_left in reversed(range(MOST_TRIES)):
            try:
                return self._json("PUT", "/upload", data, offset=offset, sha256=digest, **fields)
            except ServiceUnavailable:
                if not tries_left:
                    raise
            with suppress(ServiceUnavailable):
                self.wake()
                arrived = int(self._json("GET", "/upload", **fields)["offset"])
                if arrived > offset:
                    return {"offset": arrived, "done": False}
                if not arrived and offset:
                    return self._finished(fields)
        raise HostError("unreachable")

    def _finished(self, fields: dict[str, Any]) -> Any:
        """Return the end of an upload whose last answer was lost: the file is there, whole."""
        if self.stat(str(fields["path"])).size != fields["size"]:
            raise ServiceUnavailable("the upload was cut, and its parts are gone; try again")
        return {"offset": fields["size"], "done": True}

    def _part(self, path: str, start: int, end: int) -> Response:
        answer = self._send("GET", "/file", headers=(("Range", f"bytes={start}-{end - 1}"),), path=path)
        if answer.status != PARTIAL and answer.body and start:
            raise Conflict(f"{path} changed while it was read; try again")
        return answer

    def _retried(self, ask: Callable[[], Response]) -> Response:
        for _ in range(MOST_TRIES - 1):
            with suppress(ServiceUnavailable):
                return ask()
            with suppress(ServiceUnavailable):
                self.wake()
        return ask()

    def _json(self, method: str, route: str, body: bytes = b"", /, **query: Any) -> Any:
        return json.loads(self._send(method, route, body, **query).body)

    def _send(
        self, method: str, route: str, body: bytes = b"", /, *, headers: tuple[tuple[str, str], ...] = (), **query: Any
    ) -> Response:
        if not self._token:
            self.wake()
        answer = self.cluster.send(self._request(method, route, query, body, headers))
        tries = MOST_TRIES if method == "GET" else 1
        while answer.status == ServiceUnavailable.code and (tries := tries - 1):
            # It fell asleep between two requests.
            self._await_end()
            self.wake()
            answer = self.cluster.send(self._request(method, route, query, body, headers))
        if answer.status >= BadRequest.code:
            raise explorer.error_of(answer.status, _decoded(answer.body))
        return answer

    def _request(
        self,
        method: str,
        route: str,
        query: dict[str, Any],
        body: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Request:
        if not self._token:
            self.wake()
        path = explorer.proxy_path(self.namespace, explorer.explorer_name(self.claim), route)
        # Names of files need not be UTF-8.
        target = f"{path}?{urlencode(query, errors='surrogateescape')}"
        kinds = (("Content-Type", "application/octet-stream"),) if method == "PUT" else ()
        return Request(
            method=method, path=target, headers=((explorer.TOKEN_HEADER, self._token), *kinds, *headers), body=body
        )

    def wake(self) -> None:
        """Have the Explorer run, and learn its token; NotFound if there is no such claim."""
        obj = self._ensured()
        plan = resume_service(obj, LONG_AGO)
        key = (self.namespace, name_of(obj))
        if plan.is_possible:
            obj = self.cluster.patch(EXPLORERS, key, plan.body)
        status = self._wait(obj)
        secret = self.cluster.get(SECRETS, self.namespace, status.secret)
        self._token = b64decode((secret.get("data") or {}).get("token") or "").decode()

    def _await_end(self) -> None:
        """Wait a moment until the status shows an end that a refused connection has shown already."""
        obj = self._ensured()
        if _status(obj).phase is not ServicePhase.RUNNING:
            return
        select = Select(namespace=self.namespace, fields=f"metadata.name={name_of(obj)}")
        events = self.cluster.watch(EXPLORERS, select, since=revision_of(obj), timeout_seconds=END_SECONDS)
        with suppress(Expired), closing(events):
            for event in events:
                if event.change is Change.DELETED:
                    return
                if event.change is not Change.BOOKMARK and _status(event.object).phase is not ServicePhase.RUNNING:
                    return

    def _ensured(self) -> Object:
        name = explorer.explorer_name(self.claim)
        try:
            obj = self.cluster.get(EXPLORERS, self.namespace, name)
        except NotFound:
            self.cluster.get(CLAIMS, self.namespace, self.claim)
            with suppress(AlreadyExists):
                return self.cluster.create(EXPLORERS, explorer.explorer_manifest(self.namespace, self.claim))
            obj = self.cluster.get(EXPLORERS, self.namespace, name)
        if explorer.claim_of(obj) != self.claim:
            raise Conflict(f"explorer/{name} serves claim {explorer.claim_of(obj)}, not {self.claim}; delete it")
        return obj

    def _wait(self, obj: Object) -> ServiceStatus:
        status = _status(obj)
        select = Select(namespace=self.namespace, fields=f"metadata.name={name_of(obj)}")
        with suppress(Expired):
            if status.phase is not ServicePhase.RUNNING or not status.secret:
                events = self.cluster.watch(EXPLORERS, select, since=revision_of(obj), timeout_seconds=WAIT_SECONDS)
                with closing(events):
                    for event in events:
                        if event.change is Change.DELETED:
                            raise NotFound(f"explorer/{name_of(obj)} was deleted")
                        if event.change is not Change.BOOKMARK:
                            status = _status(event.object)
                        if status.phase is ServicePhase.RUNNING and status.secret:
                            return status
        if status.phase is not ServicePhase.RUNNING:
            raise ServiceUnavailable(
                f"the files of claim {self.claim} cannot be read yet: {status.waiting or 'starting'}"
            )
        return status


def _status(obj: Object) -> ServiceStatus:
    return ServiceStatus.from_wire(obj.get("status") or {})


def _decoded(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _header(answer: Response, name: str) -> str:
    return dict(answer.headers).get(name, "")


def _size(answer: Response) -> int:
    """Return the size of a file from the answer to a request for its first byte."""
    return int(_header(answer, "content-range").rpartition("/")[2] or len(answer.body))


def _flag(value: bool) -> str:  # noqa: FBT001 - a value
    return str(value).lower()


def split_location(location: str) -> tuple[str, str]:
    """Return volume and path of `VOLUME:PATH` or `VOLUME`."""
    volume, _, path = location.partition(":")
    return volume, path


def target_in_folder(source: str, folder: str) -> str:
    """Return the path of a file in a folder, with the name that it has elsewhere."""
    return str(PurePosixPath(folder) / PurePosixPath(source).name)
