"""Actions over HTTP, as a person, against our own API server."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette

from paceline.apimachinery.meta import revision_of, uid_of
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.client.in_process import IN_PROCESS, LocalCluster, LocalTransport
from paceline.client.interface import NAMESPACES, Collection
from paceline.client.requests import Request
from paceline.console.actions import ROUTES, ActionRefused, ActionTarget, Actor, collection_of
from paceline.console.responses import error_response
from paceline.errors import NotFound, PacelineError
from paceline.host.effects import real_world
from paceline.presentation.actions import Choices
from tests.contract.subjects import our_app
from tests.unit.kinds.manifests import pytorch

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
TOKENS = {hash_token("ada"): "ada", hash_token("controller"): "system:paceline-controller"}


@dataclass(frozen=True)
class Ada:
    client: LocalCluster
    name: str = "ada"


@dataclass(frozen=True)
class Console:
    """The console's actions, and the cluster as its controllers see it."""

    site: LocalTransport
    cluster: LocalCluster

    async def post(self, path, **body):
        answer = await self.site.send(Request(method="POST", path=path, body=json.dumps(body).encode()))
        return answer.status, json.loads(answer.body)

    async def job(self, name="digits", *, phase="Running", **spec):
        manifest = pytorch(name=name, **spec)
        manifest["metadata"] = {"name": name, "namespace": "default"}
        created = await self.cluster.create(JOBS, manifest)
        return await self.cluster.replace(JOBS, {**created, "status": {"phase": phase}}, subresource="status")


@pytest.fixture
async def console():
    async with opened() as site:
        yield site


@asynccontextmanager
async def opened(routes=ROUTES):
    gate = Authenticator(tokens=TOKENS, hosts=frozenset({IN_PROCESS}))
    async with (
        our_app(gate) as api,
        LocalCluster(api, token="controller") as cluster,
        LocalCluster(api, token="ada") as client,
        asyncio.TaskGroup() as group,
    ):
        await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        yield Console(LocalTransport(page(Ada(client), routes), group), cluster)


def page(person, routes):
    async def failed(_request, error):
        return error_response(error)

    inner = Starlette(routes=routes, exception_handlers={PacelineError: failed})
    runtime = SimpleNamespace(config=SimpleNamespace(clock=real_world().clock))

    async def app(scope, receive, send):
        await inner({**scope, "state": {"person": person, "runtime": runtime}}, receive, send)

    return app


def named(job, **fields):
    return {"kind": "PyTorchTrainingJob", "namespace": "default", "name": job["metadata"]["name"], **fields}


async def test_a_preview_says_what_would_happen_and_does_nothing(console):
    job = await console.job()

    code, shown = await console.post("/api/actions/preview", action="pause", **named(job))

    assert (code, shown["possible"], shown["reason"]) == (200, True, None)
    assert {"JobStays"} <= {entry["code"] for entry in shown["consequences"]}
    assert await console.cluster.get(JOBS, "default", "digits") == job


async def test_without_an_action_all_actions_of_the_kind_are_shown(console):
    job = await console.job(phase="Failed")

    _, shown = await console.post("/api/actions/preview", **named(job))

    possible = {entry["action"]: entry["possible"] for entry in shown["actions"]}
    assert possible == {
        **dict.fromkeys(("pause", "resume", "stop", "restart", "scale"), False),
        **dict.fromkeys(("rerun", "debug", "delete"), True),
    }


async def test_a_paused_job_is_paused_by_the_person(console):
    job = await console.job()

    code, result = await console.post("/api/actions", action="pause", **named(job, uid=uid_of(job)))

    written = await console.cluster.get(JOBS, "default", "digits")
    assert (code, result["object"]["resourceVersion"]) == (200, revision_of(written))
    assert written["spec"]["runMode"]["pause"]["enabled"] is True
    assert written["metadata"]["annotations"]["paceline.dev/asked-by"] == "ada"


async def test_a_stale_button_gets_the_reason(console):
    job = await console.job(phase="Succeeded")

    code, status = await console.post("/api/actions", action="pause", **named(job))

    assert (code, status["reason"]) == (409, "Conflict")
    assert "has ended (Succeeded)" in status["message"]
    assert status["details"]["causes"][0]["reason"] == "Ended"


@pytest.mark.parametrize("action", ["pause", "delete", "rerun"])
@pytest.mark.parametrize("precondition", [{"uid": "of-another-one"}, {"resourceVersion": "1"}])
async def test_an_action_on_another_state_than_the_person_saw_is_refused(console, action, precondition):
    job = await console.job()

    code, status = await console.post("/api/actions", action=action, **named(job, **precondition))

    assert (code, status["reason"]) == (409, "Conflict")
    assert "reload the page" in status["message"]
    assert await console.cluster.get(JOBS, "default", "digits") == job


@pytest.mark.parametrize(("phase", "outcome"), [("Running", True), ("Succeeded", False)])
async def test_a_job_that_changes_between_reading_and_writing_is_looked_at_again(console, phase, outcome):
    job = await console.job()

    class Late:
        """Writes a status just before the person's first patch."""

        writes = 1

        def __getattr__(self, name):
            return getattr(console.cluster, name)

        async def patch(self, where, key, change):
            if self.writes:
                self.writes = 0
                status = {"phase": phase, "waiting": "changed"}
                await console.cluster.replace(JOBS, {**job, "status": status}, subresource="status")
            return await console.cluster.patch(where, key, change)

    choices = Choices(now=real_world().clock.now())
    actor = Actor(person=Ada(Late()), action="pause", choices=choices)
    ref = ActionTarget(kind="PyTorchTrainingJob", namespace="default", name="digits")

    if outcome:
        assert (await actor.act(ref))["code"] == 200
    else:
        with pytest.raises(ActionRefused, match=r"has ended \(Succeeded\)"):
            await actor.act(ref)
    written = await console.cluster.get(JOBS, "default", "digits")
    assert bool(written["spec"].get("runMode")) is outcome


async def test_a_rerun_gets_the_next_free_name_or_the_chosen_one(console):
    job = await console.job(phase="Failed")

    first = await console.post("/api/actions", action="rerun", **named(job))
    second = await console.post("/api/actions", action="rerun", **named(job))
    third = await console.post("/api/actions", action="rerun", newName="mine", **named(job))
    again = await console.post("/api/actions", action="rerun", newName="mine", **named(job))

    assert [result[1]["object"]["name"] for result in (first, second, third)] == ["digits-2", "digits-3", "mine"]
    assert (again[0], again[1]["reason"]) == (409, "AlreadyExists")


async def test_a_deleted_job_is_gone(console):
    job = await console.job()

    code, _ = await console.post("/api/actions", action="delete", **named(job, uid=uid_of(job)))

    assert code == 200
    with pytest.raises(NotFound):
        await console.cluster.get(JOBS, "default", "digits")


async def test_a_bulk_action_has_a_result_for_each_object(console):
    jobs = [await console.job("a"), await console.job("b", phase="Failed")]
    objects = [named(job) for job in jobs] + [{"kind": "PyTorchTrainingJob", "namespace": "default", "name": "c"}]

    code, shown = await console.post("/api/actions", action="stop", objects=objects)

    assert code == 200
    assert [result["code"] for result in shown["results"]] == [200, 409, 404]
    assert shown["results"][1]["error"]["details"]["causes"][0]["reason"] == "Ended"
    assert [result["name"] for result in shown["results"]] == ["a", "b", "c"]


async def test_a_bulk_preview_has_the_consequences_of_each_object(console):
    jobs = [await console.job("a"), await console.job("b", phase="Failed")]

    _, shown = await console.post("/api/actions/preview", action="delete", objects=[named(job) for job in jobs])

    assert [result["possible"] for result in shown["results"]] == [True, True]


async def test_a_job_is_scaled_within_its_bounds(console):
    elastic = {"elastic": {"enabled": True, "minReplicas": 1, "maxReplicas": 4}, "torchrunConfig": {"enabled": True}}
    job = await console.job(**elastic)

    good = await console.post("/api/actions", action="scale", replicas=3, **named(job))
    bad = await console.post("/api/actions", action="scale", replicas=9, **named(job))

    assert good[0] == 200
    assert bad[1]["details"]["causes"][0] == {
        "reason": "OutOfBounds",
        "message": "must have between 1 and 4 replicas",
        "minReplicas": 1,
        "maxReplicas": 4,
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"action": "pause"}, "kind is missing"),
        ({"action": "pause", "kind": "Pod", "namespace": "default", "name": "x"}, "kind 'Pod' has no actions"),
        ({"action": "pause", "kind": "GenericJob", "namespace": 3, "name": "x"}, "namespace must be a string"),
        ({"action": "scale", "kind": "GenericJob", "namespace": "a", "name": "x"}, "replicas is missing"),
        ({"action": "scale", "replicas": "3"}, "replicas must be a positive number"),
        ({"action": "rerun", "newName": 3}, "newName must be a string"),
        ({"action": "pause", "objects": [3]}, "objects must be a list"),
        ({"action": "pause", "objects": [{}] * 501}, "at most 500 objects, not 501"),
    ],
)
async def test_a_request_that_cannot_be_read_says_why(console, body, message):
    code, status = await console.post("/api/actions", **body)

    assert (code, status["reason"]) == (400, "BadRequest")
    assert message in status["message"]


async def test_an_unknown_action_lists_those_of_the_kind(console):
    job = await console.job()

    code, status = await console.post("/api/actions", action="explode", **named(job))

    assert code == 400
    assert "there are: pause, resume, stop" in status["message"]


def test_the_actions_of_a_notebook_go_to_its_own_group():
    assert collection_of("Notebook").path() == "/apis/tensorstack.dev/v1beta1/notebooks"
    assert collection_of("TrainingApp").path() == "/apis/paceline.dev/v1beta1/trainingapps"
