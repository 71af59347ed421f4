"""What a job reads at /input and writes at /output: a claim, a folder of the machine, or a bucket.

In     `spec.input` and `spec.output`, as written.
Out    their faults and the claims they name.
Never  holds a key: it names the secret that does.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from paceline.errors import Fault
from paceline.kinds.fields import Part, about
from paceline.kinds.kind import Claim
from paceline.kinds.source import ObjectName, check_inner, masked, split_url
from paceline.objects.faults import invalid, required
from paceline.objects.quantity import parse

INPUT, OUTPUT = "/input", "/output"
SCHEMES = ("s3", "oss")
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


class Bucket(Part, frozen=True, kw_only=True):
    """A bucket of an object store that speaks S3 or OSS."""

    url: Annotated[str, about("s3://BUCKET/FOLDER or oss://BUCKET/FOLDER. Left out: the key url of the secret.")] = ""
    endpoint: Annotated[
        str, about("Address of the store, if it is not the usual one of AWS; or the key endpoint of the secret.")
    ] = ""
    region: Annotated[str, about("Region of the bucket; or the key region of the secret.")] = ""
    secret: (
        Annotated[
            ObjectName,
            about(
                "Secret with the keys accessKeyId and accessKeySecret. Left out: the bucket is public, or the pod may."
            ),
        ]
        | None
    ) = None


class Input(Part, frozen=True, kw_only=True):
    """What the job reads at /input, the same for every replica, and nobody may write."""

    claim: Annotated[ObjectName, about("Claim that the data lie on.")] | None = None
    directory: Annotated[str, about("Folder of the machine, as an absolute path.")] | None = None
    bucket: Annotated[Bucket, about("Bucket whose files are copied to /input before the command runs.")] | None = None
    path: Annotated[str, about("Folder on the claim that /input shows. Left out: all of it.")] = ""


class Staging(Part, frozen=True, kw_only=True):
    """Where /output lies until it is in the bucket."""

    medium: Annotated[
        Literal["Claim", "Pod"],
        about(
            "Claim: a claim of the job's own for every replica, so that nothing is lost with a pod. Pod: a folder that "
            "goes with the pod, for clusters without a storage class."
        ),
    ] = "Claim"
    size: Annotated[str, about("Size of the claim.")] = "10Gi"
    storage_class_name: Annotated[str, about("Storage class of the claim. Left out: the cluster's default.")] | None = (
        None
    )


class Output(Part, frozen=True, kw_only=True):
    """Where goes what replicas write to /output: to JOB/REPLICA/ there, out of each other's way."""

    claim: Annotated[ObjectName, about("Claim that takes the results; they lie on it as they are written.")] | None = (
        None
    )
    directory: Annotated[str, about("Folder of the machine that takes the results, as an absolute path.")] | None = None
    bucket: (
        Annotated[
            Bucket,
            about("Bucket that results are copied to while the command runs and when it ended, however it did."),
        ]
        | None
    ) = None
    path: Annotated[str, about("Folder on the claim that takes the results. Left out: its root.")] = ""
    staging: Annotated[Staging, about("Where /output lies until it is in the bucket.")] | None = None


Place = Input | Output


def check_place(place: Place, path: str) -> Iterator[Fault]:
    """Name what is wrong with a place of data."""
    named = [name for name in ("claim", "directory", "bucket") if getattr(place, name) is not None]
    if not named:
        yield required(path, f"say where it is: claim, directory or bucket; or leave {path} out")
    for extra in named[1:]:
        yield invalid(f"{path}.{extra}", _said(place, extra), f"{named[0]} is given too; there can be one place only")
    if place.directory is not None:
        yield from _check_directory(place.directory, f"{path}.directory")
    if place.bucket is not None:
        yield from check_bucket(place.bucket, f"{path}.bucket")
    if place.path and place.claim is None:
        yield invalid(f"{path}.path", place.path, "a path is one on the claim, and none is named")
    yield from check_inner(place.path, f"{path}.path")
    if isinstance(place, Output) and place.staging is not None:
        yield from _check_staging(place, place.staging, f"{path}.staging")


def place_claims(place: Place | None, path: str) -> tuple[Claim, ...]:
    """Give the claim that a place of data is on, with the path that names it."""
    return ((f"{path}.claim", place.claim),) if place is not None and place.claim else ()


def _said(place: Place, name: str) -> str:
    return masked(place.bucket.url) if name == "bucket" and place.bucket is not None else str(getattr(place, name))


def _check_directory(directory: str, path: str) -> Iterator[Fault]:
    if not directory.startswith("/"):
        yield invalid(
            path, directory, f"write an absolute path, such as /home/me/{directory.removeprefix('./') or 'data'}"
        )
    elif ".." in directory.split("/") or "\0" in directory:
        yield invalid(path, directory, "write the path without ..")
    elif not directory.strip("/"):
        yield invalid(path, directory, "the machine's whole disk is too much; name a folder")


def check_bucket(bucket: Bucket, path: str) -> Iterator[Fault]:
    """Name what is wrong with the description of a bucket."""
    if not bucket.url and bucket.secret is None:
        yield required(f"{path}.url", "write s3://BUCKET/FOLDER, or name a secret that has the key url")
    elif bucket.url:
        parts = split_url(bucket.url)
        if parts is None or parts.scheme not in SCHEMES or not BUCKET_NAME.fullmatch(parts.netloc):
            yield invalid(f"{path}.url", masked(bucket.url), "write s3://BUCKET/FOLDER or oss://BUCKET/FOLDER")
        elif ".." in parts.path.split("/") or parts.query or parts.fragment:
            yield invalid(f"{path}.url", masked(bucket.url), "write a plain folder after it, without .., ? and #")
    if bucket.endpoint:
        parts = split_url(bucket.endpoint)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            hint = "write an address that begins with https:// or http://, without user and password"
            yield invalid(f"{path}.endpoint", masked(bucket.endpoint), hint)


def _check_staging(place: Output, staging: Staging, path: str) -> Iterator[Fault]:
    if place.bucket is None:
        yield invalid(path, staging.medium, "only what goes to a bucket is kept elsewhere first; leave staging out")
    try:
        is_enough = parse(staging.size) > 0
    except ValueError as error:
        yield invalid(f"{path}.size", staging.size, str(error))
        return
    if not is_enough:
        yield invalid(f"{path}.size", staging.size, "ask for more than 0, such as 10Gi")
