"""The Explorer of a claim as its clients see it: manifest, requests, errors; and where the curves of a job are."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import label_problem
from paceline.errors import (
    AlreadyExists,
    BadRequest,
    Forbidden,
    HostError,
    Invalid,
    NotFound,
    PacelineError,
    ServiceUnavailable,
    TooLarge,
)
from paceline.kinds import registry
from paceline.kinds.interactive import explorer
from paceline.kinds.interactive.spec import TensorBoardSpec, log_sets
from paceline.kinds.kind_types import SERVICE_API_VERSION
from paceline.model.interactive import PORT_NAME, service_name

PLURAL = explorer.PLURAL
# The API's proxy passes this header on; the server in podtools expects it, and a test compares the two.
TOKEN_HEADER = "X-Paceline-Token"  # noqa: S105 - a name
# A part of an upload or download: small enough to be held in memory, and to be sent again.
PART_BYTES = 8 << 20
# Names of Explorers are limited by those of their pods and Services.
MOST_NAME, HASH_LENGTH = 50, 6
ERRORS: Mapping[int, type[PacelineError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: AlreadyExists,
    413: TooLarge,
    422: BadRequest,
    503: ServiceUnavailable,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFolder:
    """A folder of a claim with event files."""

    claim: str
    folder: str = ""


def explorer_name(claim: str) -> str:
    """Return the name of a claim's Explorer: the claim's own, unless that is too long or has dots."""
    if len(claim) <= MOST_NAME and not label_problem(claim):
        return claim
    digest = sha256(claim.encode()).hexdigest()[:HASH_LENGTH]
    return f"{claim.replace('.', '-')[: MOST_NAME - HASH_LENGTH - 1].rstrip('-')}-{digest}"


def explorer_manifest(namespace: str, claim: str) -> Object:
    """Return the Explorer of a claim."""
    return {
        "apiVersion": SERVICE_API_VERSION,
        "kind": explorer.KIND.kind,
        "metadata": {"name": explorer_name(claim), "namespace": namespace},
        "spec": {"storageType": "pvc", "storageName": claim},
    }


def claim_of(obj: Object) -> str:
    """Return the claim that an Explorer serves."""
    return str((obj.get("spec") or {}).get("storageName") or "")


def proxy_path(namespace: str, name: str, route: str) -> str:
    """Return the path of a request to an Explorer through the API."""
    service = service_name(PLURAL, name)
    return f"/api/v1/namespaces/{namespace}/services/{service}:{PORT_NAME}/proxy{route}"


def error_of(status: int, answer: object) -> PacelineError:
    """Return the error that an Explorer, or the proxy before it, answered with."""
    message = answer.get("message") if isinstance(answer, dict) else None
    kind = ERRORS.get(status, HostError if status >= 500 else BadRequest)
    return kind(str(message or f"the Explorer answered {status}"))


def curve_folders(job: Object) -> tuple[CurveFolder, ...]:
    """Return the folders in which a job's own TensorBoard looks for curves, as far as they are in claims."""
    try:
        _, spec = registry.read(job)
    except Invalid:
        return ()
    board: TensorBoardSpec | None = getattr(spec, "tensorboard_spec", None)
    sets = log_sets(board) if board is not None else ()
    return tuple(CurveFolder(claim=logs.claim, folder=logs.folder) for logs in sets if logs.claim)


def number(value: Any) -> float:
    """Return a value of a curve: NaN and infinities come as words."""
    return float(value)
