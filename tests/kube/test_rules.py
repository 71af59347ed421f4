"""The rules of a job's life beside either server, pods moved by the test, and time skipped where a rule waits."""

from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.client.informer import Informer
from paceline.client.interface import PODS, SECRETS, SERVICES
from paceline.cluster.wiring import SharedInformer
from paceline.controllers.endpoints import Endpoints
from tests.kube.player import Exit, attempt_of, ends_well, place_of, runs_on
from tests.kube.stage import OpenTransport, Stage, beside, live, skip
from tests.unit.kinds.manifests import (
    deepspeed,
    generic,
    notebook,
    pytorch,
    replica,
    template,
    tensorboard,
    tensorflow,
    trainer,
)


def condition(obj: Object, kind: str) -> dict[str, Any]:
    return next(each for each in obj["status"]["conditions"] if each["type"] == kind)


def test_a_failing_member_uses_up_its_restarts_and_fails_the_job(opens: OpenTransport) -> None:
    job = generic(replica(replicas=1, restartPolicy={"policy": "OnFailure", "limit": 2}))

    async def act(stage: Stage) -> None:
        stage.play(lambda *_: 9)
        made = await stage.submit(job)
        over = await stage.becomes(made, "Failed", hurry=0.3)
        assert over["status"]["backoffCount"] == 2
        assert over["status"]["failure"]["exitCode"] == 9
        assert sorted(map(attempt_of, await stage.pods())) == [0, 1, 2]

        async def is_told() -> bool:
            return (await stage.reasons(made)).count("Failed") == 1

        await stage.until(is_told)

    live(opens, act)


def test_exit_code_tells_a_kill_from_a_mistake(opens: OpenTransport) -> None:
    """X-07"""
    job = pytorch(replica(replicas=1, restartPolicy="ExitCode"))

    async def act(stage: Stage) -> None:
        stage.play(lambda _place, attempt, _running: (137, 143, 1)[attempt])
        made = await stage.submit(job)
        over = await stage.becomes(made, "Failed", hurry=0.3)
        assert (over["status"]["backoffCount"], over["status"]["failure"]["exitCode"]) == (2, 1)

    live(opens, act)


def test_one_failed_rank_brings_the_whole_gang_back(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        def script(place: str, attempt: int, running: int) -> int | None:
            return 1 if (place, attempt, running) == ("worker-1", 0, 2) else None

        stage.play(script)
        made = await stage.submit(pytorch())

        async def is_back() -> bool:
            assert len({attempt_of(pod) for pod in stage.player.running()}) <= 1, "old and new ranks meet"
            return [attempt_of(pod) for pod in stage.player.running()] == [1, 1]

        await stage.until(is_back, hurry=0.3)
        stage.play(ends_well(1))
        over = await stage.becomes(made, "Succeeded")
        assert (over["status"]["attempt"], over["status"]["backoffCount"]) == (1, 1)
        assert max(stage.player.most.values()) == 1

    live(opens, act)


LEFT = {"All": [], "Unfinished": ["worker-0"], "None": ["worker-0", "worker-1"]}


@pytest.mark.parametrize("policy", LEFT)
def test_what_is_left_of_an_ended_job_is_as_its_policy_says(opens: OpenTransport, policy: str) -> None:
    """X-06"""

    async def act(stage: Stage) -> None:
        made = await stage.submit(generic(cleanUpPolicy=policy))
        await stage.runs(2)
        stage.play(lambda place, *_: 0 if place == "worker-0" else None)
        await stage.becomes(made, "Succeeded")

        async def is_left() -> bool:
            return sorted(map(place_of, await stage.pods())) == LEFT[policy]

        skip(11)
        await stage.until(is_left, hurry=0.3)

    live(opens, act)


def test_a_paused_job_gives_its_pods_back_and_is_resumed_with_its_other_command(opens: OpenTransport) -> None:
    """X-10"""
    resumed = [{"type": "worker", "command": ["python"], "args": ["train.py", "--resume"]}]
    job = pytorch(runMode={"pause": {"enabled": False, "resumeSpecs": resumed}})

    async def act(stage: Stage) -> None:
        made = await stage.submit(job)
        await stage.runs(2)
        await stage.change(made, {"runMode": {"pause": {"enabled": True}}})
        await stage.becomes(made, "Paused", hurry=0.1)
        await stage.runs(0)
        await stage.change(made, {"runMode": {"pause": {"enabled": False}}})
        await stage.runs(2, hurry=0.1)
        args = [pod["spec"]["containers"][0]["args"] for pod in stage.player.running()]
        assert args == [["train.py", "--resume"]] * 2
        stage.play(ends_well(1))
        await stage.becomes(made, "Succeeded")

    live(opens, act)


def test_a_suspended_job_has_no_pods_until_it_is_let_go(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        made = await stage.submit(pytorch(suspend=True))

        async def is_held() -> bool:
            status = (await stage.read(made)).get("status") or {"conditions": []}
            return any(each["type"] == "Suspended" and each["status"] == "True" for each in status["conditions"])

        await stage.until(is_held)
        assert await stage.pods() == []
        await stage.change(made, {"suspend": False})
        await stage.runs(2)
        await stage.change(made, {"suspend": True})
        await stage.runs(0)
        await stage.change(made, {"suspend": False})
        await stage.runs(2, hurry=0.1)
        assert (await stage.read(made))["status"]["backoffCount"] == 0

    live(opens, act)


def test_a_job_goes_when_its_time_to_stay_is_over(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        stage.play(ends_well(2))
        made = await stage.submit(generic(runPolicy={"ttlSecondsAfterFinished": 40}))
        await stage.becomes(made, "Succeeded")
        skip(20)
        assert (await stage.read(made))["status"]["phase"] == "Succeeded"
        skip(20)
        await stage.gone(made, hurry=0.1)

    live(opens, act)


def test_a_job_that_runs_too_long_fails_in_time(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        made = await stage.submit(pytorch(runPolicy={"activeDeadlineSeconds": 30}))
        await stage.becomes(made, "Running")
        skip(20)
        assert (await stage.read(made))["status"]["phase"] == "Running"
        over = await stage.becomes(made, "Failed", hurry=0.3)
        assert condition(over, "Failed")["reason"] == "DeadlineExceeded"
        await stage.runs(0)

    live(opens, act)


def test_all_that_a_job_has_belongs_to_it_and_is_not_made_again_when_it_is_deleted(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        made = await stage.submit(deepspeed())
        await stage.runs(2)
        found = [each for where in (PODS, SERVICES, SECRETS) for each in await stage.all(where)]
        assert len(found) == 4
        for each in found:
            (owner,) = each["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"], owner["kind"]) == (uid_of(made), True, "DeepSpeedJob")
        await stage.delete(made)
        await stage.gone(made)
        # Nothing here collects what the job has left; whatever happens to it, nobody makes it anew.
        for pod in await stage.pods():
            await stage.people.delete(PODS, (stage.namespace, name_of(pod)))
        await stage.runs(0)
        skip(60)
        again = await stage.submit(deepspeed())
        await stage.runs(2)
        assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in stage.player.running()} == {uid_of(again)}

    live(opens, act)


def test_parameter_servers_that_never_end_do_not_hold_up_a_job(opens: OpenTransport) -> None:
    """H-68"""
    roles = [trainer("tensorflow", role, count) for role, count in (("chief", 1), ("ps", 2), ("worker", 2))]

    async def act(stage: Stage) -> None:
        made = await stage.submit(tensorflow(*roles))
        await stage.runs(5)
        stage.play(lambda place, *_: None if place.startswith("ps") else 0)
        await stage.becomes(made, "Succeeded")
        skip(11)
        await stage.runs(0, hurry=0.3)

    live(opens, act)


def test_a_member_that_lacks_memory_again_is_not_tried_for_ever(opens: OpenTransport) -> None:
    limited = template(resources={"limits": {"memory": "512Mi"}})
    job = pytorch(replica(replicas=1, template=limited))

    async def act(stage: Stage) -> None:
        stage.play(lambda *_: Exit(code=137, reason="OOMKilled"))
        made = await stage.submit(job)
        over = await stage.becomes(made, "Failed", hurry=0.3)
        assert over["status"]["backoffCount"] == 1
        assert condition(over, "Failed")["reason"] == "OutOfMemory"
        assert "512Mi" in condition(over, "Failed")["message"]

    live(opens, act)


def test_a_tensorboard_and_a_notebook_are_made_once_and_said_to_be_ready(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await stage.claim("mnist")
        pods = Informer(stage.people, PODS, chance=stage.world.chance)
        endpoints = Endpoints(cluster=stage.people, chance=stage.world.chance, pods=pods)
        # What a cluster has of its own: whoever leads services to their pods.
        async with beside(SharedInformer(informer=pods).run), beside(endpoints.run):
            for each in (tensorboard(name="curves"), notebook(name="desk")):
                made = await stage.submit(each, each["metadata"]["name"])
                ready = await stage.becomes(made, "Running")
                assert name_of(made) in str(ready["status"])
            assert len(stage.player.uids) == 2
            assert [name_of(each) for each in await stage.all(SERVICES)] == ["nb-desk", "tb-curves"]
            (token,) = await stage.all(SECRETS)
            assert list(token["data"]) == ["token"]

    live(opens, act)


def test_a_jobs_tensorboard_is_made_and_outlives_its_end(opens: OpenTransport) -> None:
    board = {"image": "tb", "logDir": {"pvc": [{"name": "data", "subPath": ["log"]}]}}

    async def act(stage: Stage) -> None:
        await stage.claim("data")
        made = await stage.submit(pytorch(tensorboardSpec=board))
        await stage.runs(3)
        stage.play(lambda place, *_: 0 if place.startswith("worker") else None)
        over = await stage.becomes(made, "Succeeded")
        assert over["status"]["tensorboard"]["dependent"]["name"]
        skip(11)
        await stage.runs(1, hurry=0.1)

    live(opens, act)


def test_a_queued_job_runs_where_nobody_knows_pod_groups(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        made = await stage.submit(pytorch(scheduler={"t9kScheduler": {"queue": "default", "priority": 3}}))
        stage.play(ends_well(2))
        await stage.becomes(made, "Succeeded")
        assert stage.player.script is not runs_on

    live(opens, act)
