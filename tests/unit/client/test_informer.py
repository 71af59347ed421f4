"""Whatever the server does with a watch, the cache becomes what the server has."""

import asyncio
from contextlib import suppress
from itertools import pairwise

import pytest

from paceline.client.informer import Informer
from paceline.client.interface import PODS, Change, Select


def event(change, obj):
    return {"type": change, "object": obj}


def bookmark(revision):
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(revision)}})


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
BUSY = {"kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": "starting"}
BROKEN = {"kind": "Status", "code": 504, "reason": "Timeout", "message": "Too large resource version"}


@pytest.fixture
def follow(with_cluster, chance):
    """Follows the pods of the scripted server for a while; gives the informer and what it told."""

    def run(seconds=100.0, use=None, select=None):
        told = []

        async def main(cluster):
            informer = Informer(
                cluster,
                PODS,
                select=select,
                chance=chance,
                on_change=lambda change, old, new: told.append((change.value, name(new or old))),
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                    group.create_task(informer.run())
                    if use is not None:
                        group.create_task(use(informer))
            return informer

        return with_cluster(main), told

    return run


def name(obj):
    return obj["metadata"]["name"] + "@" + obj["metadata"]["resourceVersion"]


def names(informer):
    return sorted(name(obj) for obj in informer.cache.values())


def revisions(script):
    return [target.split("resourceVersion=")[1].split("&")[0] for _, target in script.watched]


def test_a_list_comes_first_and_a_watch_goes_on_from_it(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3))]
    script.watches = [
        answer(
            [
                event("ADDED", pod("b", 6)),
                event("MODIFIED", pod("a", 7)),
                event("DELETED", pod("b", 8)),
            ],
            stays=True,
        )
    ]

    informer, told = follow()

    assert told == [("ADDED", "a@3"), ("ADDED", "b@6"), ("MODIFIED", "a@7"), ("DELETED", "b@8")]
    assert names(informer) == ["a@7"]
    assert informer.has_synced.is_set()
    assert revisions(script) == ["5"]


def test_a_long_list_is_read_in_pages(follow, script, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3), after="more"), pods_page(5, pod("b", 4))]

    informer, _ = follow()

    assert names(informer) == ["a@3", "b@4"]
    assert script.listed == ["/api/v1/pods?limit=500", "/api/v1/pods?limit=500&continue=more"]


def test_only_the_wanted_part_of_an_object_is_read_and_kept(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3, labels={"big": "x"}))]
    script.watches = [answer([event("ADDED", pod("b", 6, labels={"big": "x"}))], stays=True)]
    read = []

    def without_labels(obj):
        read.append(obj["metadata"]["name"])
        kept = {name: value for name, value in obj["metadata"].items() if name != "labels"}
        return {"metadata": kept}

    async def write(informer):
        await informer.has_synced.wait()
        assert read[0] == "a"
        informer.observe(pod("c", 7, labels={"big": "x"}))

    informer, _ = follow(use=write, select=Select(trim=without_labels))

    assert names(informer) == ["a@3", "b@6", "c@7"]
    assert all("labels" not in obj["metadata"] for obj in informer.cache.values())


def test_a_list_that_expires_between_pages_is_read_at_once(follow, script, answer, pod, pods_page):
    script.lists = [
        pods_page(5, pod("a", 3), after="more"),
        answer([GONE], status=410),
        pods_page(9, pod("b", 8)),
    ]

    informer, _ = follow()

    assert names(informer) == ["b@8"]
    assert script.listed[-1] == "/api/v1/pods?"
    assert revisions(script) == ["9"]


EXPIRIES = {
    "as an HTTP status": {"lines": [GONE], "status": 410},
    "as an event in the stream": {"lines": [{"type": "ERROR", "object": GONE}]},
}


@pytest.mark.parametrize("how", EXPIRIES.values(), ids=EXPIRIES)
def test_history_that_is_gone_leads_to_a_new_list_and_the_missed_ends_are_told(  # noqa: PLR0917 - fixtures
    follow, script, answer, pod, pods_page, how
):
    script.lists = [
        pods_page(5, pod("a", 3), pod("b", 4), pod("c", 5)),
        pods_page(50, pod("a", 3), pod("b", 40), pod("d", 41)),
    ]
    script.watches = [answer(**how), answer([], stays=True)]

    informer, told = follow()

    assert sorted(told[3:]) == [("ADDED", "d@41"), ("DELETED", "c@5"), ("MODIFIED", "b@40")]
    assert names(informer) == ["a@3", "b@40", "d@41"]
    assert revisions(script) == ["5", "50"]


def test_history_that_is_always_gone_is_not_a_tight_loop(follow, script, answer, pods_page):
    script.lists = [pods_page(5) for _ in range(1000)]
    script.watches = [answer([GONE], status=410) for _ in range(1000)]

    follow(seconds=60)

    assert 5 < len(script.watched) < 20


def test_a_clean_close_goes_on_from_the_last_revision(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5)]
    script.watches = [
        answer([event("ADDED", pod("a", 6))]),
        answer([bookmark(30)]),
        answer([event("MODIFIED", pod("a", 31))], stays=True),
    ]

    informer, told = follow()

    assert revisions(script) == ["5", "6", "30"]
    assert told == [("ADDED", "a@6"), ("MODIFIED", "a@31")]
    assert names(informer) == ["a@31"]


def test_a_server_that_hangs_up_at_once_is_called_less_and_less(follow, script, answer, pods_page):
    script.lists = [pods_page(5)]
    script.watches = [answer([]) for _ in range(1000)]

    follow(seconds=60)

    moments = [when for when, _ in script.watched]
    pauses = [round(later - sooner, 3) for sooner, later in pairwise(moments)]
    assert pauses == sorted(pauses)
    assert len(pauses) < 20
    assert len(script.listed) == 1


def test_a_server_that_comes_back_is_followed_on_and_logged_once(follow, script, answer, pods_page, caplog):
    script.lists = [pods_page(5)]
    script.watches = [
        answer([BUSY], status=503),
        answer([BUSY], status=503),
        answer([bookmark(6)]),
    ]

    follow()

    assert revisions(script) == ["5", "5", "5", "6"]
    said = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.message for record in said] == ["cannot follow a collection"]


def test_a_server_that_lost_its_newest_revisions_is_listed_again(follow, script, answer, pod, pods_page):
    """Restored from a backup, it is behind what we have seen: its word counts, not our memory."""
    script.lists = [pods_page(1000, pod("a", 900), pod("b", 1000)), pods_page(60, pod("a", 50))]
    script.watches = [answer([BROKEN], status=504) for _ in range(4)]

    informer, _ = follow()

    assert names(informer) == ["a@50"]
    assert revisions(script)[-1] == "60"


def test_watches_end_at_different_times(follow, script, pods_page):
    script.lists = [pods_page(5)]

    follow()

    assert "timeoutSeconds=360" in script.watched[0][1]
    assert "allowWatchBookmarks=true" in script.watched[0][1]


def test_the_connection_is_hung_up_when_nobody_follows_any_more(follow, script, pods_page):
    script.lists = [pods_page(5)]

    follow()

    assert script.hung_up == ["http.disconnect"]


def test_our_own_write_is_seen_at_once_and_told_once(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3))]
    script.watches = [answer([event("MODIFIED", pod("a", 9))])]
    seen = []

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9))
        seen.extend(names(informer))

    _, told = follow(use=use)

    assert seen == ["a@9"]
    assert told == [("ADDED", "a@3"), ("MODIFIED", "a@9")]


def test_a_late_event_does_not_undo_our_own_write(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3))]
    script.watches = [answer([]), answer([event("MODIFIED", pod("a", 7))], stays=True)]

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9))

    informer, told = follow(use=use)

    assert names(informer) == ["a@9"]
    assert told == [("ADDED", "a@3"), ("MODIFIED", "a@9")]


def test_a_late_end_of_the_old_object_does_not_end_the_new_one(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3, uid="old"))]
    script.watches = [answer([]), answer([event("DELETED", pod("a", 8, uid="old"))], stays=True)]

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9, uid="new"))

    informer, told = follow(use=use)

    assert names(informer) == ["a@9"]
    assert told == [("ADDED", "a@3"), ("DELETED", "a@3"), ("ADDED", "a@9")]


def test_a_late_answer_does_not_bring_back_what_is_gone(follow, script, answer, pod, pods_page):
    """The watch may tell of the creation and of the end before the answer to the creation arrives."""
    script.lists = [pods_page(5)]
    script.watches = [answer([event("ADDED", pod("a", 6)), event("DELETED", pod("a", 7))], stays=True)]

    async def use(informer):
        await asyncio.sleep(1)
        informer.observe(pod("a", 6))

    informer, told = follow(use=use)

    assert names(informer) == []
    assert told == [("ADDED", "a@6"), ("DELETED", "a@7")]


def test_a_write_of_ours_while_a_list_is_read_is_kept(with_cluster, script, pod, pods_page, chance):
    """The list may have been made before the write."""
    script.lists = [pods_page(5, after="more"), pods_page(5)]

    async def use(cluster):
        informer = Informer(cluster, PODS, chance=chance)
        asked = cluster.page

        async def page(*args, **kwargs):
            if kwargs.get("after"):
                informer.observe(pod("a", 6))
            return await asked(*args, **kwargs)

        cluster.page = page
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await informer.run()
        return names(informer)

    assert with_cluster(use) == ["a@6"]


def test_who_leaves_the_selection_leaves_the_cache_even_after_a_write_of_ours(follow, script, answer, pod, pods_page):
    """It left at 7; at 9 our write still had it back in, and the event for that is yet to come."""
    labels = {"labels": {"app": "x"}}
    script.lists = [pods_page(5, pod("a", 3, **labels))]
    script.watches = [answer([]), answer([event("DELETED", pod("a", 7))], stays=True)]

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9, **labels))

    informer, _ = follow(use=use, select=Select(labels="app=x"))

    assert names(informer) == []


OUTSIDE = [Select(namespace="other"), Select(labels="app=x"), Select(fields="metadata.name=b")]


@pytest.mark.parametrize("select", OUTSIDE)
def test_a_write_of_ours_outside_the_selection_stays_outside(follow, script, pod, pods_page, select):
    script.lists = [pods_page(5)]

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9))

    informer, _ = follow(use=use, select=select)

    assert names(informer) == []


INSIDE = [Select(namespace="team"), Select(labels="app!=x"), Select(fields="metadata.name=a")]


@pytest.mark.parametrize("select", INSIDE)
def test_a_write_of_ours_inside_the_selection_is_seen(follow, script, pod, pods_page, select):
    script.lists = [pods_page(5)]

    async def use(informer):
        await informer.has_synced.wait()
        informer.observe(pod("a", 9))

    informer, _ = follow(use=use, select=select)

    assert names(informer) == ["a@9"]


def test_pods_are_found_by_their_owner(follow, script, answer, pod, pods_page):
    script.lists = [pods_page(5, pod("a", 3, owner="job-1"), pod("b", 4, owner="job-2"))]
    script.watches = [answer([event("ADDED", pod("c", 6, owner="job-1"))], stays=True)]

    informer, _ = follow()

    assert [name(obj) for obj in informer.owned("job-1")] == ["a@3", "c@6"]


def test_a_bug_in_a_handler_is_not_waited_out(with_cluster, script, pod, pods_page, chance):
    script.lists = [pods_page(5, pod("a", 3))]

    def handler(_change: Change, _old, _new):
        raise ZeroDivisionError

    async def use(cluster):
        await Informer(cluster, PODS, chance=chance, on_change=handler).run()

    with pytest.raises(ZeroDivisionError):
        with_cluster(use)
