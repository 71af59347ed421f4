"""Promises about seeing: lists, selections, watches, and a cache that follows them."""

import asyncio
from contextlib import aclosing

import pytest

from paceline.apimachinery.meta import Object, key_of, name_of, revision_of
from paceline.client.informer import Informer
from paceline.client.interface import CONFIG_MAPS, Change
from paceline.errors import Expired
from paceline.testing.contract.target import DEADLINE_SECONDS, JOBS, LAST, Promise, Subject
from paceline.testing.sim.effects import SimChance

# More than a subject may keep in its history.
FORGETTING_WRITES = 150


async def a_watch_tells_exactly_what_came_after_a_revision_in_order(s: Subject) -> None:
    await s.make("before")
    since = await s.now()
    await s.make("a")
    await s.write("a", "1")
    await s.make("b")
    await s.write("a", "2")
    await s.cluster.delete(CONFIG_MAPS, (s.namespace, "a"))
    await s.cluster.delete(CONFIG_MAPS, (s.namespace, "before"))

    assert await s.told_since(since, s.select()) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("DELETED", "before"),
    ]


async def revisions_in_a_watch_only_grow(s: Subject) -> None:
    since = await s.now()
    await s.make("a")
    for n in range(5):
        await s.write("a", str(n))
    await s.cluster.delete(CONFIG_MAPS, (s.namespace, "a"))
    seen = [int(since)]
    async with asyncio.timeout(DEADLINE_SECONDS):
        async with aclosing(s.cluster.watch(CONFIG_MAPS, s.select(), since=since)) as events:
            while len(seen) < 8:
                event = await anext(events)
                seen.append(int(revision_of(event.object)))

    assert seen == sorted(set(seen))


async def who_enters_a_selection_is_added_and_who_leaves_it_is_deleted(s: Subject) -> None:
    since = await s.now()
    await s.make("other", labels={"app": "y"})
    await s.make("a", labels={"app": "y"})
    await s.write("a", "enters", labels={"app": "x"})
    await s.write("a", "stays", labels={"app": "x"})
    await s.write("a", "leaves", labels={"app": None})
    await s.write("a", "away")
    await s.write("a", "back", labels={"app": "x"})
    await s.cluster.delete(CONFIG_MAPS, (s.namespace, "a"))

    assert await s.told_since(since, s.select(labels="app=x")) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "a"),
        ("DELETED", "a"),
    ]


async def who_was_there_before_a_watch_is_told_by_what_it_was(s: Subject) -> None:
    """A watch that starts in the past knows who was in the selection then, and who was not."""
    for name in ("inside", "leaves"):
        await s.make(name, labels={"app": "x"})
    for name in ("outside", "enters"):
        await s.make(name, labels={"app": "y"})
    since = await s.now()
    await s.write("inside", "changed")
    await s.write("outside", "changed")
    await s.write("leaves", "changed", labels={"app": "y"})
    await s.write("enters", "changed", labels={"app": "x"})
    await s.cluster.delete(CONFIG_MAPS, (s.namespace, "outside"))

    assert await s.told_since(since, s.select(labels="app=x")) == [
        ("MODIFIED", "inside"),
        ("DELETED", "leaves"),
        ("ADDED", "enters"),
    ]


async def a_watch_ends_cleanly_when_its_time_is_up(s: Subject) -> None:
    since = await s.now()
    async with asyncio.timeout(DEADLINE_SECONDS):
        async with aclosing(s.cluster.watch(CONFIG_MAPS, s.select(), since=since, timeout_seconds=1)) as events:
            changes = [event.change async for event in events]

    assert set(changes) <= {Change.BOOKMARK}


async def history_that_is_gone_is_said_to_be_gone(s: Subject) -> None:
    """No server keeps all history: ours a window of revisions, a real one what came after it knew the kind."""
    await s.make("a")
    for n in range(FORGETTING_WRITES):
        await s.write("a", str(n))

    async with asyncio.timeout(DEADLINE_SECONDS), aclosing(s.cluster.watch(JOBS, s.select(), since="1")) as events:
        with pytest.raises(Expired):
            await anext(events)


async def a_list_in_pages_gives_every_object_once(s: Subject) -> None:
    names = [f"note-{n}" for n in range(5)]
    for name in reversed(names):
        await s.make(name, labels={"app": "x"})
    await s.make("other")

    page = await s.cluster.list(CONFIG_MAPS, s.select(labels="app=x"), limit=2)

    assert [name_of(item) for item in page.items] == names
    assert page.items[0] == await s.cluster.get(CONFIG_MAPS, s.namespace, names[0])
    assert int(page.revision) >= max(int(revision_of(item)) for item in page.items)


async def an_object_is_selected_by_its_name(s: Subject) -> None:
    since = await s.now()
    for name in ("a", "b"):
        await s.make(name)

    page = await s.cluster.list(CONFIG_MAPS, s.select(fields="metadata.name=b"))
    async with asyncio.timeout(DEADLINE_SECONDS):
        watch = s.cluster.watch(CONFIG_MAPS, s.select(fields="metadata.name=b"), since=since)
        async with aclosing(watch) as events:
            first = await anext(events)

    assert [name_of(item) for item in page.items] == ["b"]
    assert name_of(first.object) == "b"


async def a_cache_becomes_what_the_server_has(s: Subject) -> None:
    informer = Informer(s.cluster, CONFIG_MAPS, select=s.select(), chance=SimChance())
    await s.make("before")
    async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
        following = group.create_task(informer.run())
        await informer.has_synced.wait()
        reached = asyncio.Event()
        informer.cache.listen(lambda _change, _old, new: reached.set() if _is_last(new) else None)
        for name in ("a", "b"):
            informer.observe(await s.make(name))
            informer.observe(await s.write(name, "1"))
        await s.cluster.delete(CONFIG_MAPS, (s.namespace, "a"))
        await s.make(LAST)
        await reached.wait()
        following.cancel()

    page = await s.cluster.list(CONFIG_MAPS, s.select())
    assert dict(informer.cache) == {key_of(item): item for item in page.items}
    assert sorted(name for _, name in informer.cache) == ["b", "before", LAST]


def _is_last(obj: Object | None) -> bool:
    return obj is not None and name_of(obj) == LAST


PROMISES: tuple[Promise, ...] = (
    a_watch_tells_exactly_what_came_after_a_revision_in_order,
    revisions_in_a_watch_only_grow,
    who_enters_a_selection_is_added_and_who_leaves_it_is_deleted,
    who_was_there_before_a_watch_is_told_by_what_it_was,
    a_watch_ends_cleanly_when_its_time_is_up,
    history_that_is_gone_is_said_to_be_gone,
    a_list_in_pages_gives_every_object_once,
    an_object_is_selected_by_its_name,
    a_cache_becomes_what_the_server_has,
)
