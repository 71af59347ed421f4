"""Buckets: the object stores that results go to and data come from, behind four verbs."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, S3Store

from paceline.podtools.reporting import StepFailed

CHUNK_BYTES = 8 * 1024 * 1024
# A store takes an object in 10,000 pieces at most.
MOST_PIECES = 9_000
# How long one request is tried again by itself; who calls tries again after that.
PATIENCE: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
CLIENT: Any = {"connect_timeout": "5s", "timeout": "300s"}


# By these a pod is told who it is, where its cluster does that.
IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
REFUSAL = re.compile(r"<Code>(?P<code>[^<]+)</Code>\s*<Message>(?P<message>[^<]+)</Message>")


class NotReached(StepFailed):
    """A bucket did not do what was asked of it; it may the next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A bucket as its owner describes it; what is left out may stand in the secret."""

    url: str = ""
    endpoint: str = ""
    region: str = ""
    secret: Mapping[str, str]

    def known(self, key: str) -> str:
        """Give what is known under a key: as said, or else as the secret has it."""
        return str(getattr(self, key)) or self.secret.get(key, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A folder of a bucket."""

    store: ObjectStore
    name: str

    def get(self, key: str) -> bytes | None:
        """Read a whole object; None when there is none."""
        try:
            return bytes(obstore.get(self.store, key).bytes())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._refused(error) from error

    def put(self, key: str, data: bytes | Iterable[bytes], *, size: int = 0) -> None:
        """Write an object, of which the size may be told before; it is there as a whole, or not at all."""
        chunk = max(CHUNK_BYTES, size // MOST_PIECES)
        try:
            obstore.put(self.store, key, data, chunk_size=chunk, max_concurrency=4)
        except (BaseError, OSError, ValueError) as error:
            raise self._refused(error) from error

    def names(self) -> Iterator[tuple[str, int]]:
        """List the objects with their sizes."""
        try:
            for batch in obstore.list(self.store):
                for each in batch:
                    if each["path"]:
                        yield str(each["path"]), int(each["size"])
        except (BaseError, OSError) as error:
            raise self._refused(error) from error

    def fetch(self, key: str, file: IO[bytes]) -> None:
        """Read an object into a file, piece by piece."""
        try:
            for piece in obstore.get(self.store, key).stream(min_chunk_size=CHUNK_BYTES):
                file.write(piece)
        except (BaseError, FileNotFoundError) as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> NotReached:
        # The library's errors go on with a dump of their insides.
        said = str(error).split("\n\nDebug source:")[0].strip()
        # What a store says goes on with numbers that only its own people understand.
        if found := REFUSAL.search(said):
            said = f"{found['code']}: {found['message']}"
        return NotReached(f"{self.name} refuses: {said}")


def open_bucket(where: Where, prefix: str = "") -> Bucket:
    """Open a folder of a bucket; StepFailed says what its description lacks."""
    url = where.known("url")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise StepFailed("the address of the bucket has an @ in it; keys go into the secret, not into the address")
    inner = "/".join(part for part in (parts.path.strip("/"), prefix) if part)
    name = f"{parts.scheme}://{parts.netloc}/{inner}"
    if parts.scheme == "file":
        folder = Path(parts.path) / prefix
        folder.mkdir(parents=True, exist_ok=True)
        return Bucket(store=LocalStore(folder), name=name)
    if parts.scheme not in ("s3", "oss") or not parts.netloc:
        raise StepFailed(f"{url or 'nothing'!r} is no address of a bucket; write s3://BUCKET/FOLDER")
    try:
        store = S3Store(
            parts.netloc,
            prefix=inner or None,
            config=_config(where, parts.netloc),
            client_options=CLIENT,
            retry_config=PATIENCE,
        )
    except (BaseError, ValueError) as error:
        raise StepFailed(f"{name} cannot be opened: {str(error).splitlines()[0]}") from error
    return Bucket(store=store, name=name)


def _config(where: Where, bucket: str) -> Any:
    url, endpoint = where.known("url"), where.known("endpoint")
    told: dict[str, Any] = {"region": where.known("region") or "us-east-1"}
    if endpoint:
        parts = urlsplit(endpoint)
        told["allow_http"] = parts.scheme == "http"
        if url.startswith("oss:") and not parts.netloc.startswith(f"{bucket}."):
            # OSS takes a bucket as part of the host's name only.
            parts = parts._replace(netloc=f"{bucket}.{parts.netloc}")
        told |= {"endpoint": urlunsplit(parts).rstrip("/"), "virtual_hosted_style_request": url.startswith("oss:")}
    elif url.startswith("oss:"):
        raise StepFailed("an oss:// bucket needs an endpoint, such as https://oss-cn-hangzhou.aliyuncs.com")
    user, key = where.secret.get("accessKeyId", ""), where.secret.get("accessKeySecret", "")
    if bool(user) != bool(key):
        raise StepFailed("the secret must have both keys, accessKeyId and accessKeySecret")
    if user:
        told |= {"access_key_id": user, "secret_access_key": key}
    elif endpoint and not any(name in os.environ for name in IDENTITY):
        # Nobody said who we are, and only machines of AWS could be asked: then it is a bucket for everybody.
        told["skip_signature"] = True
    return told
