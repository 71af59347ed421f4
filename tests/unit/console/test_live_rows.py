"""Rows reach a tab at once and once, whatever happens to the tab, the console or the cluster."""

import asyncio

import pytest

from paceline.store.backend import StoreLimits
from tests.unit.console.stage import GENERIC, JOBS, play
from tests.unit.kinds.manifests import generic

SUBSCRIBE = {"id": 7, "type": "rows", "resource": "jobs", "namespace": "default"}


def phases(page):
    return {row[2]: row[4] for row in page.items[7].values()}


async def come_back(stage, page):
    """Open a tab that resumes from the revision of one that was closed."""
    again = await stage.page()
    again.items[7] = dict(page.items[7])
    await again.subscribe(SUBSCRIBE, since=page.revisions[7])
    return again


async def change_phase(stage, *, times, seconds):
    """Change the phase of a job several times, at intervals of some seconds."""
    for number in range(times):
        await stage.set_phase("digits", ("Running", "Paused")[number % 2])
        await asyncio.sleep(seconds)


def test_a_tab_gets_the_jobs_of_all_kinds_and_then_what_changes():
    async def scene(stage):
        await stage.job("digits")
        await stage.job("elsewhere", namespace="team")
        manifest = generic(name="other")
        manifest["metadata"] = {"name": "other", "namespace": "default"}
        await stage.cluster.create(GENERIC, manifest)
        page = await stage.subscribed(SUBSCRIBE)
        assert page.names(7) == ["digits", "other"]

        changed_at = stage.world.clock.monotonic()
        await stage.set_phase("digits", "Running")
        await page.until(lambda: phases(page)["digits"] == "Running")
        assert stage.world.clock.monotonic() - changed_at <= 0.2

        await stage.cluster.delete(JOBS, ("default", "digits"))
        await page.until(lambda: page.names(7) == ["other"])

    play(scene)


def test_an_empty_list_is_told_as_complete():
    async def scene(stage):
        page = await stage.page()
        await page.tell(**SUBSCRIBE)

        message = await page.hear("rows", 7)

        assert (message["rows"], message["more"]) == ([], False)

    play(scene)


def test_a_tab_that_comes_back_gets_only_what_has_changed():
    async def scene(stage):
        for number in range(20):
            await stage.job(f"job-{number}")
        page = await stage.subscribed(SUBSCRIBE)
        await page.leave()
        await stage.set_phase("job-3", "Running")
        await stage.cluster.delete(JOBS, ("default", "job-4"))

        again = await come_back(stage, page)

        assert again.messages("reset") == []
        assert sum(len(message["rows"]) for message in again.messages("rows")) == 1
        assert phases(again)["job-3"] == "Running"
        assert "job-4" not in phases(again)
        assert len(again.names(7)) == 19

    play(scene)


@pytest.mark.parametrize("since", ["18.0000001", "x", "5.", "", "999999"])
def test_a_tab_that_names_a_revision_of_another_console_begins_again(since):
    async def scene(stage):
        await stage.job("digits")
        page = await stage.page()
        page.items[7] = {"gone": ["gone", "default", "gone"]} if since else {}
        await page.subscribe(SUBSCRIBE, since=since)

        assert page.names(7) == ["digits"]
        assert len(page.messages("reset", 7)) == bool(since)

    play(scene)


def test_a_console_that_was_restarted_has_its_tabs_begin_again():
    async def scene(stage):
        await stage.job("digits")
        await stage.job("gone")
        page = await stage.subscribed(SUBSCRIBE)
        await page.leave()
        await stage.cluster.delete(JOBS, ("default", "gone"))
        stage.start_console()

        again = await come_back(stage, page)

        assert again.names(7) == ["digits"]

    play(scene)


@pytest.mark.parametrize("history", [5, 10_000])
def test_a_cluster_that_was_away_loses_nothing(history):
    """Also when its history is too short to go on, so that it is listed again (410)."""

    async def scene(stage):
        for name in ("stays", "changes", "goes"):
            await stage.job(name)
        page = await stage.subscribed(SUBSCRIBE)
        stage.links["ada"].cut()
        stale = await page.hear("stale", 7)
        assert stale["since"] >= "20"

        await stage.set_phase("changes", "Failed")
        await stage.cluster.delete(JOBS, ("default", "goes"))
        for number in range(30):
            await stage.job(f"other-{number}")
        await asyncio.sleep(20)
        assert not page.messages("fresh")
        stage.links["ada"].mend()

        await page.hear("fresh", 7)
        await page.until(lambda: len(page.names(7)) == 32 and phases(page)["changes"] == "Failed")
        assert "goes" not in page.names(7)
        assert page.messages("reset") == []

    play(scene, limits=StoreLimits(history=history, batch=16, slack=1))


def test_tabs_of_one_person_share_a_watch_and_those_of_another_do_not():
    async def scene(stage):
        await stage.job("digits")
        pages = [await stage.page("ada"), await stage.page("ada"), await stage.page("bob")]
        for page in pages:
            await page.subscribe(SUBSCRIBE)
        kinds = len([target for target in stage.links["ada"].requests if "limit=" in target])

        assert len(stage.links["ada"].watched) == len(stage.links["bob"].watched) == kinds
        assert stage.links["bob"].requests

    play(scene)


def test_a_feed_outlives_its_last_tab_by_a_minute():
    async def scene(stage):
        page = await stage.subscribed(SUBSCRIBE)
        await page.leave()

        await asyncio.sleep(59)
        assert stage.links["ada"].watched
        await asyncio.sleep(2)
        assert not stage.links["ada"].watched

    play(scene)


def test_changes_are_gathered_while_a_tab_does_not_read():
    async def scene(stage):
        await stage.job("digits")
        page = await stage.subscribed(SUBSCRIBE)
        received = len(page.messages("rows", 7))
        page.reads.clear()
        await change_phase(stage, times=100, seconds=0.05)
        page.reads.set()
        await stage.set_phase("digits", "Succeeded")
        await page.until(lambda: phases(page)["digits"] == "Succeeded")

        assert len(page.messages("rows", 7)) - received <= 4

    play(scene)


def test_quick_changes_are_gathered_for_a_tenth_of_a_second():
    async def scene(stage):
        await stage.job("digits")
        page = await stage.subscribed(SUBSCRIBE)
        received = len(page.messages("rows", 7))
        await change_phase(stage, times=100, seconds=0.01)
        await stage.set_phase("digits", "Succeeded")
        await page.until(lambda: phases(page)["digits"] == "Succeeded")

        assert len(page.messages("rows", 7)) - received <= 13

    play(scene)


def test_a_long_list_comes_compressed_and_in_parts():
    async def scene(stage):
        for number in range(1200):
            await stage.job(f"job-{number}")
        page = await stage.subscribed(SUBSCRIBE)

        assert len(page.names(7)) == 1200
        assert [message["more"] for message in page.messages("rows", 7)][-1] is False
        assert page.messages("rows", 7)[0]["more"] is True
        assert page.wire_bytes < 1200 * 100

    play(scene)
