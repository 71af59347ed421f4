"""Specs of interactive workloads: when they are suspended, and the logs of a TensorBoard (also of a job's own)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

from msgspec import Meta

from paceline.apimachinery.field_errors import invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, obeys
from paceline.kinds.compat import Migration
from paceline.kinds.kind_types import Claim
from paceline.kinds.spec.fields import Count, Part, Resources, about
from paceline.kinds.spec.pod_template import Words
from paceline.kinds.spec.run_policy import Scheduler

# T9k considers it idle after an hour, and stops it after another day.
DEFAULT_IDLE_SECONDS = 90_000
IdleSeconds = Annotated[
    Count, about("Seconds without use after which it is stopped; opening it starts it again. 0: never.")
]

MODES = {"running": False, "paused": True}


class OldRunMode(Part, frozen=True, kw_only=True):
    """The field of an interactive workload's shape until 2024."""

    run_mode: Annotated[Literal["running", "paused"] | None, about("Old form of suspend.")] = None


def run_mode_to_suspend(draft: Migration) -> None:
    """Migrate T9k's older `runMode: running | paused` to `suspend`, and warn."""
    old, new = ("spec", "runMode"), ("spec", "suspend")
    mode = draft.get(*old)
    if not isinstance(mode, str) or mode not in MODES:
        return
    draft.tell(old, f'"{mode}" is the old form of spec.suspend: {str(MODES[mode]).lower()}')
    if not draft.has(*new):
        draft.put(new, MODES[mode])
    draft.drop(*old)


URI = re.compile(r"t9k://(?P<store>[^/]*)/(?P<path>.*)")
URI_HINT = "must be t9k://pvc/CLAIM/FOLDER or t9k://minio/SECRET/BUCKET/FOLDER"
BUCKET_URI = re.compile(r"s3://(?P<bucket>[^/]+)(?:/(?P<folder>.*))?")
# Types of the Service, as in Kubernetes.
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer"]
INSIDE: ServiceType = "ClusterIP"
# Directory at which claims are mounted.
CLAIMS = "/t9k/pvc"


MAX_PLACES, MAX_URI = 32, 1024
NO_LOGS = "set a location of logs, such as {pvc: [{name: CLAIM, subPath: [log]}]}"
NO_FOLDER, NO_BUCKET = "must be a directory inside the claim, such as log", "must be s3://BUCKET/FOLDER/"
FilesetUri = Annotated[
    str,
    Meta(max_length=MAX_URI),
    obeys(
        CelRule(rule=r"self.matches('^t9k://(pvc|minio)/.') && !self.matches('/[.][.](/|$)')", message=URI_HINT),
    ),
]
BucketUri = Annotated[
    str, Meta(max_length=MAX_URI), obeys(CelRule(rule="self.matches('^s3://[^/]')", message=NO_BUCKET))
]
InnerFolder = Annotated[
    str,
    Meta(max_length=MAX_URI),
    obeys(CelRule(rule=r"!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')", message=NO_FOLDER)),
]


class ClaimLogs(Part, frozen=True, kw_only=True):
    """Logs in a claim."""

    name: Annotated[str, about("Name of the claim.")]
    sub_path: Annotated[
        tuple[InnerFolder, ...],
        Meta(max_length=MAX_PLACES),
        about("Directories of the claim, such as [log]. If omitted, the whole claim."),
    ] = ()


class SecretRef(Part, frozen=True, kw_only=True):
    """A Secret with the credentials of a bucket."""

    name: Annotated[str, about("Name of the Secret.")]


class BucketLogs(Part, frozen=True, kw_only=True):
    """Logs in a bucket."""

    secret_ref: Annotated[SecretRef, about("Secret with the credentials of the bucket.")]
    uri: Annotated[
        tuple[BucketUri, ...], Meta(max_length=MAX_PLACES), about("Locations of the logs, such as [s3://bucket/log/].")
    ]


class WebLogs(Part, frozen=True, kw_only=True):
    """Logs on the web."""

    url: Annotated[Words, about("URLs of the logs.")]


class LogDir(Part, frozen=True, kw_only=True):
    """Locations of the logs."""

    pvc: Annotated[tuple[ClaimLogs, ...], Meta(max_length=MAX_PLACES), about("Logs in claims.")] = ()
    s3: Annotated[BucketLogs | None, about("Logs in a bucket.")] = None
    http: Annotated[WebLogs | None, about("Logs on the web.")] = None


class TensorBoardSpec(Part, frozen=True, kw_only=True):
    """A TensorBoard over the logs of trainings."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule=(
                "has(self.trainingLogFilesets) && size(self.trainingLogFilesets) > 0 || has(self.logDir) && "
                "(has(self.logDir.pvc) && size(self.logDir.pvc) > 0 || has(self.logDir.s3) || has(self.logDir.http))"
            ),
            message=NO_LOGS,
            field=".logDir",
            reason="FieldValueRequired",
        ),
    )

    training_log_filesets: Annotated[
        tuple[FilesetUri, ...],
        Meta(max_length=MAX_PLACES),
        about("Locations of the logs, as t9k://pvc/CLAIM/FOLDER or t9k://minio/SECRET/BUCKET/FOLDER."),
    ] = ()
    log_dir: Annotated[LogDir | None, about("Locations of the logs.")] = None
    image: Annotated[str | None, about("Image with TensorBoard, such as tensorflow/tensorflow:2.14.0.")] = None
    resources: Resources | None = None
    suspend: Annotated[bool, about("Delete the pod and keep the object; may change at any time.")] = False
    idle_seconds: IdleSeconds = DEFAULT_IDLE_SECONDS
    service_type: Annotated[
        ServiceType,
        about(
            "Type of the Service, which needs no password: ClusterIP (inside the cluster, and through the API server), "
            "NodePort (also a high port of the nodes), LoadBalancer (also port 80 of an external address)."
        ),
    ] = INSIDE
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pod.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSet:
    """One location of logs: a directory of a claim, or of a bucket with a Secret."""

    claim: str = ""
    secret: str = ""
    bucket: str = ""
    folder: str = ""

    @property
    def path(self) -> str:
        """Path or URL at which TensorBoard reads the logs."""
        parts = (CLAIMS, self.claim, self.folder) if self.claim else ("s3:/", self.bucket, self.folder)
        return "/".join(part for part in parts if part)

    @property
    def label(self) -> str:
        """Name under which TensorBoard shows these runs, if there are several locations."""
        return "/".join(part for part in (self.claim or self.bucket, self.folder) if part)


def read_uri(uri: str) -> LogSet | None:
    """Return the location that `t9k://pvc/…` or `t9k://minio/…` names; None if it is neither."""
    match = URI.fullmatch(uri)
    if match is None:
        return None
    parts = _parts(match["path"])
    if ".." in parts:
        return None
    if match["store"] == "pvc" and parts:
        return LogSet(claim=parts[0], folder="/".join(parts[1:]))
    if match["store"] == "minio" and len(parts) > 1:
        return LogSet(secret=parts[0], bucket=parts[1], folder="/".join(parts[2:]))
    return None


def log_sets(spec: TensorBoardSpec) -> tuple[LogSet, ...]:
    """Return all locations of logs without duplicates, in the order of the spec."""
    logs = spec.log_dir or LogDir()
    filesets = [read_uri(uri) for uri in spec.training_log_filesets]
    listed = [
        LogSet(claim=claim.name, folder="/".join(_parts(folder)))
        for claim in logs.pvc
        for folder in claim.sub_path or ("",)
    ]
    stored = [_in_bucket(logs.s3.secret_ref.name, uri) for uri in logs.s3.uri] if logs.s3 else []
    return tuple(dict.fromkeys(location for location in (*filesets, *listed, *stored) if location is not None))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _in_bucket(secret: str, uri: str) -> LogSet | None:
    match = BUCKET_URI.fullmatch(uri)
    return match and LogSet(secret=secret, bucket=match["bucket"], folder=(match["folder"] or "").strip("/"))


def check_logs(spec: TensorBoardSpec, path: str) -> Iterator[Fault]:
    """Yield a fault for each location that is malformed, and if there is none."""
    for index, uri in enumerate(spec.training_log_filesets):
        if read_uri(uri) is None:
            yield invalid(f"{path}.trainingLogFilesets[{index}]", uri, URI_HINT)
    logs = spec.log_dir or LogDir()
    for index, claim in enumerate(logs.pvc):
        for position, folder in enumerate(claim.sub_path):
            if folder.startswith("/") or ".." in folder.split("/"):
                folder_path = f"{path}.logDir.pvc[{index}].subPath[{position}]"
                yield invalid(folder_path, folder, NO_FOLDER)
    yield from _check_places(spec, f"{path}.logDir")
    if not (spec.training_log_filesets or logs.pvc or logs.s3 or logs.http):
        yield required(f"{path}.logDir", NO_LOGS)


def _check_places(spec: TensorBoardSpec, path: str) -> Iterator[Fault]:
    uris = spec.log_dir.s3.uri if spec.log_dir and spec.log_dir.s3 else ()
    for index, uri in enumerate(uris):
        if not BUCKET_URI.fullmatch(uri):
            yield invalid(f"{path}.s3.uri[{index}]", uri, NO_BUCKET)
    sets = log_sets(spec)
    for location in sets if len(sets) > 1 else ():
        if "," in location.path:
            hint = "a name with a comma cannot be combined with other locations; rename the directory"
            yield invalid(path, location.label, hint)


def log_claims(spec: TensorBoardSpec, path: str) -> tuple[Claim, ...]:
    """Return the claims with logs, each with the path that names it."""
    sets = [(index, read_uri(uri)) for index, uri in enumerate(spec.training_log_filesets)]
    filesets = [(f"{path}.trainingLogFilesets[{index}]", logs.claim) for index, logs in sets if logs and logs.claim]
    claims = (spec.log_dir or LogDir()).pvc
    return (*filesets, *((f"{path}.logDir.pvc[{index}].name", claim.name) for index, claim in enumerate(claims)))


class HasTensorBoard(Protocol):
    """A job that may have its own TensorBoard."""

    @property
    def tensorboard_spec(self) -> TensorBoardSpec | None: ...


def own_tensorboard_claims(job: HasTensorBoard, path: str) -> tuple[Claim, ...]:
    """Return the claims with logs of a job's own TensorBoard."""
    return () if job.tensorboard_spec is None else log_claims(job.tensorboard_spec, f"{path}.tensorboardSpec")
