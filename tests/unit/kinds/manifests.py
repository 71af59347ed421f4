"""Job manifests as people write them, each a fresh copy."""

from copy import deepcopy

from paceline.kinds import catalog
from paceline.objects.gang import Place

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


def job(kind, name, spec):
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": UID},
        "spec": deepcopy(spec),
    }


def gang_of(obj, **more):
    return catalog.expand(obj, PORTS, **more)[1]


def container_of(obj, place="worker-0", **more):
    role, _, index = place.rpartition("-")
    return gang_of(obj, **more).member(Place(role, int(index))).template["spec"]["containers"][0]


def env_of(container):
    return {each["name"]: each.get("value") for each in container["env"]}


def said(faults):
    return [str(fault) for fault in faults]


def one_fault(obj):
    """The only fault of an object, as its author reads it."""
    (fault,) = catalog.faults(obj)
    return str(fault)
