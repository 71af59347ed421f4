"""Trouble on the way: history that is gone, writers that meddle, a second controller, a leader that dies."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.client.http.transport import Transport
from paceline.client.interface import LEASES, NAMESPACES
from paceline.client.kubeconfig import load
from paceline.client.rest_config import Access
from paceline.cluster.external_controllers import Choice, run_leader
from paceline.cluster.monitoring.probe_server import Probes
from paceline.errors import AlreadyExists, Conflict, Expired
from paceline.plan.leader_election import LEASE_SECONDS
from paceline.testing.real.kube import RealKube
from tests.kube.conftest import FLAGS
from tests.kube.player import attempt_of, ends_well
from tests.kube.stage import OpenTransport, Stage, Tap, beside, live, real_transport, run, skip, staged, where_of
from tests.kubes import kube_with_kinds
from tests.unit.kinds.manifests import generic, pytorch, replica, template

# Faster than a controller thinks, and slower than it tries again.
MEDDLE_SECONDS = 0.005
POLICY = "pod-security.kubernetes.io/enforce"


@pytest.fixture(scope="module")
def forgetful() -> Iterator[RealKube]:
    """A real server that keeps no history of its own: what its database has forgotten is gone."""
    with kube_with_kinds((*FLAGS, "--watch-cache=false")) as kube:
        yield kube


@pytest.mark.kube
@pytest.mark.timeout(180)
def test_what_happened_in_forgotten_history_is_found_all_the_same(forgetful: RealKube) -> None:
    async def main() -> None:
        opens = real_transport(load(forgetful.kubeconfig, Path.read_bytes))
        async with opens() as transport, staged(transport) as stage:
            tap = Tap(transport)
            async with stage.controllers(tap):
                made = await stage.submit(pytorch())
                other = await stage.submit(pytorch(), "other")
                await stage.runs(4)
                await stage.becomes(made, "Running")
                tap.cut()
                stage.play(ends_well(1))
                await stage.runs(0)
                await stage.delete(other)
                late = await stage.submit(pytorch(), "late")
                forgetful.compact()
                tap.mend()
                await stage.becomes(made, "Succeeded", hurry=0.1)
                await stage.becomes(late, "Succeeded", hurry=0.1)
                assert tap.count(Expired) > 0, "the server has forgotten nothing"
                assert all(len(uids) == 1 for uids in stage.player.uids.values())

    run(main())


def test_a_meddling_writer_holds_nobody_up_for_ever(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            tap = Tap(transport)
            async with stage.controllers(tap):
                made = await stage.submit(pytorch())

                async def meddle(_told: asyncio.Event) -> None:
                    for number in range(1_000_000):
                        note = {"metadata": {"annotations": {"meddler": str(number)}}}
                        await stage.people.patch(where_of(made), (stage.namespace, name_of(made)), note)
                        await asyncio.sleep(MEDDLE_SECONDS)

                async with beside(meddle):
                    await stage.runs(2)
                    stage.play(ends_well(1))
                    over = await stage.becomes(made, "Succeeded")
                assert over["metadata"]["annotations"]["meddler"]
                assert tap.count(Conflict) > 0, "nobody meddled"
                assert all(len(uids) == 1 for uids in stage.player.uids.values())

    run(main())


def test_two_controllers_that_both_act_do_what_one_would_have_done(opens: OpenTransport) -> None:
    """Without any lease: what keeps them from harm is that every write says what it is meant for."""

    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            first, second = Tap(transport), Tap(transport)
            async with stage.controllers(first), stage.controllers(second):
                stage.play(lambda *told: 1 if told == ("worker-1", 0, 2) else None)
                made = await stage.submit(pytorch())

                async def is_back() -> bool:
                    return [attempt_of(pod) for pod in stage.player.running()] == [1, 1]

                await stage.until(is_back)
                stage.play(ends_well(1))
                over = await stage.becomes(made, "Succeeded")
            assert (over["status"]["attempt"], over["status"]["backoffCount"]) == (1, 1)
            assert first.writes
            assert second.writes
            assert (
                first.count(Conflict)
                + second.count(Conflict)
                + first.count(AlreadyExists)
                + second.count(AlreadyExists)
                > 0
            )
            assert {len(uids) for uids in stage.player.uids.values()} == {1}
            assert len(stage.player.uids) == 4

    run(main())


def test_metrics_count_the_jobs_of_all_namespaces(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage, staged(transport) as other:
            for place in (stage, other):
                await place.submit(pytorch())
            choice = Choice(access=Access(server="https://here"), namespaces=(stage.namespace, other.namespace))
            probes = Probes()

            async def work(_stop: asyncio.Event) -> None:
                await run_leader(transport, stage.world, choice, lambda _text: None, probes)

            async def are_counted() -> bool:
                # One may run already when the other one is first seen.
                counts = re.findall(
                    rb'^paceline_jobs{kind="PyTorchTrainingJob",.*} (\d+)$', probes.registry.write(), re.MULTILINE
                )
                return sum(map(int, counts)) == 2

            async with beside(work):
                await stage.until(are_counted, lambda: probes.registry.write().decode())

    run(main())


class Process:
    """`paceline kube controller` without the command around it."""

    def __init__(self, stage: Stage, transport: Transport) -> None:
        self.tap = Tap(transport)
        self.said: list[str] = []
        access = Access(server="https://nowhere")
        choice = Choice(access=access, namespaces=(stage.namespace,))
        work = run_leader(self.tap, stage.world, choice, self.said.append)
        self.task = asyncio.get_running_loop().create_task(work)

    @property
    def leads(self) -> bool:
        return bool(self.said) and self.said[-1].startswith("leading")

    @property
    def jobs_written(self) -> int:
        return sum("/leases" not in write for write in self.tap.writes)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def leads(stage: Stage, process: Process) -> None:
    async def look() -> bool:
        assert not process.task.done(), process.task
        return process.leads

    await stage.until(look, lambda: f"it leads: {process.said}", hurry=0.2)


def test_of_two_processes_one_acts_and_the_other_takes_over(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            first = Process(stage, transport)
            await leads(stage, first)
            second = Process(stage, transport)
            made = await stage.submit(pytorch())
            await stage.runs(2)
            assert (second.leads, second.jobs_written) == (False, 0)
            # As kill -9 does: nothing of it reaches the server any more, not even that it lets go.
            first.tap.cut()
            await first.stop()
            counted = first.jobs_written
            skip(LEASE_SECONDS)
            await leads(stage, second)
            stage.play(ends_well(1))
            await stage.becomes(made, "Succeeded")
            assert first.jobs_written == counted
            lease = await stage.people.get(LEASES, stage.namespace, "paceline-controller")
            assert lease["spec"]["leaseTransitions"] == 1
            await second.stop()
            lease = await stage.people.get(LEASES, stage.namespace, "paceline-controller")
            assert "holderIdentity" not in lease["spec"]
            assert all(len(uids) == 1 for uids in stage.player.uids.values())

    run(main())


def test_a_leader_whose_lease_was_taken_stops_acting(opens: OpenTransport) -> None:
    async def main() -> None:
        async with opens() as transport, staged(transport) as stage:
            first = Process(stage, transport)
            await leads(stage, first)
            mine = {"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 3600}}
            await stage.people.patch(LEASES, (stage.namespace, "paceline-controller"), mine)

            async def has_stopped() -> bool:
                return not first.leads

            await stage.until(has_stopped, hurry=0.2)
            before = first.jobs_written
            made = await stage.submit(pytorch())
            skip(60)
            await asyncio.sleep(0.3)
            assert (first.jobs_written, await stage.pods()) == (before, [])
            assert first.said[-2:] == ["waiting: somebody-else leads", "not leading any more"]
            await stage.people.delete(LEASES, (stage.namespace, "paceline-controller"))
            await leads(stage, first)
            await stage.runs(2)
            assert name_of(made)
            await first.stop()

    run(main())


async def is_told(stage: Stage, obj: Object, *reasons: str) -> None:
    """Wait for an event about an object with one of these reasons: what is written comes first, what is told later."""

    async def look() -> bool:
        return not set(reasons).isdisjoint(await stage.reasons(obj))

    await stage.until(look, lambda: f"{reasons} is told")


@pytest.mark.kube
@pytest.mark.timeout(120)
def test_a_job_that_only_the_schema_lets_pass_says_what_is_wrong_with_it(opens_real: OpenTransport) -> None:
    """A real server does not know the rules between fields; the controller says them on the job."""

    async def act(stage: Stage) -> None:
        made = await stage.submit(generic(successRules=[{"chief": [0]}]))

        async def is_refused() -> bool:
            found = (await stage.read(made)).get("status") or {}
            return "successRules" in str(found.get("conditions"))

        await stage.until(is_refused)
        assert await stage.pods() == []
        await is_told(stage, made, "Invalid")

    live(opens_real, act)


@pytest.mark.kube
@pytest.mark.timeout(120)
def test_a_job_whose_pods_a_policy_refuses_says_so_and_goes_on_when_they_are_let_in(opens_real: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        policy = {"metadata": {"labels": {POLICY: "restricted"}}}
        await stage.people.patch(NAMESPACES, ("", stage.namespace), policy)
        made = await stage.submit(pytorch())

        async def is_said() -> bool:
            return "violates PodSecurity" in str((await stage.read(made)).get("status", {}).get("waiting"))

        await stage.until(is_said)
        held = (await stage.read(made))["status"]
        assert held["conditions"][0]["reason"] == "Refused"
        skip(31)
        await asyncio.sleep(0.5)
        again = await stage.read(made)
        assert again["status"] == held, "a try that changes nothing is not written down"
        assert (await stage.reasons(made)).count("Refused") == 1
        await stage.people.patch(NAMESPACES, ("", stage.namespace), {"metadata": {"labels": {POLICY: None}}})
        await stage.runs(2, hurry=1.0)
        stage.play(ends_well(1))
        over = await stage.becomes(made, "Succeeded")
        assert "waiting" not in over["status"]

    live(opens_real, act)


@pytest.mark.kube
@pytest.mark.timeout(120)
def test_a_job_whose_template_the_server_does_not_take_says_which_field_is_wrong(opens_real: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        mounts = [{"name": "nowhere", "mountPath": "/data"}]
        made = await stage.submit(pytorch(replica(template=template(volumeMounts=mounts))))

        async def is_said() -> bool:
            return "nowhere" in str((await stage.read(made)).get("status", {}).get("waiting"))

        await stage.until(is_said)
        await is_told(stage, made, "Refused", "Invalid")

    live(opens_real, act)
