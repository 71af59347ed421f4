"""The template of distributed TensorFlow: only the numbers of workers and parameter servers have to be set.

In     values that already satisfy their bounds.
Out    a TensorFlowTrainingJob, the claim that its replicas share, and a TensorBoard for all revisions.
Never  checks an image: it uses the one that it gets.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.quantity import is_quantity, parse
from paceline.errors import Fault
from paceline.kinds.apps.templates.types import (
    NUMBER,
    Number,
    Policy,
    Port,
    Quantity,
    Release,
    Rendered,
    Template,
    Value,
    Words,
    as_text,
    is_set,
    resources_of,
)
from paceline.kinds.interactive.spec import ServiceType
from paceline.kinds.spec.fields import MAX_REPLICAS, Count, about
from paceline.kinds.spec.pod_template import literal

NAME = "tensorflow-training"
MOUNT_PATH = "/data"
# Directory of a bundled trainer in its container.
TRAINERS = "/opt/paceline/trainer"
# The bundled trainer needs only Python.
IMAGE = "python:3.11"
PORT_NAME = "tfjob-port"
# Flags of the trainer for the hyperparameters.
FLAGS = {"epochs": "--epochs", "batchsize": "--batch_size", "learningrate": "--lr"}


class WorkerValues(Value, frozen=True, kw_only=True):
    """The replicas that train."""

    number: Annotated[int, Meta(ge=1, le=MAX_REPLICAS), about("Number of workers.")] = 2
    gpu_count: Annotated[Count, about("Number of GPUs per worker; 0 trains on the CPU.")] = 1
    image: Annotated[str, about("Image of the trainer.")] = IMAGE
    image_pull_policy: Annotated[Policy, about("Pull policy of the image: Always, IfNotPresent or Never.")] = (
        "IfNotPresent"
    )
    port: Annotated[Port, about("Port of each worker.")] = 8000
    cpu: Annotated[Quantity, about("CPU request of each worker.")] = "500m"
    memory: Annotated[Quantity, about("Memory request and limit of each worker.")] = "512Mi"
    env: Annotated[dict[str, str], about("Environment variables of each worker.")] = msgspec.field(default_factory=dict)


class Ps(Value, frozen=True, kw_only=True):
    """The replicas that hold the parameters."""

    number: Annotated[int, Meta(ge=0, le=MAX_REPLICAS), about("Number of parameter servers; 0 for none.")] = 2
    gpu_count: Annotated[Count, about("Number of GPUs per parameter server.")] = 0
    image: Annotated[str, about("Image of the trainer.")] = IMAGE
    image_pull_policy: Annotated[Policy, about("Pull policy of the image: Always, IfNotPresent or Never.")] = (
        "IfNotPresent"
    )
    port: Annotated[Port, about("Port of each parameter server.")] = 9000
    cpu: Annotated[Quantity, about("CPU request of each parameter server.")] = "500m"
    memory: Annotated[Quantity, about("Memory request and limit of each parameter server.")] = "512Mi"
    env: Annotated[dict[str, str], about("Environment variables of each parameter server.")] = msgspec.field(
        default_factory=dict
    )


class Hyperparams(Value, frozen=True, kw_only=True):
    """Hyperparameters. If one is 0 or empty, the trainer uses its own default."""

    epochs: Annotated[Number, about("Number of passes over the data.")] = 100
    batchsize: Annotated[Number, about("Number of examples per step.")] = 20
    learningrate: Annotated[Number, about("Learning rate.")] = 0.001


class Tensorboard(Value, frozen=True, kw_only=True):
    """The TensorBoard for all revisions; it is never stopped."""

    image: Annotated[str, about("Image of TensorBoard. If empty, the default image.")] = ""
    service_type: Annotated[
        ServiceType,
        about(
            "Type of the Service, which needs no password: ClusterIP (inside the cluster), NodePort (also a high port "
            "of the nodes), LoadBalancer (also port 80 of an external address)."
        ),
    ] = "LoadBalancer"


class Pvc(Value, frozen=True, kw_only=True):
    """The claim that is created for the application."""

    storage: Annotated[Quantity, about("Size of the claim.")] = "5Gi"
    match_labels: Annotated[
        dict[str, str], about("Labels of the volume to bind the claim to. If empty, a new volume is created.")
    ] = msgspec.field(default_factory=dict)


class Persistence(Value, frozen=True, kw_only=True):
    """Storage of the results."""

    mount_path: Annotated[str | None, about("Alternative for mountPath.")] = None
    pvc: Annotated[Pvc, about("The claim that is created for the application.")] = msgspec.field(default_factory=Pvc)


class TensorFlowTrainingValues(Value, frozen=True, kw_only=True):
    """Values for distributed TensorFlow training."""

    worker: Annotated[WorkerValues, about("The replicas that train.")] = msgspec.field(default_factory=WorkerValues)
    ps: Annotated[Ps, about("The replicas that hold the parameters.")] = msgspec.field(default_factory=Ps)
    hyperparams: Annotated[Hyperparams, about("Hyperparameters of the trainer.")] = msgspec.field(
        default_factory=Hyperparams
    )
    tensorboard: Annotated[Tensorboard, about("The TensorBoard for all revisions.")] = msgspec.field(
        default_factory=Tensorboard
    )
    mount_path: Annotated[
        str | None, about("Path at which the claim is mounted in every container. Default: /data.")
    ] = None
    persistence: Annotated[Persistence, about("Storage of the results.")] = msgspec.field(default_factory=Persistence)
    trainer: Annotated[
        Literal["", "parameter-server"],
        about("Bundled trainer, which runs in any image with Python. If empty, that of the image."),
    ] = "parameter-server"
    command: Annotated[Words, about("Command of your own trainer, instead of a bundled one.")] = ()


def check(values: TensorFlowTrainingValues, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between values."""
    return tuple(_check(values, path))


def _check(values: TensorFlowTrainingValues, path: str) -> Iterator[Fault]:
    top, nested = values.mount_path, values.persistence.mount_path
    if top is not None and nested is not None and top != nested:
        hint = f"it conflicts with mountPath, {top!r}, which has the same meaning; remove one of them"
        yield invalid(f"{path}.persistence.mountPath", nested, hint)
    for name, mount_path in (("mountPath", top), ("persistence.mountPath", nested)):
        if mount_path is not None and (
            not mount_path.startswith("/") or mount_path.strip("/") == "" or ".." in mount_path.split("/")
        ):
            yield invalid(f"{path}.{name}", mount_path, "must be an absolute path, such as /data")
    for name, role in (("worker", values.worker), ("ps", values.ps)):
        for field, amount in (("cpu", role.cpu), ("memory", role.memory)):
            if amount != "" and not is_quantity(str(amount)):
                yield invalid(f"{path}.{name}.{field}", amount, "must be a quantity, such as 500m or 1Gi")
    size = str(values.persistence.pvc.storage)
    if not is_quantity(size) or parse(size) <= 0:
        yield invalid(f"{path}.persistence.pvc.storage", size, "must be a size, such as 5Gi")
    for name in FLAGS:
        value = getattr(values.hyperparams, name)
        if isinstance(value, str) and value and not re.fullmatch(NUMBER, value):
            yield invalid(f"{path}.hyperparams.{name}", value, "must be a number")


def expand(values: TensorFlowTrainingValues, release: Release) -> Rendered:
    """Return the job: workers and parameter servers that share one claim and know each other's addresses."""
    mount = values.mount_path or values.persistence.mount_path or MOUNT_PATH
    hyperparameters = {name: as_text(value) for name in FLAGS if is_set(value := getattr(values.hyperparams, name))}
    folder = f"logs/{release.job}"
    flag = f"--logdir={mount.rstrip('/')}/{folder}"
    roles: list[tuple[str, WorkerValues | Ps]] = [("worker", values.worker)]
    roles += [("ps", values.ps)] if values.ps.number else []
    spec = {
        # The parameter servers never end; the training succeeds when all workers have.
        "successPolicy": "AllWorkers",
        "hyperparameters": {"values": hyperparameters, "names": {name: FLAGS[name] for name in hyperparameters}},
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
    return Rendered(
        kind="TensorFlowTrainingJob",
        spec=spec,
        claims={release.claim: _claim(values.persistence.pvc)},
        trainer="" if values.command else values.trainer,
        boards={release.stem: _board(values.tensorboard, release)},
        hyperparameters=hyperparameters,
        results=f"claim {release.claim}, folder {folder}",
    )


def _pod(
    role: WorkerValues | Ps, values: TensorFlowTrainingValues, *, release: Release, mount: str, flag: str
) -> dict[str, Any]:
    # The embedded cluster runs no images, so the command has to be explicit.
    bundled = ["python3", f"{TRAINERS}/{values.trainer}.py"] if values.trainer else []
    command = list(values.command) or bundled
    volumes: list[dict[str, Any]] = [{"name": "data", "persistentVolumeClaim": {"claimName": release.claim}}]
    mounts: list[dict[str, Any]] = [{"name": "data", "mountPath": mount}]
    if command == bundled and bundled:
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
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": as_text(pvc.storage)}},
    }
    if pvc.match_labels:
        # Labels select an existing volume; with a storage class the cluster would create a new one.
        spec |= {"storageClassName": "", "selector": {"matchLabels": dict(pvc.match_labels)}}
    return spec


def _board(board: Tensorboard, release: Release) -> Mapping[str, Any]:
    spec: dict[str, Any] = {"logDir": {"pvc": [{"name": release.claim, "subPath": ["logs"]}]}, "idleSeconds": 0}
    spec["serviceType"] = board.service_type
    return {**spec, "image": board.image} if board.image else spec


README = """\
Trains a model with TensorFlow on several workers and parameter servers.

You set how many there are; each replica gets the addresses of the others, in every format that trainers read
(TF_CONFIG, CLUSTER_CONFIG and POD_NAME, JOB_NAME and JOB_INDEX with PS_HOSTS and WORKER_HOSTS).
All replicas share one claim, which is created for the application; a TensorBoard shows the metrics of all revisions.
The training succeeds when every worker has; the parameter servers are then stopped.

Without a command of your own it runs a small bundled trainer that needs no download. Changing a value starts the next
revision: paceline app upgrade NAME --set hyperparams.learningrate=0.0005
"""

TEMPLATE = Template(
    name=NAME,
    version="0.1.0",
    description="Distributed TensorFlow with workers, parameter servers and TensorBoard",
    readme=README,
    values=TensorFlowTrainingValues,
    check=check,
    expand=expand,
    without_gpu="worker.gpuCount=0",
    also=("ack-tensorflow-training", "acs-tensorflow-training"),
)
