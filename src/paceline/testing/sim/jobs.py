"""Jobs as people in a simulation write them: every kind, with rules drawn by lot."""

import random
from collections.abc import Callable
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client.interface import Collection
from paceline.kinds import registry
from paceline.kinds.kind_types import GROUP, VERSION

# The classes that every cluster has.
RANKS = ("system-cluster-critical", "system-node-critical")

Dice = random.Random
Spec = dict[str, Any]


def a_job(name: str, dice: Dice, *, ranked: bool = False) -> Object:
    """Write a job of some kind; where they are ranked, some are more important or larger than others."""
    kind = dice.choice(tuple(_SPECS))
    spec = _SPECS[kind](dice)
    if limits := _limits(dice):
        spec["runPolicy"] = {**spec.get("runPolicy", {}), **limits}
    if dice.random() < 0.05:
        spec["suspend"] = True
    if dice.random() < 0.1:
        spec["scheduler"] = {"t9kScheduler": {"queue": dice.choice(("low", "high")), "priority": dice.randrange(3)}}
    if ranked:
        _rank(spec, dice)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _rank(spec: Spec, dice: Dice) -> None:
    """Make a job's pods more important than most, or so large that others must wait or give way."""
    replicas = spec.get("replicaSpecs") or [spec["worker"]]
    priority = {"priorityClassName": dice.choice(RANKS)} if dice.random() < 0.5 else {}
    is_large = "elastic" not in spec and dice.random() < 0.8
    for replica in replicas:
        pod = replica["template"]["spec"]
        pod |= priority
        if is_large:
            size = f"{5 * 1024 // sum(group['replicas'] for group in replicas)}Mi"
            pod["containers"][0]["resources"] = {"requests": {"memory": size}}


def where(job: Object) -> Collection:
    """Tell the collection that a job lies in."""
    kind = registry.kind_of(job)
    if kind is None:
        raise KeyError(job["kind"])
    return Collection(group=GROUP, version=VERSION, plural=kind.plural)


def is_resizable(job: Object) -> bool:
    """Tell whether a job may get another size while it runs."""
    return bool((job["spec"].get("elastic") or {}).get("enabled"))


def _generic(dice: Dice) -> Spec:
    replicas = dice.randrange(1, 4)
    policy = {"policy": dice.choice(("OnFailure", "Never", "Always")), "limit": dice.randrange(3)}
    return {
        "replicaSpecs": [_replica("main", "worker", replicas, restartPolicy=policy)],
        "successRules": [{"worker": list(range(replicas))}],
        "failureRules": [{"worker": [0]}],
        "cleanUpPolicy": dice.choice(("None", "All", "Unfinished")),
    }


def _pytorch(dice: Dice) -> Spec:
    spec: Spec = {
        "replicaSpecs": [_replica("pytorch", "worker", dice.randrange(1, 4), restartPolicy=_policy(dice))],
        "runPolicy": _run_policy(dice),
    }
    if dice.random() < 0.3:
        spec["restartScope"] = dice.choice(("Gang", "Replica"))
    if dice.random() < 0.3:
        spec["torchrunConfig"] = {"enabled": True, "procPerNode": 2}
        spec["elastic"] = _elastic(dice)
    return spec


def _tensorflow(dice: Dice) -> Spec:
    roles = [
        ("chief", 1),
        ("worker", dice.randrange(1, 3)),
        ("ps", dice.randrange(2)),
        ("evaluator", dice.randrange(2)),
    ]
    specs = [_replica("tensorflow", role, count, restartPolicy=_policy(dice)) for role, count in roles if count]
    return {"replicaSpecs": specs, "runPolicy": _run_policy(dice)}


def _xgboost(dice: Dice) -> Spec:
    specs = [
        _replica("xgboost", "master", 1, restartPolicy=_policy(dice)),
        _replica("xgboost", "worker", dice.randrange(1, 3), restartPolicy=_policy(dice)),
    ]
    return {"replicaSpecs": specs, "runPolicy": _run_policy(dice)}


def _mpi(dice: Dice) -> Spec:
    return {
        "replicaSpecs": [_replica("worker", "worker", dice.randrange(1, 3))],
        "mpiConfig": {"script": ["python3", "train.py"]},
    }


def _deepspeed(dice: Dice) -> Spec:
    worker = _replica("worker", "worker", dice.randrange(1, 3))
    del worker["type"]
    spec: Spec = {"worker": worker, "config": {"run": {"python": ["train.py"]}, "slotsPerWorker": 2}}
    if dice.random() < 0.5:
        spec["elastic"] = _elastic(dice)
    return spec


def _colossalai(dice: Dice) -> Spec:
    return {
        "replicaSpecs": [_replica("worker", "worker", dice.randrange(1, 3))],
        "torchConfig": {"script": ["train.py"], "procPerWorker": 2},
    }


_SPECS: dict[str, Callable[[Dice], Spec]] = {
    "GenericJob": _generic,
    "PyTorchTrainingJob": _pytorch,
    "TensorFlowTrainingJob": _tensorflow,
    "XGBoostTrainingJob": _xgboost,
    "MPIJob": _mpi,
    "DeepSpeedJob": _deepspeed,
    "ColossalAIJob": _colossalai,
}


def _policy(dice: Dice) -> str:
    return dice.choice(("OnFailure", "Never", "ExitCode"))


def _run_policy(dice: Dice) -> Spec:
    return {"backoffLimit": dice.randrange(4), "cleanUpPolicy": dice.choice(("None", "All", "Unfinished"))}


def _limits(dice: Dice) -> Spec:
    """Draw the times of a life, which every kind may have."""
    limits: Spec = {}
    if dice.random() < 0.1:
        limits["ttlSecondsAfterFinished"] = dice.choice((0, 5, 60))
    if dice.random() < 0.05:
        limits["startingDeadlineSeconds"] = dice.randrange(10, 120)
    if dice.random() < 0.1:
        limits["activeDeadlineSeconds"] = dice.randrange(5, 60)
    return limits


def _elastic(dice: Dice) -> Spec:
    return {"enabled": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": dice.randrange(1, 4)}


def _replica(container: str, role: str, replicas: int, **fields: Any) -> Spec:
    main = {"name": container, "image": "python:3", "command": ["true"], "args": ["train.py"]}
    template = {"spec": {"terminationGracePeriodSeconds": 5, "containers": [main]}}
    return {"type": role, "replicas": replicas, "template": template, **fields}
