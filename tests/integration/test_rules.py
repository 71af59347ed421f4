"""The rules of a job's life on a simulated cluster, in virtual time: by timers, and over deaths of the control."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.client.interface import CLAIMS, CRDS, EVENTS, POD_GROUPS, PODS, SECRETS, SERVICES, Select
from paceline.errors import BadRequest, Invalid, NotFound
from paceline.kinds.jobs.remote_launch import VOLUME
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import PATIENCE_SECONDS, ended, phase_becomes, started
from tests.integration.test_kinds import named, running, where
from tests.unit.kinds.manifests import deepspeed, generic, pytorch, replica, template, tensorflow, trainer

NEVER_ENDS = Course(seconds=1_000_000)
TORCHRUN = {"torchrunConfig": {"enabled": True}}


def live(act: Callable[[SimCluster], Awaitable[None]], course: Course = NEVER_ENDS) -> None:
    """Let people act on a cluster whose programs all take one course."""

    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: course
        await act(cluster)
        await ended(cluster)

    run_simulated(1, main())


async def submit(cluster: SimCluster, job: dict[str, Any]) -> Object:
    return await cluster.client().create(where(job), named(job))


async def change(cluster: SimCluster, job: Object, spec: dict[str, Any]) -> Object:
    return await cluster.client().patch(where(job), ("default", "demo"), {"spec": spec})


async def read(cluster: SimCluster, job: Object) -> Object:
    return await cluster.client().get(where(job), "default", "demo")


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait, in virtual time, until something holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the loop's time is virtual
            await asyncio.sleep(0.1)


async def pods_of(cluster: SimCluster) -> dict[str, Object]:
    """Give the pods by the end of their names."""
    found = (await cluster.client().list(PODS, Select(namespace="default"))).items
    return {name_of(pod).partition("-")[2].partition("-")[2]: pod for pod in found}


async def end(cluster: SimCluster, pod: str, code: int, reason: str = "") -> None:
    """Let the program of a pod end."""
    uid = uid_of((await pods_of(cluster))[pod])
    (folder,) = [each for each in cluster.sim.processes.running() if each.parts[-4] == uid]
    cluster.sim.processes.finish(folder, code, reason=reason)


async def reasons(cluster: SimCluster) -> list[str]:
    """Give the reasons of all events about the job; one that was told twice is there twice."""
    events = (await cluster.client().list(EVENTS, Select(namespace="default"))).items
    about = [each for each in events if each["involvedObject"]["name"] == "demo"]
    return [each["reason"] for each in about for _ in range(each["count"])]


def test_a_finished_job_goes_with_all_that_is_its_own_when_its_time_is_over() -> None:
    """X-09, X-27"""
    job = generic(runPolicy={"ttlSecondsAfterFinished": 60})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Succeeded")
        await asyncio.sleep(50)
        assert len(await pods_of(cluster)) == 2
        await asyncio.sleep(20)
        with pytest.raises(NotFound):
            await read(cluster, job)
        assert await pods_of(cluster) == {}
        assert [
            name_of(each)
            for each in (await cluster.client().list(SERVICES, Select(namespace="default"))).items
            if name_of(each).startswith("demo")
        ] == []
        assert (await reasons(cluster)).count("Expired") == 1

    live(act, Course(seconds=5))


def test_a_job_whose_time_to_stay_is_taken_back_stays() -> None:
    job = generic(runPolicy={"ttlSecondsAfterFinished": 60})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Succeeded")
        await change(cluster, job, {"runPolicy": {"ttlSecondsAfterFinished": None}})
        await asyncio.sleep(300)
        assert (await read(cluster, job))["status"]["phase"] == "Succeeded"

    live(act, Course(seconds=5))


def test_a_job_that_cannot_start_in_time_fails_and_says_what_it_lacks() -> None:
    """X-09"""
    hungry = template(resources={"requests": {"memory": "1Ti"}})
    job = generic(replica(template=hungry), runPolicy={"startingDeadlineSeconds": 30})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        over = await phase_becomes(cluster, where(job), "demo", "Failed")
        (failed,) = [each for each in over["status"]["conditions"] if each["type"] == "Failed"]
        assert failed["reason"] == "StartingDeadlineExceeded"
        assert "Insufficient memory" in failed["message"]
        await asyncio.sleep(60)
        assert await pods_of(cluster) == {}
        assert (await reasons(cluster)).count("StartingDeadlineExceeded") == 1

    live(act)


def test_a_deadline_of_five_seconds_fails_a_job_whose_master_sleeps() -> None:
    """Vector 12. X-09"""
    job = pytorch(runPolicy={"activeDeadlineSeconds": 5})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        begun = await phase_becomes(cluster, where(job), "demo", "Running")
        await asyncio.sleep(4)
        assert (await read(cluster, job))["status"]["phase"] == "Running"
        over = await phase_becomes(cluster, where(job), "demo", "Failed")
        assert over["status"]["startTime"] == begun["status"]["startTime"]
        await running(cluster, 0)

    live(act)


def test_a_suspended_job_has_no_pods_until_it_is_let_go() -> None:
    job = pytorch(suspend=True)

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await asyncio.sleep(60)
        held = await read(cluster, job)
        assert await pods_of(cluster) == {}
        assert {each["type"]: each["status"] for each in held["status"]["conditions"]}["Suspended"] == "True"
        await change(cluster, job, {"suspend": False})
        first = await phase_becomes(cluster, where(job), "demo", "Running")
        await asyncio.sleep(10)
        await change(cluster, job, {"suspend": True})
        await running(cluster, 0)
        await change(cluster, job, {"suspend": False})
        second = await phase_becomes(cluster, where(job), "demo", "Running")
        assert second["status"]["startTime"] > first["status"]["startTime"]
        assert second["status"]["backoffCount"] == 0
        told = await reasons(cluster)
        assert (told.count("Suspended"), told.count("Resuming")) == (2, 2)

    live(act)


def test_a_job_made_paused_runs_its_other_command_when_it_is_resumed() -> None:
    """Vector 10. T-18, X-10"""
    resumed = [{"type": "worker", "command": ["python"], "args": ["train.py", "--resume"]}]
    job = pytorch(runMode={"pause": {"enabled": True, "resumeSpecs": resumed}})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        paused = await phase_becomes(cluster, where(job), "demo", "Paused")
        await asyncio.sleep(60)
        assert await pods_of(cluster) == {}
        assert paused["status"]["aggregate"]["running"] == 0
        await change(cluster, job, {"runMode": {"pause": {"enabled": False}}})
        await phase_becomes(cluster, where(job), "demo", "Resuming")
        await phase_becomes(cluster, where(job), "demo", "Running")
        found = [pod["spec"]["containers"][0]["args"] for pod in (await pods_of(cluster)).values()]
        assert found == [["train.py", "--resume"]] * 2

    live(act)


def test_an_elastic_job_goes_from_two_to_three_to_two_and_survives_a_killed_worker() -> None:
    """T-18, X-12"""
    bounds = {"enabled": True, "minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 2}
    job = pytorch(elastic=bounds, **TORCHRUN)

    async def act(cluster: SimCluster) -> None:
        async def size() -> tuple[int, int]:
            told = (await read(cluster, job))["status"].get("elastic") or {}
            return told.get("currentReplicas", 0), told.get("expectedReplicas", 0)

        async def becomes(current: int, expected: int) -> bool:
            return await size() == (current, expected)

        await submit(cluster, job)
        await until(lambda: becomes(2, 2))
        await change(cluster, job, {"elastic": {"expectedReplicas": 3}})
        await until(lambda: becomes(3, 3))
        await end(cluster, "worker-1", 137)
        await until(lambda: becomes(2, 3))
        await until(lambda: becomes(3, 3))
        await change(cluster, job, {"elastic": {"expectedReplicas": 2}})
        await until(lambda: becomes(2, 2))
        await running(cluster, 2)
        now = await read(cluster, job)
        assert (now["status"]["phase"], now["status"]["backoffCount"], now["status"]["attempt"]) == ("Running", 1, 0)
        alive = [name for name, pod in (await pods_of(cluster)).items() if pod["status"]["phase"] == "Running"]
        assert sorted(alive) == ["worker-0", "worker-1-r1"]
        await end(cluster, "worker-0", 0)
        await phase_becomes(cluster, where(job), "demo", "Succeeded")

    live(act)


def test_an_elastic_job_that_starts_together_is_told_of_its_new_members() -> None:
    job = deepspeed(elastic={"enabled": True, "maxReplicas": 4, "expectedReplicas": 2})

    async def act(cluster: SimCluster) -> None:
        async def hosts() -> Mapping[str, Any]:
            """What the pods that run now mount."""
            pods = [pod for pod in (await pods_of(cluster)).values() if pod["status"]["phase"] == "Running"]
            volumes = [volume for pod in pods for volume in pod["spec"]["volumes"] if volume["name"] == VOLUME]
            (name,) = {volume["secret"]["secretName"] for volume in volumes}
            data: Mapping[str, Any] = (await cluster.client().get(SECRETS, "default", name))["data"]
            return data

        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        old_hosts = await hosts()
        await change(cluster, job, {"elastic": {"expectedReplicas": 3}})
        await running(cluster, 3)
        new_hosts = await hosts()
        assert old_hosts["hostfile"] != new_hosts["hostfile"]
        assert old_hosts["key"] != new_hosts["key"]

    live(act)


def test_the_wait_before_a_restart_outlives_the_control() -> None:
    """Kill -9 in the middle of the pause: the next control waits for the rest of it, and not for longer."""
    job = generic(replica(replicas=1, restartPolicy={"policy": "OnFailure", "limit": 9}))

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        for count in range(1, 6):
            await until(lambda: _runs(cluster))
            (name,) = [name for name, pod in (await pods_of(cluster)).items() if pod["status"]["phase"] == "Running"]
            await end(cluster, name, 1)
            await until(lambda count=count: _counts(cluster, job, count))
        begun = cluster.sim.clock.monotonic()
        before = (await read(cluster, job))["status"]
        await asyncio.sleep(4)
        await cluster.kill_control()
        await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
        assert (await read(cluster, job))["status"]["startAfter"] == before["startAfter"]
        await until(lambda: _runs(cluster))
        assert 14 < cluster.sim.clock.monotonic() - begun < 20
        assert (await read(cluster, job))["status"]["backoffCount"] == 5

    live(act)


async def _runs(cluster: SimCluster) -> bool:
    return len(cluster.sim.processes.running()) == 1


async def _counts(cluster: SimCluster, job: Object, count: int) -> bool:
    return bool((await read(cluster, job))["status"]["backoffCount"] == count)


def test_a_member_that_lacks_memory_twice_is_not_tried_a_third_time() -> None:
    limited = template(resources={"limits": {"memory": "512Mi"}})
    job = pytorch(replica(template=limited))

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        await end(cluster, "worker-1", 137, "OOMKilled")
        await until(lambda: _counts(cluster, job, 1))
        await phase_becomes(cluster, where(job), "demo", "Running")
        await end(cluster, "worker-1-r1", 137, "OOMKilled")
        over = await phase_becomes(cluster, where(job), "demo", "Failed")
        (failed,) = [each for each in over["status"]["conditions"] if each["type"] == "Failed"]
        assert failed["reason"] == "OutOfMemory"
        assert "512Mi" in failed["message"]
        assert (await reasons(cluster)).count("OutOfMemory") == 1

    live(act)


def test_a_restart_that_somebody_asks_for_happens_once() -> None:
    job = pytorch()

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        wish = {"metadata": {"annotations": {"paceline.dev/restart": "one"}}}
        await cluster.client().patch(where(job), ("default", "demo"), wish)
        await phase_becomes(cluster, where(job), "demo", "Resuming")
        await phase_becomes(cluster, where(job), "demo", "Running")
        await asyncio.sleep(60)
        now = await read(cluster, job)
        assert (now["status"]["attempt"], now["status"]["backoffCount"]) == (1, 0)
        assert (await reasons(cluster)).count("Restarting") == 1

    live(act)


def test_a_deleted_job_leaves_its_claim_and_takes_its_pods() -> None:
    """Vector 19, but for TensorBoard."""
    mounted = template(
        name="tensorflow",
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    job = tensorflow(trainer("tensorflow") | {"template": mounted})
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}

    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(CLAIMS, {**claim, "spec": spec})
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        await cluster.client().delete(where(job), ("default", "demo"))
        await running(cluster, 0)
        await until(lambda: _is_empty(cluster))
        kept = await cluster.client().get(CLAIMS, "default", "data")
        assert kept["status"]["phase"] == "Bound"

    live(act)


async def _is_empty(cluster: SimCluster) -> bool:
    return not await pods_of(cluster)


def test_the_bounds_of_an_elastic_job_are_kept() -> None:
    """Vector 13: 11 of at most 10 is refused, and so is another least."""
    bounds = {"enabled": True, "minReplicas": 4, "maxReplicas": 10, "expectedReplicas": 7}
    job = pytorch(elastic=bounds, suspend=True, **TORCHRUN)

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        for wrong in ({"expectedReplicas": 11}, {"minReplicas": 2}):
            with pytest.raises(Invalid, match=next(iter(wrong))):
                await change(cluster, job, {"elastic": wrong})
        now = await change(cluster, job, {"elastic": {"expectedReplicas": 5}, "suspend": False})
        assert now["spec"]["elastic"] == {**bounds, "expectedReplicas": 5}
        await until(lambda: _has(cluster, 5))

    live(act)


def definition() -> Object:
    """The kind that T9k's scheduler brings along."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"}
    spec = {"group": POD_GROUPS.group, "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"podgroups.{POD_GROUPS.group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata} | {
        "spec": spec
    }


def test_a_queued_elastic_job_is_one_group_of_its_least_for_t9ks_scheduler() -> None:
    """Vector 13: 7 replicas, PodGroup minMember 4; it goes with the job."""
    bounds = {"enabled": True, "minReplicas": 4, "maxReplicas": 10, "expectedReplicas": 7}
    job = pytorch(elastic=bounds, scheduler={"t9kScheduler": {"queue": "gpus", "priority": 5}}, **TORCHRUN)

    async def main() -> None:
        cluster = SimCluster(seed=1, defines=True)
        await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
        await cluster.client().create(CRDS, definition())
        await until(lambda: serves_groups(cluster))
        await submit(cluster, job)
        await until(lambda: _has(cluster, 7))
        group = await cluster.client().get(POD_GROUPS, "default", "demo")
        assert group["spec"] == {"minMember": 4, "queue": "gpus", "priority": 5}
        await cluster.client().delete(where(job), ("default", "demo"), {"propagationPolicy": "Background"})
        await until(lambda: _is_ungrouped(cluster))
        await ended(cluster)

    run_simulated(1, main())


async def serves_groups(cluster: SimCluster) -> bool:
    try:
        await cluster.client().list(POD_GROUPS)
    except NotFound:
        return False
    return True


async def _is_ungrouped(cluster: SimCluster) -> bool:
    return not (await cluster.client().list(POD_GROUPS)).items


def test_a_queued_job_runs_where_t9ks_scheduler_is_not() -> None:
    job = pytorch(scheduler={"t9kScheduler": {"queue": "gpus"}})

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")

    live(act)


async def _has(cluster: SimCluster, count: int) -> bool:
    return len(await pods_of(cluster)) == count


def test_devices_in_limits_alone_are_requests_of_the_pods_too() -> None:
    """Vector 18, as the pods have it."""
    job = pytorch(replica(template=template(resources={"limits": {"nvidia.com/gpu": 1}})))

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await until(lambda: _has(cluster, 2))
        for pod in (await pods_of(cluster)).values():
            assert pod["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}

    live(act)


def test_an_elastic_job_starts_with_as_many_as_there_is_room_for() -> None:
    """The machine has 8 GiB: three of four fit, two are enough, and the fourth says what it waits for."""
    bounds = {"enabled": True, "minReplicas": 2, "maxReplicas": 4, "expectedReplicas": 4}
    large = template(resources={"requests": {"memory": "2.5Gi"}})
    job = pytorch(replica(template=large), elastic=bounds, **TORCHRUN)

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        await phase_becomes(cluster, where(job), "demo", "Running")
        await running(cluster, 3)
        await until(lambda: _waits(cluster, job))
        assert (await read(cluster, job))["status"]["elastic"] == {"currentReplicas": 3, "expectedReplicas": 4}
        assert "Insufficient memory" in (await read(cluster, job))["status"]["waiting"]

    live(act)


async def _waits(cluster: SimCluster, job: Object) -> bool:
    status = (await read(cluster, job))["status"]
    return bool(status.get("waiting")) and status["elastic"]["currentReplicas"] == 3


MISSPELT = {
    "a command": (pytorch(replica(template=template(commands=["sh"]))), 'did you mean "command"?'),
    "a command of a generic job": (generic(replica(template=template(commands=["sh"]))), 'did you mean "command"?'),
    "a mount's path": (
        pytorch(replica(template=template(volumeMounts=[{"name": "d", "mountPath": "/d", "subpath": "x"}]))),
        'did you mean "subPath"?',
    ),
    "a board's path": (
        tensorflow(tensorboardSpec={"logDir": {"pvc": [{"name": "mnist", "subpath": ["log"]}]}}),
        'did you mean "subPath"?',
    ),
}


@pytest.mark.parametrize(("job", "hint"), MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_field_is_refused_with_the_right_word(job: dict[str, Any], hint: str) -> None:
    """Vector 14."""

    async def act(cluster: SimCluster) -> None:
        with pytest.raises((BadRequest, Invalid)) as refused:
            await submit(cluster, job)
        assert hint in str(refused.value)
        with pytest.raises(NotFound):
            await read(cluster, job)

    live(act)
