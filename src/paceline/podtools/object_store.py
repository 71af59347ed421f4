"""Buckets for input and results: get, put, list and fetch objects in S3, OSS or a folder."""

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
# S3 allows 10,000 parts per object.
MAX_PARTS = 9_000
# The library retries a request for this long; callers retry after that.
RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
CLIENT: Any = {"connect_timeout": "5s", "timeout": "300s"}
# Variables with which a cluster gives its pods an AWS identity.
IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
S3_ERROR = re.compile(r"<Code>(?P<code>[^<]+)</Code>\s*<Message>(?P<message>[^<]+)</Message>")


class BucketError(StepFailed):
    """A request to a bucket failed; a later one may succeed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketConfig:
    """Location of a bucket and the Secret for it; the Secret may have the values that are empty here."""

    url: str = ""
    endpoint: str = ""
    region: str = ""
    secret: Mapping[str, str]

    def value(self, key: str) -> str:
        """Return a value from the spec, or else from the secret."""
        return str(getattr(self, key)) or self.secret.get(key, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFolder:
    """A folder of a bucket."""

    store: ObjectStore
    name: str

    def get(self, key: str) -> bytes | None:
        """Return the content of an object, or None when it does not exist."""
        try:
            return bytes(obstore.get(self.store, key).bytes())
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._error(error) from error

    def put(self, key: str, data: bytes | Iterable[bytes], *, size: int = 0) -> None:
        """Write an object; it appears only when it is complete. Large ones need their size, to choose the part size."""
        chunk = max(CHUNK_BYTES, size // MAX_PARTS)
        try:
            obstore.put(self.store, key, data, chunk_size=chunk, max_concurrency=4)
        except (BaseError, OSError, ValueError) as error:
            raise self._error(error) from error

    def objects(self) -> Iterator[tuple[str, int]]:
        """Yield the names and sizes of all objects."""
        try:
            for batch in obstore.list(self.store):
                for entry in batch:
                    if entry["path"]:
                        yield str(entry["path"]), int(entry["size"])
        except (BaseError, OSError) as error:
            raise self._error(error) from error

    def fetch(self, key: str, file: IO[bytes]) -> None:
        """Write the content of an object to a file."""
        try:
            for chunk in obstore.get(self.store, key).stream(min_chunk_size=CHUNK_BYTES):
                file.write(chunk)
        except (BaseError, FileNotFoundError) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> BucketError:
        # The library appends a dump of its internals, and the store its request ids.
        message = str(error).split("\n\nDebug source:")[0].strip()
        if match := S3_ERROR.search(message):
            message = f"{match['code']}: {match['message']}"
        return BucketError(f"{self.name} refuses: {message}")


def open_bucket(config: BucketConfig, prefix: str = "") -> BucketFolder:
    """Return a folder of a bucket; raise StepFailed when its configuration is incomplete."""
    url = config.value("url")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise StepFailed("the URL of the bucket contains an @; keys go into the secret, not into the URL")
    inner = "/".join(part for part in (parts.path.strip("/"), prefix) if part)
    name = f"{parts.scheme}://{parts.netloc}/{inner}"
    if parts.scheme == "file":
        folder = Path(parts.path) / prefix
        folder.mkdir(parents=True, exist_ok=True)
        return BucketFolder(store=LocalStore(folder), name=name)
    if parts.scheme not in ("s3", "oss") or not parts.netloc:
        raise StepFailed(f"{url or 'nothing'!r} is not the URL of a bucket; write s3://BUCKET/FOLDER")
    try:
        store = S3Store(
            parts.netloc,
            prefix=inner or None,
            config=_s3_config(config, parts.netloc),
            client_options=CLIENT,
            retry_config=RETRY,
        )
    except (BaseError, ValueError) as error:
        raise StepFailed(f"{name} cannot be opened: {str(error).splitlines()[0]}") from error
    return BucketFolder(store=store, name=name)


def _s3_config(config: BucketConfig, bucket: str) -> Any:
    url, endpoint = config.value("url"), config.value("endpoint")
    options: dict[str, Any] = {"region": config.value("region") or "us-east-1"}
    if endpoint:
        parts = urlsplit(endpoint)
        options["allow_http"] = parts.scheme == "http"
        if url.startswith("oss:") and not parts.netloc.startswith(f"{bucket}."):
            # OSS requires the bucket as part of the host name.
            parts = parts._replace(netloc=f"{bucket}.{parts.netloc}")
        options |= {"endpoint": urlunsplit(parts).rstrip("/"), "virtual_hosted_style_request": url.startswith("oss:")}
    elif url.startswith("oss:"):
        raise StepFailed("an oss:// bucket needs an endpoint, such as https://oss-cn-hangzhou.aliyuncs.com")
    user, key = config.secret.get("accessKeyId", ""), config.secret.get("accessKeySecret", "")
    if bool(user) != bool(key):
        raise StepFailed("the secret must have both keys, accessKeyId and accessKeySecret")
    if user:
        options |= {"access_key_id": user, "secret_access_key": key}
    elif endpoint and not any(name in os.environ for name in IDENTITY):
        # There are no credentials, and only machines of AWS could provide some: the bucket must be public.
        options["skip_signature"] = True
    return options
