"""What a TensorBoard shows: logs in claims, buckets or on the web. A job's own is written the same way."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from paceline.errors import Fault
from paceline.kinds.fields import Part, Resources, about
from paceline.kinds.kind import Claim
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import Words
from paceline.objects.faults import invalid, required

URI = re.compile(r"t9k://(?P<store>[^/]*)/(?P<rest>.*)")
URI_HINT = "write t9k://pvc/CLAIM/FOLDER or t9k://minio/SECRET/BUCKET/FOLDER"


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
    scheduler: Annotated[Scheduler, about("Who places the pod.")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSet:
    """One place with logs: a folder of a claim, or of a bucket whose keys a secret holds."""

    claim: str = ""
    secret: str = ""
    bucket: str = ""
    folder: str = ""


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
    if not (spec.training_log_filesets or logs.pvc or logs.s3 or logs.http):
        yield required(f"{path}.logDir", "say where the logs lie, such as {pvc: [{name: CLAIM, subPath: [log]}]}")


def log_claims(spec: TensorBoardSpec, path: str) -> tuple[Claim, ...]:
    """Give the claims whose logs are shown, each with the path that names it."""
    sets = [(index, read_uri(uri)) for index, uri in enumerate(spec.training_log_filesets)]
    told = [(f"{path}.trainingLogFilesets[{index}]", each.claim) for index, each in sets if each and each.claim]
    listed = (spec.log_dir or LogDir()).pvc
    return (*told, *((f"{path}.logDir.pvc[{index}].name", each.name) for index, each in enumerate(listed)))
