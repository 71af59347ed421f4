"""The template of the model-training service: code from git or an archive, one command, input and output.

In     values that already satisfy their bounds.
Out    a job of the framework's kind, a TensorBoard for all workers, and one per worker.
Never  contains a password: it names the Secret that does.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.apimachinery.field_errors import forbidden, invalid, required
from paceline.apimachinery.quantity import is_quantity
from paceline.errors import Fault
from paceline.kinds.apps.templates.types import (
    Number,
    Quantity,
    Release,
    Rendered,
    Template,
    Value,
    as_text,
    resources_of,
)
from paceline.kinds.spec.fields import MAX_REPLICAS, Count, about
from paceline.kinds.spec.pod_template import literal
from paceline.kinds.spec.source import Git as GitSource
from paceline.kinds.spec.source import Source, check_source

NAME = "model-training"
INPUT, OUTPUT = "/input", "/output"
# Frameworks by name: the kind of the job, the name of the training container, and the image.
FRAMEWORKS = {
    "tensorflow": ("TensorFlowTrainingJob", "tensorflow", "tensorflow/tensorflow:2.15.0"),
    "keras": ("TensorFlowTrainingJob", "tensorflow", "tensorflow/tensorflow:2.15.0"),
    "pytorch": ("PyTorchTrainingJob", "pytorch", "pytorch/pytorch:2.13.0"),
    "python": ("TensorFlowTrainingJob", "tensorflow", "python:3.11"),
}
SINGLE = "GenericJob"
# The spec of the claim for the results, where the values name none.
OWN_CLAIM = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}
# HOST:PORT/FOLDER/NAME:TAG@DIGEST.
IMAGE = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


class GitValues(Value, frozen=True, kw_only=True):
    """A git repository, cloned over http or https."""

    url: Annotated[str, about("http or https URL of the repository.")]
    revision: Annotated[str, about("Branch, tag or commit. If empty, the default branch.")] = ""
    directory: Annotated[str, about("Directory in which the command runs. If empty, the root of the repository.")] = ""
    secret: Annotated[str, about("Secret with username and password, for a private repository.")] = ""


class ArchiveValues(Value, frozen=True, kw_only=True):
    """An archive of a directory or script."""

    digest: Annotated[str, about("sha256: followed by the hex digest of the archive.")]
    config_map: Annotated[str, about("ConfigMap with the archive.")]


class Data(Value, frozen=True, kw_only=True):
    """Volume for /input and /output: a claim or a bucket. With neither, results are kept on the app's own claim."""

    claim: Annotated[str, about("PersistentVolumeClaim with the data.")] = ""
    secret: Annotated[str, about("Secret with the URL and the credentials of a bucket.")] = ""
    bucket: Annotated[str, about("URL of the bucket for TensorBoard, as s3://BUCKET/FOLDER.")] = ""


class ModelTrainingValues(Value, frozen=True, kw_only=True):
    """Values for a training with your own code."""

    git: Annotated[GitValues | None, about("Git repository with the code.")] = None
    archive: Annotated[ArchiveValues | None, about("Archive with the code; `paceline train` creates it.")] = None
    command: Annotated[str, about("Shell command that runs in the directory of the code.")] = ""
    framework: Annotated[str, about("tensorflow, keras, pytorch, python, or the name of an image.")] = "tensorflow"
    distributed: Annotated[bool, about("Whether several replicas train together.")] = False
    ps: Annotated[int, Meta(ge=0, le=MAX_REPLICAS), about("Number of parameter servers, if distributed.")] = 0
    workers: Annotated[int, Meta(ge=1, le=MAX_REPLICAS), about("Number of workers, if distributed.")] = 1
    gpus: Annotated[Count, about("Number of GPUs per worker; 0 trains on the CPU.")] = 0
    cpu: Annotated[Quantity, about("CPU request of each replica.")] = "500m"
    memory: Annotated[Quantity, about("Memory request and limit of each replica.")] = "1Gi"
    data: Annotated[Data, about("Volume for /input and /output.")] = msgspec.field(default_factory=Data)
    log_dir: Annotated[str, about("Directory below /output with event files. If empty, there is no TensorBoard.")] = ""
    hyperparameters: Annotated[dict[str, Number], about("Hyperparameters, passed to the command as --name=value.")] = (
        msgspec.field(default_factory=dict)
    )


def check(values: ModelTrainingValues, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between values."""
    return (*_check_code(values, path), *_check_settings(values, path))


def _check_code(values: ModelTrainingValues, path: str) -> Iterator[Fault]:
    if (values.git is None) == (values.archive is None):
        yield required(f"{path}.git", "set either git or archive")
    if values.git is not None:
        source = GitSource(url=values.git.url, revision=values.git.revision, directory=values.git.directory)
        yield from check_source(Source(git=source), path)
    if not values.command.strip():
        yield required(f"{path}.command", "set a command, such as python3 train.py")


def _check_settings(values: ModelTrainingValues, path: str) -> Iterator[Fault]:
    if values.framework not in FRAMEWORKS and not IMAGE.fullmatch(values.framework):
        hint = f"use {', '.join(FRAMEWORKS)}, or the name of an image, such as example.org/team/trainer:1"
        yield invalid(f"{path}.framework", values.framework, hint)
    if not values.distributed and (values.ps or values.workers > 1):
        yield forbidden(f"{path}.workers", "several replicas require distributed; set it to true")
    if values.ps and values.distributed and _kind(values)[0] != "TensorFlowTrainingJob":
        yield forbidden(f"{path}.ps", f"{values.framework} has no parameter servers; use workers")
    if values.log_dir:
        yield from _check_log_dir(values.log_dir, f"{path}.logDir")
    if values.data.claim and values.data.secret:
        yield forbidden(f"{path}.data.secret", "data.claim is also set; remove one of them")
    for name, text in (("cpu", values.cpu), ("memory", values.memory)):
        if text != "" and not is_quantity(str(text)):
            yield invalid(f"{path}.{name}", text, "must be a quantity, such as 500m or 1Gi")


def _check_log_dir(folder: str, path: str) -> Iterator[Fault]:
    if not folder.startswith("/"):
        yield invalid(path, folder, f"must be an absolute path, such as {OUTPUT}/{folder.removeprefix('./')}")
    elif not folder.startswith(f"{OUTPUT}/") or ".." in folder.split("/"):
        yield invalid(path, folder, f"must be below {OUTPUT}, such as {OUTPUT}/training_logs; other files are not kept")


def _kind(values: ModelTrainingValues) -> tuple[str, str, str]:
    """Return the kind of the job, the name of the training container, and its image."""
    kind, container, image = FRAMEWORKS.get(values.framework, ("TensorFlowTrainingJob", "tensorflow", values.framework))
    return (kind, container, image) if values.distributed else (SINGLE, "worker", image)


def expand(values: ModelTrainingValues, release: Release) -> Rendered:
    """Return the job: every replica runs the command in the directory of the code."""
    kind, container, image = _kind(values)
    pod = {
        "containers": [
            {
                "name": container,
                "image": image,
                "command": ["sh", "-c", literal(values.command)],
                "env": [{"name": name, "value": literal(text)} for name, text in _env(values).items()],
                "resources": resources_of(values.cpu, values.memory, values.gpus),
            }
        ]
    }
    # Parameter servers do not need GPUs.
    server_pod = {"containers": [{**pod["containers"][0], "resources": resources_of(values.cpu, values.memory, 0)}]}
    roles = [("worker", values.workers, pod), *([("ps", values.ps, server_pod)] if values.ps else [])]
    claim = values.data.claim or ("" if values.data.secret else release.claim)
    hyperparameters = {name: as_text(value) for name, value in values.hyperparameters.items()}
    spec: dict[str, Any] = {
        "source": _source(values),
        "output": {"claim": claim} if claim else {"bucket": {"secret": values.data.secret}},
        "replicaSpecs": [
            {"type": name, "replicas": number, "restartPolicy": _restart(kind), "template": {"spec": body}}
            for name, number, body in roles
        ],
        **_rules(kind),
        **({"hyperparameters": {"values": hyperparameters}} if hyperparameters else {}),
    }
    if values.data.claim or values.data.secret:
        spec["input"] = {"claim": claim} if claim else {"bucket": {"secret": values.data.secret}}
    return Rendered(
        kind=kind,
        spec=spec,
        claims={claim: OWN_CLAIM} if claim == release.claim else {},
        boards=_boards(values, release, claim),
        hyperparameters=hyperparameters,
        results=_results(values, release, claim),
    )


def _env(values: ModelTrainingValues) -> dict[str, str]:
    """Return the environment variables that code and images of the training service read."""
    env = {"GIT_URL": values.git.url} if values.git is not None else {}
    return env | ({"DEFAULT_REMOTE_VOLUME_PATH": INPUT} if values.data.claim or values.data.secret else {})


def _restart(kind: str) -> Any:
    return {"policy": "Never"} if kind == SINGLE else "Never"


def _rules(kind: str) -> dict[str, Any]:
    if kind == SINGLE:
        return {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}]}
    return {"successPolicy": "AllWorkers"} if kind == "TensorFlowTrainingJob" else {}


def _source(values: ModelTrainingValues) -> dict[str, Any]:
    if values.git is None:
        archive: Any = values.archive
        return {"archive": {"digest": archive.digest, "configMap": archive.config_map}}
    git = {"url": values.git.url, "revision": values.git.revision, "directory": values.git.directory}
    if values.git.secret:
        git["secret"] = values.git.secret
    return {"git": {name: text for name, text in git.items() if text}}


def _results(values: ModelTrainingValues, release: Release, claim: str) -> str:
    if claim == release.claim:
        return f"claim {claim}, folder {release.job}; it is deleted with the application"
    return f"claim {claim}, folder {release.job}" if claim else f"{values.data.bucket or 'the bucket'}/{release.job}"


def _boards(values: ModelTrainingValues, release: Release, claim: str) -> dict[str, dict[str, Any]]:
    """Return a TensorBoard for all workers and, if the training is distributed, one per worker."""
    if not values.log_dir or not (claim or values.data.bucket):
        return {}
    inner = values.log_dir.removeprefix(f"{OUTPUT}/").strip("/")
    folders = [f"{release.job}/worker-{index}/{inner}" for index in range(values.workers)]
    boards = {release.stem: _board(values, claim, folders)}
    if values.distributed:
        boards |= {
            f"{release.stem}-tensorboard{index}": _board(values, claim, [folder])
            for index, folder in enumerate(folders)
        }
    return boards


def _board(values: ModelTrainingValues, claim: str, folders: list[str]) -> dict[str, Any]:
    if claim:
        return {"logDir": {"pvc": [{"name": claim, "subPath": folders}]}, "idleSeconds": 0}
    bucket = values.data.bucket.rstrip("/").replace("oss://", "s3://", 1)
    uris = [f"{bucket}/{folder}/" for folder in folders]
    return {"logDir": {"s3": {"secretRef": {"name": values.data.secret}, "uri": uris}}, "idleSeconds": 0}


README = """\
Trains with your own code: a git repository, or a local script.

Paceline fetches the code, installs its requirements.txt and runs the command in its directory. Input data is at /input;
files written to /output are kept, separately for every worker. In a distributed training each replica gets the
addresses of the others (TF_CONFIG, JOB_NAME and JOB_INDEX with PS_HOSTS and WORKER_HOSTS, or MASTER_ADDR, RANK and
WORLD_SIZE).

`paceline train` sets these values: paceline train --git URL --command 'python3 train.py' NAME
"""

TEMPLATE = Template(
    name=NAME,
    version="0.1.0",
    description="Your own code from git or a local directory, with input and output",
    readme=README,
    values=ModelTrainingValues,
    check=check,
    expand=expand,
    without_gpu="gpus=0",
)
