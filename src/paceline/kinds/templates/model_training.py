"""The template of the model-training service: code from git or packed up, one command, data in, results out.

In     values that already satisfy their bounds.
Out    a job of the framework's kind, and a TensorBoard per worker beside one over all of them.
Never  holds a password: it names the secret that does.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import MAX_REPLICAS, Count, about
from paceline.kinds.source import Git as GitSource
from paceline.kinds.source import Source, check_source
from paceline.kinds.template import literal
from paceline.kinds.templates.mould import Parts, Release, Template, Value
from paceline.kinds.templates.words import Number, Quantity, as_text, resources_of
from paceline.objects.faults import forbidden, invalid, required
from paceline.objects.quantity import is_quantity

NAME = "model-training"
INPUT, OUTPUT = "/input", "/output"
# Frameworks by name: the kind of the job, the container that trains, and the image.
FRAMEWORKS = {
    "tensorflow": ("TensorFlowTrainingJob", "tensorflow", "tensorflow/tensorflow:2.15.0"),
    "keras": ("TensorFlowTrainingJob", "tensorflow", "tensorflow/tensorflow:2.15.0"),
    "pytorch": ("PyTorchTrainingJob", "pytorch", "pytorch/pytorch:2.13.0"),
    "python": ("TensorFlowTrainingJob", "tensorflow", "python:3.11"),
}
SINGLE = "GenericJob"
# HOST:PORT/FOLDER/NAME:TAG@DIGEST.
IMAGE = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)


class Git(Value, frozen=True, kw_only=True):
    """A repository, read over http or https."""

    url: Annotated[str, about("Address of the repository, http or https.")]
    revision: Annotated[str, about("Branch, tag or commit; empty: the default branch.")] = ""
    directory: Annotated[str, about("Folder of it in which the command runs; empty: its root.")] = ""
    secret: Annotated[str, about("Secret with username and password, if it is private.")] = ""


class Archive(Value, frozen=True, kw_only=True):
    """A folder or script that was packed up."""

    digest: Annotated[str, about("sha256: and the digest of the packed file.")]
    config_map: Annotated[str, about("Config map that holds it.")]


class Data(Value, frozen=True, kw_only=True):
    """What is read at /input and where /output goes: a claim, or a bucket. Neither: results stay with the app."""

    claim: Annotated[str, about("Claim with the data.")] = ""
    secret: Annotated[str, about("Secret with the address and the keys of a bucket.")] = ""
    bucket: Annotated[str, about("The bucket, as s3://BUCKET/FOLDER, so that TensorBoard finds its logs.")] = ""


class Values(Value, frozen=True, kw_only=True):
    """A training of your own code."""

    git: Annotated[Git, about("Where the code is.")] | None = None
    archive: Annotated[Archive, about("The code itself, packed up by `paceline train`.")] | None = None
    command: Annotated[str, about("What runs in the folder of the code; a shell reads it.")] = ""
    framework: Annotated[str, about("tensorflow, keras, pytorch, python, or an image of your own.")] = "tensorflow"
    distributed: Annotated[bool, about("Whether replicas train together and are told of each other.")] = False
    ps: Annotated[int, Meta(ge=0, le=MAX_REPLICAS), about("Parameter servers, if distributed.")] = 0
    workers: Annotated[int, Meta(ge=1, le=MAX_REPLICAS), about("Workers, if distributed.")] = 1
    gpus: Annotated[Count, about("GPUs of each worker; 0 trains on the CPU.")] = 0
    cpu: Annotated[Quantity, about("CPUs that each replica asks for.")] = "500m"
    memory: Annotated[Quantity, about("Memory that each replica asks for and may use.")] = "1Gi"
    data: Annotated[Data, about("What is read at /input and where /output goes.")] = msgspec.field(default_factory=Data)
    log_dir: Annotated[str, about("Folder below /output of event files; empty: no TensorBoard.")] = ""
    hyperparameters: Annotated[
        dict[str, Number], about("Values that the command gets as --name=value; shown and compared.")
    ] = msgspec.field(default_factory=dict)


def check(values: Values, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between values."""
    return (*_check_code(values, path), *_check_rest(values, path))


def _check_code(values: Values, path: str) -> Iterator[Fault]:
    if (values.git is None) == (values.archive is None):
        yield required(f"{path}.git", "say where the code is: git, or archive, and not both")
    if values.git is not None:
        told = GitSource(url=values.git.url, revision=values.git.revision, directory=values.git.directory)
        yield from check_source(Source(git=told), path)
    if not values.command.strip():
        yield required(f"{path}.command", "say what runs, such as python3 train.py")


def _check_rest(values: Values, path: str) -> Iterator[Fault]:
    if values.framework not in FRAMEWORKS and not IMAGE.fullmatch(values.framework):
        hint = f"use {', '.join(FRAMEWORKS)}, or the address of an image, such as example.org/team/trainer:1"
        yield invalid(f"{path}.framework", values.framework, hint)
    if not values.distributed and (values.ps or values.workers > 1):
        yield forbidden(f"{path}.workers", "only a distributed training has several replicas; set distributed to true")
    if values.ps and values.distributed and _kind(values)[0] != "TensorFlowTrainingJob":
        yield forbidden(f"{path}.ps", f"{values.framework} has no parameter servers; ask for workers")
    if values.log_dir:
        yield from _check_log_dir(values.log_dir, f"{path}.logDir")
    if values.data.claim and values.data.secret:
        yield forbidden(f"{path}.data.secret", "there is a claim already; drop one of them")
    for name, text in (("cpu", values.cpu), ("memory", values.memory)):
        if text != "" and not is_quantity(str(text)):
            yield invalid(f"{path}.{name}", text, "write a quantity, such as 500m or 1Gi")


def _check_log_dir(folder: str, path: str) -> Iterator[Fault]:
    if not folder.startswith("/"):
        yield invalid(path, folder, f"write an absolute path, such as {OUTPUT}/{folder.removeprefix('./')}")
    elif not folder.startswith(f"{OUTPUT}/") or ".." in folder.split("/"):
        yield invalid(path, folder, f"choose a folder below {OUTPUT}, such as {OUTPUT}/training_logs: others are lost")


def _kind(values: Values) -> tuple[str, str, str]:
    """Give the kind of the job, the container that trains, and its image."""
    kind, container, image = FRAMEWORKS.get(values.framework, ("TensorFlowTrainingJob", "tensorflow", values.framework))
    return (kind, container, image) if values.distributed else (SINGLE, "worker", image)


def expand(values: Values, release: Release) -> Parts:
    """Spell out the job: every replica runs the command in the folder of the code."""
    kind, container, image = _kind(values)
    pod = {
        "containers": [
            {
                "name": container,
                "image": image,
                "command": ["sh", "-c", literal(values.command)],
                "env": [{"name": name, "value": literal(text)} for name, text in _told(values).items()],
                "resources": resources_of(values.cpu, values.memory, values.gpus),
            }
        ]
    }
    # Parameter servers compute nothing that a GPU is good for.
    idle = {"containers": [{**pod["containers"][0], "resources": resources_of(values.cpu, values.memory, 0)}]}
    roles = [("worker", values.workers, pod), *([("ps", values.ps, idle)] if values.ps else [])]
    claim = values.data.claim or ("" if values.data.secret else release.claim)
    told = {name: as_text(value) for name, value in values.hyperparameters.items()}
    spec: dict[str, Any] = {
        "source": _source(values),
        "output": {"claim": claim} if claim else {"bucket": {"secret": values.data.secret}},
        "replicaSpecs": [
            {"type": name, "replicas": number, "restartPolicy": _restart(kind), "template": {"spec": body}}
            for name, number, body in roles
        ],
        **_rules(kind),
        **({"hyperparameters": {"values": told}} if told else {}),
    }
    if values.data.claim or values.data.secret:
        spec["input"] = {"claim": claim} if claim else {"bucket": {"secret": values.data.secret}}
    return Parts(
        kind=kind,
        spec=spec,
        claims={} if claim != release.claim else {claim: _claim()},
        boards=_boards(values, release, claim),
        hyperparameters=told,
        results=_results(values, release, claim),
    )


def _told(values: Values) -> dict[str, str]:
    """Give what code and images of the training service look for in their environment."""
    told = {"GIT_URL": values.git.url} if values.git is not None else {}
    return told | ({"DEFAULT_REMOTE_VOLUME_PATH": INPUT} if values.data.claim or values.data.secret else {})


def _restart(kind: str) -> Any:
    return {"policy": "Never"} if kind == SINGLE else "Never"


def _rules(kind: str) -> dict[str, Any]:
    if kind == SINGLE:
        return {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}]}
    return {"successPolicy": "AllWorkers"} if kind == "TensorFlowTrainingJob" else {}


def _source(values: Values) -> dict[str, Any]:
    if values.git is None:
        packed: Any = values.archive
        return {"archive": {"digest": packed.digest, "configMap": packed.config_map}}
    told = {"url": values.git.url, "revision": values.git.revision, "directory": values.git.directory}
    if values.git.secret:
        told["secret"] = values.git.secret
    return {"git": {name: text for name, text in told.items() if text}}


def _claim() -> dict[str, Any]:
    return {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "5Gi"}}}


def _results(values: Values, release: Release, claim: str) -> str:
    if claim == release.claim:
        return f"claim {claim}, folder {release.job}; it goes with the application"
    return f"claim {claim}, folder {release.job}" if claim else f"{values.data.bucket or 'the bucket'}/{release.job}"


def _boards(values: Values, release: Release, claim: str) -> dict[str, dict[str, Any]]:
    """Give one TensorBoard over all workers, and one for each worker where there are several."""
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


def _board(values: Values, claim: str, folders: list[str]) -> dict[str, Any]:
    if claim:
        return {"logDir": {"pvc": [{"name": claim, "subPath": folders}]}, "idleSeconds": 0}
    bucket = values.data.bucket.rstrip("/").replace("oss://", "s3://", 1)
    uris = [f"{bucket}/{folder}/" for folder in folders]
    return {"logDir": {"s3": {"secretRef": {"name": values.data.secret}, "uri": uris}}, "idleSeconds": 0}


README = """\
Trains with code of your own: a repository, or a script of this machine.

The code is fetched, its requirements.txt is installed, and the command runs in its folder. What it reads lies at
/input; what it writes to /output is kept, for every worker apart. If it is distributed, each replica is told who the
others are (TF_CONFIG, JOB_NAME and JOB_INDEX with PS_HOSTS and WORKER_HOSTS, or MASTER_ADDR, RANK and WORLD_SIZE).

`paceline train` fills these values in: paceline train --git URL --command 'python3 train.py' NAME
"""

TEMPLATE = Template(
    name=NAME,
    version="0.1.0",
    description="Your own code from git or a folder, with data in and results out",
    readme=README,
    values=Values,
    check=check,
    expand=expand,
    without_gpu="gpus=0",
)
