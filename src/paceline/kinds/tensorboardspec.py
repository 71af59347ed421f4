"""What a TensorBoard shows: logs in claims, buckets or on the web. A job's own is written the same way."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from paceline.errors import Fault
from paceline.kinds.fields import Part, Resources, about
from paceline.kinds.kind import Claim
from paceline.kinds.schedule import Scheduler
from paceline.kinds.suspend import DEFAULT_IDLE_SECONDS, IdleSeconds
from paceline.kinds.template import Words
from paceline.objects.faults import invalid, required

URI = re.compile(r"t9k://(?P<store>[^/]*)/(?P<rest>.*)")
URI_HINT = "write t9k://pvc/CLAIM/FOLDER or t9k://minio/SECRET/BUCKET/FOLDER"
BUCKET_URI = re.compile(r"s3://(?P<bucket>[^/]+)(?:/(?P<folder>.*))?")
# From where a service is reached, in the words of Kubernetes.
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer"]
INSIDE: ServiceType = "ClusterIP"
# Where claims are seen by the program.
CLAIMS = "/t9k/pvc"


class ClaimLogs(Part, frozen=True, kw_only=True):
    """Logs in a claim."""

    name: Annotated[str, about("Name of the claim.")]
    sub_path: Annotated[Words, about("Folders inside the claim, such as [log]; left out: the whole claim.")] = ()


class SecretRef(Part, frozen=True, kw_only=True):
    """A secret with the keys of a bucket."""

    name: Annotated[str, about("Name of the secret.")]


class BucketLogs(Part, frozen=True, kw_only=True):
    """Logs in a bucket."""

    secret_ref: Annotated[SecretRef, about("The secret with the keys of the bucket.")]
    uri: Annotated[Words, about("Where the logs lie, such as [s3://bucket/log/].")]


class WebLogs(Part, frozen=True, kw_only=True):
    """Logs on the web."""

    url: Annotated[Words, about("Addresses of the logs.")]


class LogDir(Part, frozen=True, kw_only=True):
    """Where the logs lie."""

    pvc: Annotated[tuple[ClaimLogs, ...], about("Logs in claims.")] = ()
    s3: Annotated[BucketLogs, about("Logs in a bucket.")] | None = None
    http: Annotated[WebLogs, about("Logs on the web.")] | None = None


class TensorBoardSpec(Part, frozen=True, kw_only=True):
    """A TensorBoard over the logs of trainings."""

    training_log_filesets: Annotated[
        Words, about("Where the logs lie, as t9k://pvc/CLAIM/FOLDER or t9k://minio/SECRET/BUCKET/FOLDER.")
    ] = ()
    log_dir: Annotated[LogDir, about("Where the logs lie.")] | None = None
    image: Annotated[str, about("The image that has TensorBoard, such as tensorflow/tensorflow:2.14.0.")] | None = None
    resources: Resources | None = None
    suspend: Annotated[bool, about("Stop it and keep the object; may change at any time.")] = False
    idle_seconds: IdleSeconds = DEFAULT_IDLE_SECONDS
    service_type: Annotated[
        ServiceType,
        about(
            "From where it is reached, without a password: ClusterIP (inside the cluster, and by its path), NodePort "
            "(also a high port of the nodes), LoadBalancer (also port 80 of an address)."
        ),
    ] = INSIDE
    scheduler: Annotated[Scheduler, about("Who places the pod.")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSet:
    """One place with logs: a folder of a claim, or of a bucket whose keys a secret holds."""

    claim: str = ""
    secret: str = ""
    bucket: str = ""
    folder: str = ""

    @property
    def path(self) -> str:
        """Give where the program finds the logs."""
        parts = (CLAIMS, self.claim, self.folder) if self.claim else ("s3:/", self.bucket, self.folder)
        return "/".join(part for part in parts if part)

    @property
    def label(self) -> str:
        """Give what the runs found there are shown under, when there are several such places."""
        return "/".join(part for part in (self.claim or self.bucket, self.folder) if part)


def read_uri(uri: str) -> LogSet | None:
    """Read `t9k://pvc/…` or `t9k://minio/…`; None when it is neither. Slashes at the end and `./` mean nothing."""
    found = URI.fullmatch(uri)
    if found is None:
        return None
    parts = [part for part in found["rest"].split("/") if part not in ("", ".")]
    if ".." in parts:
        return None
    if found["store"] == "pvc" and parts:
        return LogSet(claim=parts[0], folder="/".join(parts[1:]))
    if found["store"] == "minio" and len(parts) > 1:
        return LogSet(secret=parts[0], bucket=parts[1], folder="/".join(parts[2:]))
    return None


def log_sets(spec: TensorBoardSpec) -> tuple[LogSet, ...]:
    """Give every place with logs, each once, in the order they are written."""
    logs = spec.log_dir or LogDir()
    told = [read_uri(uri) for uri in spec.training_log_filesets]
    listed = [_in_claim(claim.name, folder) for claim in logs.pvc for folder in claim.sub_path or ("",)]
    stored = [_in_bucket(logs.s3.secret_ref.name, uri) for uri in logs.s3.uri] if logs.s3 else []
    return tuple(dict.fromkeys(each for each in (*told, *listed, *stored) if each is not None))


def _in_claim(claim: str, folder: str) -> LogSet:
    return LogSet(claim=claim, folder="/".join(part for part in folder.split("/") if part not in ("", ".")))


def _in_bucket(secret: str, uri: str) -> LogSet | None:
    found = BUCKET_URI.fullmatch(uri)
    return found and LogSet(secret=secret, bucket=found["bucket"], folder=(found["folder"] or "").strip("/"))


def check_logs(spec: TensorBoardSpec, path: str) -> Iterator[Fault]:
    """Name what cannot be read, and a TensorBoard that has nothing to show."""
    for index, uri in enumerate(spec.training_log_filesets):
        if read_uri(uri) is None:
            yield invalid(f"{path}.trainingLogFilesets[{index}]", uri, URI_HINT)
    logs = spec.log_dir or LogDir()
    for index, claim in enumerate(logs.pvc):
        for position, folder in enumerate(claim.sub_path):
            if folder.startswith("/") or ".." in folder.split("/"):
                where = f"{path}.logDir.pvc[{index}].subPath[{position}]"
                yield invalid(where, folder, "name a folder inside the claim, such as log")
    yield from _check_places(spec, f"{path}.logDir")
    if not (spec.training_log_filesets or logs.pvc or logs.s3 or logs.http):
        yield required(f"{path}.logDir", "say where the logs lie, such as {pvc: [{name: CLAIM, subPath: [log]}]}")


def _check_places(spec: TensorBoardSpec, path: str) -> Iterator[Fault]:
    uris = spec.log_dir.s3.uri if spec.log_dir and spec.log_dir.s3 else ()
    for index, uri in enumerate(uris):
        if not BUCKET_URI.fullmatch(uri):
            yield invalid(f"{path}.s3.uri[{index}]", uri, "write s3://BUCKET/FOLDER/")
    sets = log_sets(spec)
    for each in sets if len(sets) > 1 else ():
        if "," in each.path:
            hint = "several places cannot be shown together when the name of one has a comma in it; rename the folder"
            yield invalid(path, each.label, hint)


def log_claims(spec: TensorBoardSpec, path: str) -> tuple[Claim, ...]:
    """Give the claims whose logs are shown, each with the path that names it."""
    sets = [(index, read_uri(uri)) for index, uri in enumerate(spec.training_log_filesets)]
    told = [(f"{path}.trainingLogFilesets[{index}]", each.claim) for index, each in sets if each and each.claim]
    listed = (spec.log_dir or LogDir()).pvc
    return (*told, *((f"{path}.logDir.pvc[{index}].name", each.name) for index, each in enumerate(listed)))
