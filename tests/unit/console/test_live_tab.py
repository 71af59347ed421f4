"""A tab gets the subscriptions that it asks for, within limits; malformed messages change nothing."""

import asyncio
import json

import pytest

from paceline.apimachinery.meta import name_of, owned_by, uid_of
from paceline.client.interface import CONFIG_MAPS, EVENTS, NAMESPACES, PODS
from paceline.console.subscriptions import feeds, watch_cache
from paceline.model.scheduling_queue import QueueEntry, SchedulingQueue
from tests.unit.console.stage import JOBS, play

ROWS = {"id": 7, "type": "rows", "resource": "jobs", "namespace": "default"}
PODS_PATH = "/api/v1/namespaces/default/pods"


def config_map(name, size=1):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": "x" * size},
    }


MALFORMED = [
    "",
    "{",
    "[]",
    "7",
    '"rows"',
    "{}",
    '{"id": 1}',
    '{"id": 1, "type": 5}',
    '{"id": 1, "type": "nonsense"}',
    '{"type": "rows", "resource": "jobs", "namespace": ""}',
    '{"id": -1, "type": "rows", "resource": "jobs"}',
    '{"id": 4294967296, "type": "rows", "resource": "jobs"}',
    '{"id": true, "type": "rows", "resource": "jobs"}',
    '{"id": 1, "type": "rows", "resource": "jobs", "namespace": 5}',
    '{"id": 1, "type": "rows", "resource": "jobs", "namespace": "../kube-system"}',
    '{"id": 1, "type": "rows", "resource": "secrets", "namespace": "default"}',
    '{"id": 1, "type": "objects"}',
    '{"id": 1, "type": "objects", "path": "/api/v1/namespaces/default/pods/a/log"}',
    '{"id": 1, "type": "objects", "path": "/api/v1/../../metrics"}',
    '{"id": 1, "type": "objects", "path": "/api/v1/pods?watch=1"}',
    '{"id": 1, "type": "objects", "path": "/api/v1/pods?labelSelector=a in ("}',
    '{"id": 1, "type": "objects", "path": "http://elsewhere/api/v1/pods"}',
    '{"id": 1, "type": "view", "of": "nothing"}',
    '{"id": 1, "type": "view", "of": "job", "kind": "Pod", "namespace": "default", "name": "a"}',
    '{"id": 1, "type": "view", "of": "job", "kind": "GenericJob"}',
    '{"id": 1, "type": "log", "namespace": "default", "pod": "a"}',
    '{"id": 1, "type": "log", "namespace": "default", "pod": "a", "container": "m", "tail": -1}',
    '{"id": 1, "type": "log", "namespace": "default", "pod": "a", "container": "m", "after": "yesterday"}',
    '{"id": 1, "type": "log", "namespace": "default", "pod": "a/b", "container": "m"}',
    '{"id": 7, "type": "credit", "bytes": "many"}',
    '{"id": 7, "type": "rows", "resource": "jobs", "namespace": "default"}',
    '{"id": 1, "type": "' + "x" * 70_000 + '"}',
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_cannot_be_read_is_an_error_and_changes_nothing(text):
    async def scene(stage):
        page = await stage.subscribed(ROWS)
        requests = len(stage.links["ada"].requests)
        await page.sent.put({"type": "websocket.receive", "text": text})

        error = (await page.hear("error"))["error"]
        assert 400 <= error["code"] < 500
        assert error["message"]
        assert len(stage.links["ada"].requests) == requests

        await stage.job("digits")
        await page.until(lambda: page.names(7) == ["digits"])

    play(scene)


def test_bytes_are_no_message():
    async def scene(stage):
        page = await stage.page()
        await page.sent.put({"type": "websocket.receive", "bytes": b"{}"})

        assert (await page.hear("error"))["error"]["code"] == 400

    play(scene)


def test_what_a_tab_has_left_already_is_no_error():
    async def scene(stage):
        page = await stage.page()
        await page.tell(id=3, type="unsubscribe")
        await page.tell(id=3, type="credit", bytes=5)
        await page.subscribe(ROWS)

        assert page.messages("error") == []

    play(scene)


def test_a_tab_hears_of_the_console_at_least_every_ten_seconds():
    async def scene(stage):
        page = await stage.page()
        first = await page.hear("ping")
        await page.hear("ping", count=7)

        assert page.messages("ping")[6]["time"] - first["time"] <= 60

    play(scene)


def test_a_tab_has_64_subscriptions_at_most():
    async def scene(stage):
        page = await stage.page()
        for number in range(65):
            await page.tell(**{**ROWS, "id": number})
        error = await page.hear("error")

        assert (error["id"], error["error"]["reason"]) == (64, "TooManyRequests")

        await page.tell(id=5, type="unsubscribe")
        await page.subscribe({**ROWS, "id": 64})

    play(scene)


def test_a_tab_reads_24_logs_at_most():
    async def scene(stage):
        pod = await stage.pod("digits")
        stage.node.write(uid_of(pod), b"a\n")
        page = await stage.page()
        for number in range(25):
            await page.tell(id=number, type="log", namespace="default", pod="digits", container="main", follow=True)

        error = await page.hear("error")

        assert (error["id"], error["error"]["code"]) == (24, 429)

    play(scene)


def test_what_all_tabs_of_a_person_follow_is_limited(monkeypatch):
    monkeypatch.setattr(watch_cache, "MAX_STREAMS", 12)

    async def scene(stage):
        page = await stage.subscribed(ROWS)
        for number, plural in enumerate(("pods", "services")):
            await page.subscribe({"id": number, "type": "objects", "path": f"/api/v1/namespaces/default/{plural}"})
        await page.tell(id=2, type="objects", path="/api/v1/namespaces/default/secrets")
        assert (await page.hear("error", 2))["error"]["code"] == 429

        await stage.subscribed(ROWS, "bob")

        await page.tell(id=0, type="unsubscribe")
        await asyncio.sleep(1)
        await page.subscribe({"id": 3, "type": "objects", "path": "/api/v1/namespaces/default/secrets"})

    play(scene)


def test_after_a_subscription_is_left_nothing_of_it_comes():
    async def scene(stage):
        page = await stage.subscribed(ROWS)
        await page.tell(id=7, type="unsubscribe")
        await page.subscribe({**ROWS, "id": 8})
        await stage.job("digits")
        await page.until(lambda: page.names(8) == ["digits"])

        assert page.names(7) == []

    play(scene)


def test_a_tab_that_takes_nothing_for_30_seconds_is_cut_off():
    async def scene(stage):
        page = await stage.subscribed(ROWS)
        page.reads.clear()
        await stage.job("digits")
        stalled_at = stage.world.clock.monotonic()
        await page.until(lambda: not page.is_open)

        assert 29 <= stage.world.clock.monotonic() - stalled_at <= 40
        assert page.is_aborted

    play(scene)


def test_a_tab_that_is_slow_but_takes_something_stays():
    async def scene(stage):
        page = await stage.subscribed(ROWS)
        for number in range(10):
            page.reads.clear()
            await stage.job(f"job-{number}")
            await asyncio.sleep(20)
            page.reads.set()
            await asyncio.sleep(1)

        assert page.is_open
        assert len(page.names(7)) == 10

    play(scene)


def test_a_hidden_tab_gets_only_rows_until_it_is_shown_again():
    async def scene(stage):
        pod = await stage.pod("digits-0")
        stage.node.write(uid_of(pod), b"one\n")
        page = await stage.page()
        await page.tell(**ROWS)
        await page.tell(id=8, type="objects", path=PODS_PATH)
        await page.tell(id=9, type="log", namespace="default", pod="digits-0", container="main", follow=True)
        await page.until(lambda: 7 in page.revisions and 8 in page.revisions and b"one" in page.logs.get(9, b""))
        await page.tell(type="hide")
        await asyncio.sleep(61)
        watched = len(stage.links["ada"].watched)
        await asyncio.sleep(61)
        assert len(stage.links["ada"].watched) == watched - 1

        await stage.job("digits")
        await stage.pod("digits-1")
        stage.node.write(uid_of(pod), b"two\n")
        await page.until(lambda: page.names(7) == ["digits"])
        await asyncio.sleep(5)
        assert page.names(8) == ["digits-0"]
        assert b"two" not in page.logs[9]

        await page.tell(type="show")
        await page.until(lambda: page.names(8) == ["digits-0", "digits-1"] and b"two" in page.logs[9])
        assert [line.split()[1] for line in page.logs[9].splitlines()] == [b"one", b"two"]

    play(scene)


def test_what_waits_for_its_turn_when_a_tab_is_hidden_is_not_lost():
    async def scene(stage):
        pod = await stage.pod("digits-0")
        stage.node.write(uid_of(pod), b"0\n")
        page = await stage.page()
        await page.tell(id=9, type="log", namespace="default", pod="digits-0", container="main", follow=True)
        await page.until(lambda: page.logs.get(9))
        await page.tell(type="hide")
        await asyncio.sleep(59)
        page.reads.clear()
        for number in range(1, 41):
            stage.node.write(uid_of(pod), b"%d %s\n" % (number, b"x" * 10_000))
        await asyncio.sleep(5)
        page.reads.set()
        await asyncio.sleep(5)
        assert b"\n" in page.logs[9]
        assert page.logs[9].count(b"\n") < 41

        await page.tell(type="show")
        await page.until(lambda: page.logs[9].count(b"\n") >= 41)
        assert [line.split()[1] for line in page.logs[9].splitlines()] == [b"%d" % number for number in range(41)]

    play(scene)


def test_a_tab_that_is_hidden_for_a_moment_misses_nothing():
    async def scene(stage):
        page = await stage.subscribed({"id": 8, "type": "objects", "path": PODS_PATH})
        await page.tell(type="hide")
        await asyncio.sleep(30)
        await page.tell(type="show")
        await asyncio.sleep(90)
        await stage.pod("digits-0")
        await page.until(lambda: page.names(8) == ["digits-0"])

    play(scene)


def test_whole_objects_are_followed_by_selector_without_managed_fields():
    async def scene(stage):
        await stage.pod("mine", labels={"app": "a"})
        await stage.pod("other")
        page = await stage.page()
        await page.tell(id=8, type="objects", path=f"{PODS_PATH}?labelSelector=app%3Da")
        await page.tell(id=9, type="objects", path=f"{PODS_PATH}/other")
        await page.until(lambda: 8 in page.revisions and 9 in page.revisions)

        assert (page.names(8), page.names(9)) == (["mine"], ["other"])
        assert all("managedFields" not in pod["metadata"] for pod in page.items[8].values())

        await stage.cluster.delete(PODS, ("default", "mine"), {"gracePeriodSeconds": 0})
        await page.until(lambda: page.names(8) == [])

    play(scene)


def test_objects_that_are_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(feeds, "MAX_OBJECTS", 5)

    async def scene(stage):
        for number in range(6):
            await stage.pod(f"digits-{number}")
        page = await stage.page()
        await page.tell(id=8, type="objects", path=PODS_PATH)

        assert (await page.hear("error", 8))["error"]["code"] == 413

    play(scene)


def test_a_tab_holds_16_mib_of_objects_at_most():
    async def scene(stage):
        path = feeds.Collection(group="", version="v1", plural="configmaps")
        for number in range(20):
            await stage.cluster.create(path, config_map(f"large-{number}", 900_000))
        page = await stage.page()
        await page.tell(id=8, type="objects", path="/api/v1/namespaces/default/configmaps")

        assert (await page.hear("error", 8))["error"]["code"] == 413

    play(scene)


def test_a_kind_that_does_not_exist_is_an_empty_list():
    async def scene(stage):
        page = await stage.page()
        await page.tell(id=8, type="objects", path="/apis/no.such/v1/namespaces/default/things")
        message = await page.hear("objects", 8)

        assert (message["objects"], message["more"]) == ([], False)

    play(scene)


def test_the_view_of_a_job_follows_its_pods_and_events():
    async def scene(stage):
        page = await stage.page()
        await page.tell(id=4, type="view", of="job", kind="PyTorchTrainingJob", namespace="default", name="digits")
        assert (await page.hear("error", 4))["error"]["code"] == 404

        job = await stage.job("digits")
        view = (await page.hear("view", 4))["view"]
        assert (view["name"], view["events"]) == ("digits", [])

        labels = {"tensorstack.dev/owner-name": "digits", "replica-type": "worker", "replica-index": "0"}
        await stage.pod("digits-0", labels=labels, ownerReferences=[owned_by(job)])
        await page.until(lambda: page.messages("view", 4)[-1]["view"]["replicas"])

        about = {"kind": "PyTorchTrainingJob", "namespace": "default", "name": "digits", "uid": uid_of(job)}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "one", "namespace": "default"},
            "involvedObject": about,
            "reason": "Started",
            "message": "it runs",
        }
        await stage.cluster.create(EVENTS, event)
        other = {**event, "metadata": {"name": "two", "namespace": "default"}, "involvedObject": {**about, "name": "x"}}
        await stage.cluster.create(EVENTS, other)
        await page.until(lambda: page.messages("view", 4)[-1]["view"]["events"])
        await asyncio.sleep(5)
        count = len(page.messages("view", 4))
        await stage.cluster.patch(JOBS, ("default", "digits"), {"metadata": {"annotations": {"unseen": "yes"}}})
        await asyncio.sleep(30)
        assert len(page.messages("view", 4)) == count

        await stage.cluster.delete(JOBS, ("default", "digits"))
        await page.hear("error", 4, count=2)

    play(scene)


def test_the_overview_is_shown_without_metrics():
    async def scene(stage):
        page = await stage.page()
        await page.tell(id=4, type="view", of="overview")
        view = (await page.hear("view", 4))["view"]

        assert [node["name"] for node in view["nodes"]] == ["node"]

        await stage.pod("digits-0")
        await page.until(lambda: page.messages("view", 4)[-1]["view"]["pods"]["all"] == 1)

    play(scene)


def queued(*jobs):
    return SchedulingQueue.of(QueueEntry(uid=uid_of(job), namespace="default", name=name_of(job)) for job in jobs)


def test_places_in_the_queue_follow_the_scheduler_in_the_list_and_on_the_page():
    async def scene(stage):
        first, second = await stage.job("first"), await stage.job("second")
        await stage.cluster.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        )
        waiting = {"phase": "Pending", "waiting": "pod x: waits behind others for memory (1Gi asked)"}
        await stage.cluster.replace(JOBS, {**second, "status": waiting}, subresource="status")
        page = await stage.page()
        await page.tell(id=4, type="view", of="queue")
        await page.tell(id=5, type="view", of="job", kind=second["kind"], namespace="default", name="second")
        assert (await page.hear("view", 4))["view"] == {"length": 0, "uids": []}
        assert (await page.hear("view", 5))["view"]["queue"] is None

        await stage.cluster.create(CONFIG_MAPS, queued(first, second).manifest())
        await page.until(lambda: page.messages("view", 4)[-1]["view"]["uids"] == [uid_of(first), uid_of(second)])
        place = {"position": 2, "length": 2, "ahead": {"namespace": "default", "name": "first"}}
        await page.until(lambda: page.messages("view", 5)[-1]["view"]["queue"] == place)

        patch = {"data": queued(second).data()}
        await stage.cluster.patch(CONFIG_MAPS, ("kube-system", "paceline-scheduling-queue"), patch)
        await page.until(lambda: page.messages("view", 4)[-1]["view"] == {"length": 1, "uids": [uid_of(second)]})
        await page.until(lambda: page.messages("view", 5)[-1]["view"]["queue"]["position"] == 1)

    play(scene)


def test_who_may_not_read_the_queue_sees_a_list_without_places():
    async def scene(stage):
        page = await stage.page("visitor")
        await page.tell(id=4, type="view", of="queue")

        assert (await page.hear("view", 4))["view"] == {"length": 0, "uids": []}
        await asyncio.sleep(60)
        assert not page.messages("error")

    play(scene)


FORBIDDEN = {
    "rows": ROWS,
    "rows of all namespaces": {**ROWS, "namespace": ""},
    "objects": {"id": 7, "type": "objects", "path": PODS_PATH},
    "view": {"id": 7, "type": "view", "of": "job", "kind": "GenericJob", "namespace": "default", "name": "a"},
    "overview": {"id": 7, "type": "view", "of": "overview"},
    "log": {"id": 7, "type": "log", "namespace": "default", "pod": "a", "container": "main", "follow": True},
}


@pytest.mark.parametrize("message", FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_a_person_may_not_read_is_said_once_and_the_rest_goes_on(message):
    async def scene(stage):
        await stage.job("digits", namespace="team")
        page = await stage.page("visitor")
        await page.tell(**message)
        error = (await page.hear("error", 7))["error"]
        assert (error["code"], error["reason"]) == (403, "Forbidden")

        await page.tell(**{**ROWS, "id": 8, "namespace": "team"})
        await page.until(lambda: page.names(8) == ["digits"])
        await asyncio.sleep(60)
        assert len(page.messages("error")) == 1

    play(scene)


def test_a_credential_that_is_not_valid_is_said():
    async def scene(stage):
        page = await stage.page("stranger")
        await page.tell(**ROWS)

        assert (await page.hear("error", 7))["error"]["code"] == 401

    play(scene)


def test_messages_are_json_of_one_line():
    async def scene(stage):
        await stage.job("digits")
        page = await stage.page()
        await page.tell(**ROWS)
        message = await page.hear("rows", 7)

        assert json.dumps(message).count("\n") == 0
        assert {"id", "type", "rows", "deleted", "revision", "more"} == set(message)

    play(scene)
