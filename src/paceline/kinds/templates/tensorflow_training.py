"""The template of distributed TensorFlow: numbers of workers and parameter servers in, everything else for nothing.

In     values that already satisfy their bounds.
Out    a TensorFlowTrainingJob, the claim that its replicas share, and a TensorBoard over all revisions.
Never  knows which image is right: it warns nobody and takes what it is given.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import MAX_REPLICAS, Count, about
from paceline.kinds.template import literal
from paceline.kinds.templates.mould import Parts, Release, Template, Value
from paceline.kinds.templates.words import (
    NUMBER,
    Number,
    Policy,
    Port,
    Quantity,
    Words,
    as_text,
    is_set,
    resources_of,
)
from paceline.kinds.tensorboardspec import ServiceType
from paceline.objects.faults import invalid
from paceline.objects.quantity import is_quantity, parse

NAME = "tensorflow-training"
MOUNT_PATH = "/data"
# Where a shipped trainer lies in its container.
TRAINERS = "/opt/paceline/trainer"
# Needs nothing but Python, which every image of a trainer has.
IMAGE = "python:3.11"
PORT_NAME = "tfjob-port"
# What the trainer calls what people set.
FLAGS = {"epochs": "--epochs", "batchsize": "--batch_size", "learningrate": "--lr"}


class Worker(Value, frozen=True, kw_only=True):
    """The replicas that train."""

    number: Annotated[int, Meta(ge=1, le=MAX_REPLICAS), about("How many workers there are.")] = 2
    gpu_count: Annotated[Count, about("GPUs that each worker gets; 0 trains on the CPU.")] = 1
    image: Annotated[str, about("Image of the trainer.")] = IMAGE
    image_pull_policy: Annotated[Policy, about("When the image is pulled: Always, IfNotPresent or Never.")] = (
        "IfNotPresent"
    )
    port: Annotated[Port, about("Port at which each worker listens.")] = 8000
    cpu: Annotated[Quantity, about("CPUs that each worker asks for.")] = "500m"
    memory: Annotated[Quantity, about("Memory that each worker asks for and may use.")] = "512Mi"
    env: Annotated[dict[str, str], about("Variables of each worker.")] = msgspec.field(default_factory=dict)


class Ps(Value, frozen=True, kw_only=True):
    """The replicas that hold the parameters."""

    number: Annotated[int, Meta(ge=0, le=MAX_REPLICAS), about("How many parameter servers there are; 0: none.")] = 2
    gpu_count: Annotated[Count, about("GPUs that each parameter server gets.")] = 0
    image: Annotated[str, about("Image of the trainer.")] = IMAGE
    image_pull_policy: Annotated[Policy, about("When the image is pulled: Always, IfNotPresent or Never.")] = (
        "IfNotPresent"
    )
    port: Annotated[Port, about("Port at which each parameter server listens.")] = 9000
    cpu: Annotated[Quantity, about("CPUs that each parameter server asks for.")] = "500m"
    memory: Annotated[Quantity, about("Memory that each parameter server asks for and may use.")] = "512Mi"
    env: Annotated[dict[str, str], about("Variables of each parameter server.")] = msgspec.field(default_factory=dict)


class Hyperparams(Value, frozen=True, kw_only=True):
    """What the trainer is told. 0 or nothing: the trainer's own choice."""

    epochs: Annotated[Number, about("Passes over the data.")] = 100
    batchsize: Annotated[Number, about("Examples per step.")] = 20
    learningrate: Annotated[Number, about("Learning rate.")] = 0.001


class Tensorboard(Value, frozen=True, kw_only=True):
    """The TensorBoard over all revisions; it is always on."""

    image: Annotated[str, about("Image of TensorBoard; left out: the one that is shipped.")] = ""
    service_type: Annotated[
        ServiceType,
        about(
            "From where it is reached, without a password: ClusterIP (inside only), NodePort (also a high port), "
            "LoadBalancer (also port 80 of an address)."
        ),
    ] = "LoadBalancer"


class Pvc(Value, frozen=True, kw_only=True):
    """The claim that is made for the application."""

    storage: Annotated[Quantity, about("Size of the claim.")] = "5Gi"
    match_labels: Annotated[
        dict[str, str], about("Labels of the volume that the claim is bound to; none: a new volume.")
    ] = msgspec.field(default_factory=dict)


class Persistence(Value, frozen=True, kw_only=True):
    """Where results are kept."""

    mount_path: Annotated[str, about("The same as mountPath, in another place.")] | None = None
    pvc: Annotated[Pvc, about("The claim that is made for the application.")] = msgspec.field(default_factory=Pvc)


class Values(Value, frozen=True, kw_only=True):
    """Distributed TensorFlow training."""

    worker: Annotated[Worker, about("The replicas that train.")] = msgspec.field(default_factory=Worker)
    ps: Annotated[Ps, about("The replicas that hold the parameters.")] = msgspec.field(default_factory=Ps)
    hyperparams: Annotated[Hyperparams, about("What the trainer is told.")] = msgspec.field(default_factory=Hyperparams)
    tensorboard: Annotated[Tensorboard, about("The TensorBoard over all revisions.")] = msgspec.field(
        default_factory=Tensorboard
    )
    mount_path: Annotated[str, about("Where the claim is seen in every container. Default: /data.")] | None = None
    persistence: Annotated[Persistence, about("Where results are kept.")] = msgspec.field(default_factory=Persistence)
    trainer: Annotated[
        Literal["", "parameter-server"],
        about("Trainer that is shipped with Paceline and runs in any image with Python; empty: the image's own."),
    ] = "parameter-server"
    command: Annotated[Words, about("Command of your own trainer, in place of a shipped one.")] = ()


def check(values: Values, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between values."""
    return tuple(_check(values, path))


def _check(values: Values, path: str) -> Iterator[Fault]:
    top, nested = values.mount_path, values.persistence.mount_path
    if top is not None and nested is not None and top != nested:
        hint = f"mountPath and persistence.mountPath are the same thing, and mountPath says {top!r}; drop one of them"
        yield invalid(f"{path}.persistence.mountPath", nested, hint)
    for name, where in (("mountPath", top), ("persistence.mountPath", nested)):
        if where is not None and (not where.startswith("/") or where.strip("/") == "" or ".." in where.split("/")):
            yield invalid(f"{path}.{name}", where, "write an absolute path, such as /data")
    for name, role in (("worker", values.worker), ("ps", values.ps)):
        for field, text in (("cpu", role.cpu), ("memory", role.memory)):
            if text != "" and not is_quantity(str(text)):
                yield invalid(f"{path}.{name}.{field}", text, "write a quantity, such as 500m or 1Gi")
    size = str(values.persistence.pvc.storage)
    if not is_quantity(size) or parse(size) <= 0:
        yield invalid(f"{path}.persistence.pvc.storage", size, "write a size, such as 5Gi")
    for name in FLAGS:
        value = getattr(values.hyperparams, name)
        if isinstance(value, str) and value and not re.fullmatch(NUMBER, value):
            yield invalid(f"{path}.hyperparams.{name}", value, "write a number")


def expand(values: Values, release: Release) -> Parts:
    """Spell out the job: workers and parameter servers that share one claim and know each other."""
    mount = values.mount_path or values.persistence.mount_path or MOUNT_PATH
    told = {name: as_text(value) for name in FLAGS if is_set(value := getattr(values.hyperparams, name))}
    folder = f"logs/{release.job}"
    flag = f"--logdir={mount.rstrip('/')}/{folder}"
    roles: list[tuple[str, Worker | Ps]] = [("worker", values.worker)]
    roles += [("ps", values.ps)] if values.ps.number else []
    spec = {
        # The parameter servers never end; the training is done when all workers are.
        "successPolicy": "AllWorkers",
        "hyperparameters": {"values": told, "names": {name: FLAGS[name] for name in told}},
        "replicaSpecs": [
            {
                "type": name,
                "replicas": role.number,
                "restartPolicy": "OnFailure",
                "template": {"spec": _pod(role, values, release=release, mount=mount, flag=flag)},
            }
            for name, role in roles
        ],
    }
    return Parts(
        kind="TensorFlowTrainingJob",
        spec=spec,
        claims={release.claim: _claim(values.persistence.pvc)},
        trainer="" if values.command else values.trainer,
        boards={release.stem: _board(values.tensorboard, release)},
        hyperparameters=told,
        results=f"claim {release.claim}, folder {folder}",
    )


def _pod(role: Worker | Ps, values: Values, *, release: Release, mount: str, flag: str) -> dict[str, Any]:
    # On a cluster without containers an image is only a hint; the command must say what runs.
    shipped = ["python3", f"{TRAINERS}/{values.trainer}.py"] if values.trainer else []
    command = list(values.command) or shipped
    volumes: list[dict[str, Any]] = [{"name": "data", "persistentVolumeClaim": {"claimName": release.claim}}]
    mounts: list[dict[str, Any]] = [{"name": "data", "mountPath": mount}]
    if command == shipped and shipped:
        volumes.append({"name": "trainer", "configMap": {"name": release.trainer}})
        mounts.append({"name": "trainer", "mountPath": TRAINERS, "readOnly": True})
    container = {
        "name": "tensorflow",
        "image": role.image,
        "imagePullPolicy": role.image_pull_policy,
        **({"command": [literal(word) for word in command]} if command else {}),
        "args": [literal(flag)],
        "ports": [{"name": PORT_NAME, "containerPort": role.port}],
        **({"env": [{"name": name, "value": text} for name, text in role.env.items()]} if role.env else {}),
        "resources": resources_of(role.cpu, role.memory, role.gpu_count),
        "volumeMounts": mounts,
    }
    return {"containers": [container], "volumes": volumes}


def _claim(pvc: Pvc) -> Mapping[str, Any]:
    wish: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": as_text(pvc.storage)}},
    }
    if pvc.match_labels:
        # Labels choose among volumes that are there; no class, or the cluster would make a new one.
        wish |= {"storageClassName": "", "selector": {"matchLabels": dict(pvc.match_labels)}}
    return wish


def _board(board: Tensorboard, release: Release) -> Mapping[str, Any]:
    shown: dict[str, Any] = {"logDir": {"pvc": [{"name": release.claim, "subPath": ["logs"]}]}, "idleSeconds": 0}
    shown["serviceType"] = board.service_type
    return {**shown, "image": board.image} if board.image else shown


README = """\
Trains a model with TensorFlow on several workers and parameter servers.

You say how many there are; each replica is told who the others are, in every dialect that trainers read
(TF_CONFIG, CLUSTER_CONFIG and POD_NAME, JOB_NAME and JOB_INDEX with PS_HOSTS and WORKER_HOSTS).
All replicas share one claim, which is made for the application; a TensorBoard shows the curves of all its revisions.
The training is done when every worker is; parameter servers are stopped then.

Without a command of your own it runs a small trainer that needs no download. Change a value, and the next revision
runs: paceline upgrade NAME --set hyperparams.learningrate=0.0005
"""

TEMPLATE = Template(
    name=NAME,
    version="0.1.0",
    description="Distributed TensorFlow with workers, parameter servers and TensorBoard",
    readme=README,
    values=Values,
    check=check,
    expand=expand,
    without_gpu="worker.gpuCount=0",
    also=("ack-tensorflow-training", "acs-tensorflow-training"),
)
