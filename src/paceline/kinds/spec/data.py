"""Source code, input, output and hyperparameters of a job.

/input is read from, and /output written to, a claim, a directory of the host, or a bucket.

In     `spec.source`, `spec.input`, `spec.output` and `spec.hyperparameters`, as written.
Out    their faults and the claims they name.
Never  contains a credential: it names the Secret that does.
"""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from paceline.apimachinery.field_errors import invalid, required
from paceline.apimachinery.quantity import parse
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, obeys, quoted
from paceline.kinds.kind_types import Claim, Located
from paceline.kinds.spec.fields import Part, about
from paceline.kinds.spec.hyperparameters import Hyperparameters, check_hyperparameters
from paceline.kinds.spec.pod_template import read
from paceline.kinds.spec.source import (
    FOLDER,
    Inner,
    ObjectName,
    Source,
    Url,
    check_inner,
    check_source,
    masked,
    source_claims,
    split_url,
)

INPUT, OUTPUT = "/input", "/output"
SCHEMES = ("s3", "oss")
BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


NO_URL = "set s3://BUCKET/FOLDER, or a secret that has the key url"
BUCKET_URL = "must be s3://BUCKET/FOLDER or oss://BUCKET/FOLDER"
BUCKET_FOLDER = "the folder must not contain .., ? or #"
ONLY_ONE = "is also set; set only one of claim, directory and bucket"
ABSOLUTE = "must be an absolute path, such as /home/me/"
NO_PARENT, NO_ROOT = "must not contain ..", "must not be the root of the file system; name a directory below it"
PATH_OF_CLAIM = "a path is relative to a claim; set claim too, or remove path"
NO_STAGING = "staging is only used for a bucket; remove it"
Directory = Annotated[
    str,
    Meta(max_length=4096),
    obeys(
        CelRule(
            rule="self.startsWith('/')",
            message_expression=f"{quoted(ABSOLUTE)} + (self.replace('./', '') == '' ? 'data' : self.replace('./', ''))",
        ),
        CelRule(rule="!self.startsWith('/') || !self.matches('(^|/)[.][.](/|$)')", message=NO_PARENT),
        CelRule(rule="self.matches('^/+$') == false", message=NO_ROOT),
    ),
]


S3_URL = obeys(
    CelRule(
        rule=f"self == '' || self.matches('^(?i:s3|oss)://{BUCKET_NAME.pattern}([/?#]|$)')",
        message=BUCKET_URL,
    ),
    CelRule(rule="!self.matches('[?#]|(^|/)[.][.](/|$)')", message=BUCKET_FOLDER),
)


def _place_rules(path: str) -> tuple[CelRule, ...]:
    """Return the rules for an input or output at a path."""
    return (
        CelRule(
            rule="has(self.claim) || has(self.directory) || has(self.bucket)",
            message=_none_set(path),
            reason="FieldValueRequired",
        ),
        CelRule(rule="!has(self.directory) || !has(self.claim)", message=f"claim {ONLY_ONE}", field=".directory"),
        CelRule(
            rule="!has(self.bucket) || !has(self.claim) && !has(self.directory)",
            message_expression=f"(has(self.claim) ? 'claim' : 'directory') + ' {ONLY_ONE}'",
            field=".bucket",
        ),
        CelRule(rule="!has(self.path) || self.path == '' || has(self.claim)", message=PATH_OF_CLAIM, field=".path"),
    )


def _none_set(path: str) -> str:
    return f"set one of claim, directory and bucket, or remove {path}"


class Bucket(Part, frozen=True, kw_only=True):
    """A bucket of an object store with the S3 or OSS API."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule="has(self.secret) || has(self.url) && self.url != ''",
            message=NO_URL,
            field=".url",
            reason="FieldValueRequired",
        ),
    )

    url: Annotated[
        Url, S3_URL, about("s3://BUCKET/FOLDER or oss://BUCKET/FOLDER. If omitted, the key url of the Secret.")
    ] = ""
    endpoint: Annotated[
        str, about("URL of the object store. If omitted, the key endpoint of the Secret, or else AWS.")
    ] = ""
    region: Annotated[str, about("Region of the bucket. If omitted, the key region of the Secret.")] = ""
    secret: Annotated[
        ObjectName | None,
        about(
            "Secret with the keys accessKeyId and accessKeySecret. If omitted, the bucket must be public, or the "
            "pod must have access by itself."
        ),
    ] = None


class Input(Part, frozen=True, kw_only=True):
    """Data that every replica reads at /input; it is mounted read-only."""

    cel: ClassVar[tuple[CelRule, ...]] = _place_rules("spec.input")

    claim: Annotated[ObjectName | None, about("PersistentVolumeClaim with the data.")] = None
    directory: Annotated[Directory | None, about("Absolute path of a directory on the node.")] = None
    bucket: Annotated[Bucket | None, about("Bucket whose files are copied to /input before the command starts.")] = None
    path: Annotated[Inner, about("Directory of the claim that is mounted. If omitted, its root.")] = ""


class Staging(Part, frozen=True, kw_only=True):
    """Volume that holds /output until it is uploaded to the bucket."""

    medium: Annotated[
        Literal["Claim", "Pod"],
        about(
            "Claim: a PersistentVolumeClaim per replica, which survives the loss of a pod. Pod: an emptyDir, which is "
            "lost with the pod, for clusters without a storage class."
        ),
    ] = "Claim"
    size: Annotated[str, about("Size of the claim.")] = "10Gi"
    storage_class_name: Annotated[
        str | None, about("Storage class of the claim. If omitted, the default of the cluster.")
    ] = None


class Output(Part, frozen=True, kw_only=True):
    """Destination of the files that replicas write to /output; each replica has its own directory JOB/REPLICA/."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        *_place_rules("spec.output"),
        CelRule(rule="!has(self.staging) || has(self.bucket)", message=NO_STAGING, field=".staging"),
    )

    claim: Annotated[ObjectName | None, about("PersistentVolumeClaim for the results, mounted at /output.")] = None
    directory: Annotated[Directory | None, about("Absolute path of a directory on the node for the results.")] = None
    bucket: Annotated[
        Bucket | None,
        about("Bucket for the results. They are uploaded while the command runs and after it ends."),
    ] = None
    path: Annotated[Inner, about("Directory of the claim for the results. If omitted, its root.")] = ""
    staging: Annotated[Staging | None, about("Volume that holds /output until it is uploaded to the bucket.")] = None


Place = Input | Output


def check_place(place: Place, path: str) -> Iterator[Fault]:
    """Yield the faults of an input or output."""
    locations = [name for name in ("claim", "directory", "bucket") if getattr(place, name) is not None]
    if not locations:
        yield required(path, _none_set(path))
    for extra in locations[1:]:
        yield invalid(
            f"{path}.{extra}",
            _shown(place, extra),
            f"{locations[0]} {ONLY_ONE}",
        )
    if place.directory is not None:
        yield from _check_directory(place.directory, f"{path}.directory")
    if place.bucket is not None:
        yield from check_bucket(place.bucket, f"{path}.bucket")
    if place.path and place.claim is None:
        yield invalid(f"{path}.path", place.path, PATH_OF_CLAIM)
    yield from check_inner(place.path, f"{path}.path")
    if isinstance(place, Output) and place.staging is not None:
        yield from _check_staging(place, place.staging, f"{path}.staging")


def place_claims(place: Place | None, path: str) -> tuple[Claim, ...]:
    """Return the claim that an input or output uses, with the path that names it."""
    return ((f"{path}.claim", place.claim),) if place is not None and place.claim else ()


def _shown(place: Place, name: str) -> str:
    return masked(place.bucket.url) if name == "bucket" and place.bucket is not None else str(getattr(place, name))


def _check_directory(directory: str, path: str) -> Iterator[Fault]:
    if not directory.startswith("/"):
        yield invalid(path, directory, f"{ABSOLUTE}{directory.removeprefix('./') or 'data'}")
    elif ".." in directory.split("/") or "\0" in directory:
        yield invalid(path, directory, NO_PARENT)
    elif not directory.strip("/"):
        yield invalid(path, directory, NO_ROOT)


def check_bucket(bucket: Bucket, path: str) -> Iterator[Fault]:
    """Yield the faults of a bucket."""
    if not bucket.url and bucket.secret is None:
        yield required(f"{path}.url", NO_URL)
    elif bucket.url:
        parts = split_url(bucket.url)
        if parts is None or parts.scheme not in SCHEMES or not BUCKET_NAME.fullmatch(parts.netloc):
            yield invalid(f"{path}.url", masked(bucket.url), BUCKET_URL)
        elif ".." in parts.path.split("/") or parts.query or parts.fragment:
            yield invalid(f"{path}.url", masked(bucket.url), BUCKET_FOLDER)
    if bucket.endpoint:
        parts = split_url(bucket.endpoint)
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            hint = "must be an https:// or http:// URL without user and password"
            yield invalid(f"{path}.endpoint", masked(bucket.endpoint), hint)


def _check_staging(place: Output, staging: Staging, path: str) -> Iterator[Fault]:
    if place.bucket is None:
        yield invalid(path, staging.medium, NO_STAGING)
    try:
        is_enough = parse(staging.size) > 0
    except ValueError as error:
        yield invalid(f"{path}.size", staging.size, str(error))
        return
    if not is_enough:
        yield invalid(f"{path}.size", staging.size, "must be greater than 0, such as 10Gi")


class DataFlowSpec(Part, frozen=True, kw_only=True):
    """A spec with source code, input, output and hyperparameters."""

    source: Annotated[Source | None, about("Source code of the job; the command runs in its directory.")] = None
    input: Annotated[Input | None, about("Data that every replica reads at /input.")] = None
    output: Annotated[
        Output | None, about("Destination for files written to /output. If omitted, they are deleted with the pod.")
    ] = None
    hyperparameters: Annotated[
        Hyperparameters | None,
        about("Hyperparameters of the training; they are shown and can be compared between jobs."),
    ] = None


def check_fed(spec: DataFlowSpec, templates: tuple[Located, ...], path: str) -> Iterator[Fault]:
    """Yield the faults of source, input, output and hyperparameters, and of volume mounts that collide with them."""
    if spec.source is not None:
        yield from check_source(spec.source, f"{path}.source")
    for name, place in (("input", spec.input), ("output", spec.output)):
        if place is not None:
            yield from check_place(place, f"{path}.{name}")
    if spec.hyperparameters is not None:
        yield from check_hyperparameters(spec.hyperparameters, f"{path}.hyperparameters")
    reserved = {FOLDER: spec.source, INPUT: spec.input, OUTPUT: spec.output}
    for template_path, template in templates:
        for index, container in enumerate(read(template).spec.containers):
            for position, mount in enumerate(container.volume_mounts or ()):
                if reserved.get(mount.mount_path.rstrip("/")) is not None:
                    hint = f"spec.{mount.mount_path.strip('/')} is mounted there; choose another mountPath"
                    mount_path = f"{template_path}.spec.containers[{index}].volumeMounts[{position}].mountPath"
                    yield invalid(mount_path, mount.mount_path, hint)


def fed_claims(spec: DataFlowSpec, path: str) -> tuple[Claim, ...]:
    """Return the claims of source, input and output, each with the path that names it."""
    source = source_claims(spec.source, f"{path}.source") if spec.source is not None else ()
    return (*source, *place_claims(spec.input, f"{path}.input"), *place_claims(spec.output, f"{path}.output"))
