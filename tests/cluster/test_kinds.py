"""Every kind of job where only confined pods are admitted, and where a quota counts processors and memory."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.lab import HARD, Lab
from tests.cluster.manifests import (
    RESTRICTED,
    colossalai,
    deepspeed,
    generic,
    mpi,
    pytorch,
    tensorflow,
    xgboost,
)
from tests.cluster.programs import MPI_SUM, REACH_ALL, SUM, TENSORFLOW_MEETING, TRACKER

pytestmark = pytest.mark.timeout(900)

# What the launcher of a ColossalAIJob starts in every worker; the framework itself is too large for an image.
TORCHRUN = """#!/bin/sh
echo "torchrun $*"
"""
PROGRAMS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "programs"},
    "data": {"torchrun": TORCHRUN},
}
WITH_PROGRAMS = {
    "env": [{"name": "PATH", "value": "/programs:/bin"}],
    "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
}
PROGRAM_VOLUMES = [{"name": "programs", "configMap": {"name": "programs", "defaultMode": 0o555}}]

# A job of each kind, made of the security context of its containers, and how often its logs contain a text.
KINDS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str, int]] = {
    "generic": (lambda context: generic("generic", "print('done')", pod=context), "done", 2),
    "pytorch": (lambda context: pytorch("pytorch", SUM, pod=context), "the sum is 21", 2),
    "tensorflow": (lambda context: tensorflow("tensorflow", TENSORFLOW_MEETING, pod=context), "all 2 answer", 2),
    "old-tensorflow": (
        lambda context: tensorflow("old-tensorflow", TENSORFLOW_MEETING, kind="TensorFlowJob", pod=context),
        "all 2 answer",
        2,
    ),
    "xgboost": (lambda context: xgboost("xgboost", TRACKER, **context), " of 3", 3),
    "mpi": (lambda context: mpi("mpi", ["python3", "-c", MPI_SUM], image="mpi:1", **context), " of 2 on ", 2),
    "deepspeed": (lambda context: deepspeed("deepspeed", REACH_ALL, **context), " is here", 2),
    "colossalai": (
        lambda context: colossalai(
            "colossalai",
            ["train.py"],
            container={**context["container"], **WITH_PROGRAMS},
            volumes=PROGRAM_VOLUMES,
        ),
        "torchrun --nproc_per_node=1 --nnodes=2",
        2,
    ),
}


@pytest.fixture(scope="module")
def filled(lab: Lab) -> Lab:
    """Two namespaces with a job of each kind."""
    lab.load_environment("mpi")
    confined = {"container": {"securityContext": RESTRICTED}}
    for namespace, context in (
        (lab.make_namespace("restricted", level="restricted"), confined),
        (lab.make_namespace("counted", hard=HARD), {"container": {}}),
    ):
        lab.apply(PROGRAMS, *(make(context) for make, _, _ in KINDS.values()), namespace=namespace)
    return lab


@pytest.mark.parametrize("namespace", ["restricted", "counted"])
@pytest.mark.parametrize("name", KINDS)
def test_a_job_of_every_kind_keeps_the_rules_of_its_namespace(filled: Lab, name: str, namespace: str) -> None:
    make, text, count = KINDS[name]

    filled.await_phase(make({"container": {}})["kind"], name, "Succeeded", namespace)

    assert filled.logs(name, namespace).count(text) == count


def test_a_job_that_does_not_say_how_much_it_needs_is_told_so(lab: Lab) -> None:
    """A namespace that counts memory admits only containers that say how much of it they use."""
    namespace = lab.make_namespace("strictly-counted", hard=HARD)
    lab.apply(generic("vague", "print('never')", pod={"container": {"resources": {}}}), namespace=namespace)

    lab.await_reason("GenericJob", "vague", "must specify limits.cpu", namespace=namespace)
