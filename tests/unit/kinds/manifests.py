"""Job manifests as people write them, each a fresh copy."""

from copy import deepcopy

from paceline.kinds import registry
from paceline.model.gang import JobProgress, PodTools, ReplicaId

UID = "11111111-2222-3333-4444-555555555555"
PORTS = {"master": 29500}


def template(*, volumes=(), **container):
    main = {"name": "main", "image": "python:3.11", "command": ["python"], "args": ["train.py"], **container}
    return {"spec": {"containers": [main], "volumes": list(volumes)}}


def replica(role="worker", replicas=2, **more):
    return {"type": role, "replicas": replicas, "template": template(), **more}


def pytorch(*replicas, name="demo", **spec):
    return job("PyTorchTrainingJob", name, {"replicaSpecs": list(replicas) or [replica()], **spec})


def generic(*replicas, name="demo", **spec):
    rules = {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}]}
    return job("GenericJob", name, {**rules, "replicaSpecs": list(replicas) or [replica()], **spec})


def tensorflow(*replicas, name="demo", kind="TensorFlowTrainingJob", **spec):
    return job(kind, name, {"replicaSpecs": list(replicas) or [trainer("tensorflow")], **spec})


def xgboost(*replicas, name="demo", **spec):
    usual = [trainer("xgboost", "master", 1), trainer("xgboost", "worker", 2)]
    return job("XGBoostTrainingJob", name, {"replicaSpecs": list(replicas) or usual, **spec})


def mpi(*replicas, name="demo", **spec):
    config = {"mpiConfig": {"script": ["python3", "train.py"]}}
    return job("MPIJob", name, {"replicaSpecs": list(replicas) or [trainer("worker")], **config, **spec})


def colossalai(*replicas, name="demo", **spec):
    config = {"torchConfig": {"script": ["train.py", "--lr", "1"], "procPerWorker": 2}}
    return job("ColossalAIJob", name, {"replicaSpecs": list(replicas) or [trainer("worker")], **config, **spec})


def deepspeed(*, name="demo", kind="DeepSpeedJob", worker=None, **spec):
    config = {"config": {"run": {"python": ["train.py", "--deepspeed"]}, "slotsPerWorker": 2}}
    workers = {"replicas": 2, "template": template(name="worker"), **(worker or {})}
    return job(kind, name, {"worker": workers, **config, **spec})


def beam(*, name="demo", **spec):
    cluster = {"spec": {"flinkVersion": "1.10.1", "taskManager": {"replicas": 2}}}
    submit = {"spec": {"template": template()}}
    return job("BeamJob", name, {"flinkClusterTemplate": cluster, "jobTemplate": submit, **spec})


def tensorboard(*, name="demo", **spec):
    return service("TensorBoard", name, {"logDir": {"pvc": [{"name": "mnist", "subPath": ["./log"]}]}, **spec})


def notebook(*, name="demo", **spec):
    return service("Notebook", name, {"type": "jupyter", "template": template(name="notebook"), **spec})


def explorer(*, name="demo", **spec):
    return service("Explorer", name, {"storageName": "data", **spec})


def trainer(container, role="worker", replicas=2, **more):
    return {"type": role, "replicas": replicas, "template": template(name=container), **more}


def service(kind, name, spec):
    return {**job(kind, name, spec), "apiVersion": "tensorstack.dev/v1beta1"}


def job(kind, name, spec):
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": UID},
        "spec": deepcopy(spec),
    }


def gang_of(obj, *, ports=None, **more):
    """The gang of a faultless job, with the usual ports, unless others are handed out."""
    tools = more.pop("tools", PodTools())
    return registry.expand(obj, ports or registry.ports_of(obj), progress=JobProgress(**more), tools=tools)[1]


def container_of(obj, place="worker-0", **more):
    role, _, index = place.rpartition("-")
    return gang_of(obj, **more).member(ReplicaId(role, int(index))).template["spec"]["containers"][0]


def env_of(container):
    return {each["name"]: each.get("value") for each in container["env"]}


def said(faults):
    return [str(fault) for fault in faults]


def one_fault(obj):
    """The only fault of an object, as its author reads it."""
    (fault,) = registry.faults(obj)
    return str(fault)
