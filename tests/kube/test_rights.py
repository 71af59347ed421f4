"""`paceline kube manifests` grants what the controllers use: no less, and no more."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.client.informer import Informer
from paceline.client.interface import ACCOUNTS, PODS
from paceline.client.kubeconfig import load
from paceline.client.rest import Verbs
from paceline.client.rest_config import Access
from paceline.client.sync import DirectCluster
from paceline.cluster.external_controllers import HOME, Choice, check, run_leader
from paceline.cluster.installation.installer import WHERE
from paceline.cluster.installation.manifests import installation, namespace_manifest
from paceline.cluster.installation.parts import ACCOUNT
from paceline.cluster.installation.values import check_values
from paceline.cluster.rbac import lease_rights, rights
from paceline.cluster.wiring import SharedInformer
from paceline.controllers.endpoints import Endpoints
from paceline.errors import AlreadyExists, Forbidden, HostError
from paceline.kinds import registry
from paceline.kinds.kind_types import GROUP, OWN_GROUP, SERVICE_GROUP
from paceline.testing.real.kube import RealKube
from tests.kube.conftest import FLAGS
from tests.kube.player import ends_well
from tests.kube.stage import Stage, Tap, beside, real_transport, run, spelled, staged
from tests.kubes import kube_with_kinds
from tests.unit.kinds.manifests import (
    beam,
    colossalai,
    deepspeed,
    generic,
    mpi,
    notebook,
    pytorch,
    replica,
    tensorboard,
    tensorflow,
    xgboost,
)

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

# Used only when somebody else was faster, or for what this test does not have: (verb, the beginning of the resource).
RARE = {
    ("get", "services"): "a service that is there already, made by a controller that died before it said so",
    ("get", "pods"): "as above, of a pod",
    (
        "patch",
        "podgroups",
    ): "a job of T9k's scheduler that comes back in another size: tests/integration/test_elastic.py",
    ("get", "nodes"): "a pod that does not end: tests/kube/test_disruption.py",
    ("delete", "jobrecords"): "too many records, or too old ones: tests/integration/test_records.py",
    ("update", "explorers/status"): "there is no Explorer here; its controller is that of TensorBoards and notebooks",
    ("get", "events"): "an event that is told again",
    ("patch", "events"): "as above",
    ("delete", f"jobrecords.{OWN_GROUP}"): "no record is as old as that",
    ("delete", "beamjobs"): "it has no time to stay; applications delete jobs of any kind",
}
# What only the controller of applications does: their jobs, records, claims and trainers.
OF_APPS = {
    *((verb, spelled(kind.plural, GROUP)) for verb in ("create", "get", "patch") for kind in registry.KINDS),
    *((verb, f"tensorboards.{SERVICE_GROUP}") for verb in ("get", "update")),
    *((verb, f"jobrecords.{OWN_GROUP}") for verb in ("create", "get")),
    *(("update", f"{kind}/status.{OWN_GROUP}") for kind in ("jobrecords", "trainingapps")),
    *((verb, kind) for verb in ("create", "get") for kind in ("configmaps", "persistentvolumeclaims")),
    # Who has no TensorBoard is never said anything about it.
    *(("patch", spelled(f"{kind.plural}/status", GROUP)) for kind in registry.KINDS),
}
JOBS = {
    each["kind"]: each
    for each in (
        *(pytorch(), generic(), tensorflow(), xgboost(), mpi(), deepspeed(), colossalai(), beam()),
        *(tensorflow(kind="TensorFlowJob"), deepspeed(kind="DeepspeedJob")),
    )
}


@pytest.fixture(scope="module")
def real() -> Iterator[RealKube]:
    """A server of this module's own: others have the definitions of Kueue, which controllers use where they are."""
    with kube_with_kinds(FLAGS) as kube:
        yield kube


def grant(kube: RealKube, namespace: str = "") -> Access:
    """Apply what the command prints, and give the access of the controllers' account."""
    admin = load(kube.kubeconfig, Path.read_bytes)
    with DirectCluster(admin) as cluster:
        values = check_values({"image": "paceline:test", "namespaces": [namespace] if namespace else []})
        for manifest in (namespace_manifest(namespace or HOME), *installation(values, namespace or HOME)):
            with contextlib.suppress(AlreadyExists):
                cluster.create(WHERE[manifest["kind"]], manifest)
        path = ACCOUNTS.path(namespace or HOME, ACCOUNT, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = str(cluster.post(path, body)["status"]["token"])
    return Access(server=admin.server, ca=admin.ca, token=token)


async def everything(stage: Stage) -> None:
    """Have the controllers do all they can."""
    await stage.claim("mnist")
    board = {"image": "tb", "logDir": {"pvc": [{"name": "mnist", "subPath": ["log"]}]}}
    jobs = []
    for kind, job in JOBS.items():
        spec = dict(job["spec"])
        if kind != "BeamJob":
            spec |= {"runPolicy": {"ttlSecondsAfterFinished": 30}}
        if kind in ("PyTorchTrainingJob", "TensorFlowTrainingJob", "TensorFlowJob"):
            spec |= {"tensorboardSpec": board, "scheduler": {"t9kScheduler": {"queue": "default"}}}
        jobs.append(await stage.submit({**job, "spec": spec}, kind.lower()))
    for each in (tensorboard(name="curves"), notebook(name="desk")):
        await stage.becomes(await stage.submit(each, name_of(each)), "Running")
    await stage.change(tensorboard(name="curves"), {"serviceType": "NodePort"})
    others = [job for job in jobs if job["kind"] != "BeamJob"]
    for job in others:
        await stage.becomes(job, "Running")
    rules = {"successRules": [{"loser": [0]}], "failureRules": [{"loser": [0]}]}
    stage.play(lambda place, *_: 1 if place == "loser-0" else None)
    await stage.becomes(await stage.submit(generic(replica("loser", 1), **rules), "failing"), "Failed", hurry=0.2)
    stage.play(ends_well(1))
    for job in others:
        await stage.gone(job, hurry=0.2)


def granted(access_to: RealKube) -> set[tuple[str, str]]:
    return {
        (verb, spelled(resource, right.group))
        for right in (*rights(), *lease_rights("any"))
        for resource in right.resources
        for verb in right.verbs
        if right.is_usual and access_to
    }


def test_the_granted_rights_are_enough_and_all_of_them_are_used(real: RealKube) -> None:
    """The server asks even for the rights over owners' finalizers; one that is not needed would be unused here."""
    access = grant(real)

    async def main() -> Tap:
        opens = real_transport(load(real.kubeconfig, Path.read_bytes))
        async with real_transport(access)() as mine, opens() as transport, staged(transport) as stage:
            tap, said = Tap(mine), []
            choice = Choice(access=access)
            await check(Verbs(mine), choice)
            pods = Informer(stage.people, PODS, chance=stage.world.chance)
            endpoints = Endpoints(cluster=stage.people, chance=stage.world.chance, pods=pods)

            async def work(_stop: asyncio.Event) -> None:
                await run_leader(tap, stage.world, choice, said.append)

            async with beside(SharedInformer(informer=pods).run), beside(endpoints.run), beside(work):
                await everything(stage)
        return tap

    tap = run(main())
    refused = [str(error) for error in tap.refused if isinstance(error, Forbidden)]
    assert refused == []
    asked = {(verb, what) for verb, what in tap.asked if "selfsubject" not in what}
    assert asked - granted(real) == set()
    unused = granted(real) - asked - OF_APPS
    assert {right for right in unused if (right[0], right[1].partition(".")[0]) not in RARE} == set()


def test_a_right_that_is_missing_is_named(real: RealKube) -> None:
    access = grant(real)
    nobody: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": HOME}}
    with DirectCluster(load(real.kubeconfig, Path.read_bytes)) as cluster:
        with contextlib.suppress(AlreadyExists):
            cluster.create(ACCOUNTS, nobody)
        path = ACCOUNTS.path(HOME, "nobody", "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = str(cluster.post(path, body)["status"]["token"])
    theirs = Access(server=access.server, ca=access.ca, token=token)

    async def main() -> None:
        async with real_transport(theirs)() as transport:
            await check(Verbs(transport), Choice(access=theirs))

    with pytest.raises(HostError) as told:
        run(main())
    said = str(told.value).splitlines()
    assert said[0] == f"system:serviceaccount:{HOME}:nobody may not do what the controller must:"
    assert "  create, delete, get, list, watch pods in all namespaces" in said
    assert f"  create, get, update leases of coordination.k8s.io in the namespace {HOME}" in said
    assert said[-1] == "`paceline kube manifests --set image=IMAGE` prints a role with all of them"


def test_in_one_namespace_rights_in_that_namespace_are_enough(real: RealKube) -> None:
    async def main() -> None:
        opens = real_transport(load(real.kubeconfig, Path.read_bytes))
        async with opens() as transport, staged(transport) as stage:
            access = await asyncio.to_thread(grant, real, stage.namespace)
            choice = Choice(access=access, namespaces=(stage.namespace,))
            async with real_transport(access)() as mine:
                tap = Tap(mine)
                await check(Verbs(mine), choice)
                with pytest.raises(HostError, match="in all namespaces"):
                    await check(Verbs(mine), Choice(access=access))

                async def work(_told: asyncio.Event) -> None:
                    await run_leader(tap, stage.world, choice, lambda _text: None)

                async with beside(work):
                    made = await stage.submit(pytorch())
                    await stage.runs(2)
                    stage.play(ends_well(1))
                    await stage.becomes(made, "Succeeded")
            assert [error for error in tap.refused if isinstance(error, Forbidden)] == []

    run(main())
