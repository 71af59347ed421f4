"""What every cluster promises about who owns which field, and about applying."""

from typing import Any

import pytest

from paceline.apimachinery.meta import Object, uid_of
from paceline.client.interface import CONFIG_MAPS, PODS
from paceline.errors import BadRequest, Conflict, Invalid
from paceline.testing.contract.target import JOBS, Promise, Subject


def owned(obj: Object, author: str) -> Any:
    """Give what an author owns of an object, or None."""
    entries = obj["metadata"].get("managedFields") or ()
    return next((entry["fieldsV1"] for entry in entries if entry["manager"] == author), None)


async def applied(s: Subject, author: str, *, force: bool = False, **data: str) -> Object:
    """Apply a config map."""
    return await s.cluster.apply(CONFIG_MAPS, s.note("a", data=data), author=author, force=force)


async def what_is_applied_is_made_and_is_its_authors(s: Subject) -> None:
    created = await applied(s, "one", text="x")

    assert created == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")
    (entry,) = created["metadata"]["managedFields"]
    assert entry.pop("time") == created["metadata"]["creationTimestamp"]
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:text": {}}},
    }


async def applying_the_same_again_writes_nothing(s: Subject) -> None:
    created = await applied(s, "one", text="x")

    assert await applied(s, "one", text="x") == created


async def a_field_of_another_author_is_a_conflict_that_names_it(s: Subject) -> None:
    created = await applied(s, "one", text="x")

    with pytest.raises(Conflict, match=r'Apply failed with 1 conflict: conflict with "one": \.data\.text'):
        await applied(s, "two", text="y", more="z")
    assert created == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")


async def force_takes_the_field(s: Subject) -> None:
    await applied(s, "one", text="x", kept="k")

    taken = await applied(s, "two", force=True, text="y")

    assert taken["data"] == {"text": "y", "kept": "k"}
    assert owned(taken, "one") == {"f:data": {"f:kept": {}}}
    assert owned(taken, "two") == {"f:data": {"f:text": {}}}


async def what_an_author_no_longer_says_goes(s: Subject) -> None:
    first = await applied(s, "one", text="x", more="y")

    second = await applied(s, "one", text="x")

    assert second["data"] == {"text": "x"}
    assert uid_of(second) == uid_of(first)


async def a_field_that_two_share_stays_until_both_let_go(s: Subject) -> None:
    await applied(s, "one", text="x", more="1")
    both = await applied(s, "two", text="x")
    assert owned(both, "two") == {"f:data": {"f:text": {}}}

    assert (await applied(s, "one", more="1"))["data"] == {"text": "x", "more": "1"}
    assert (await applied(s, "two", more="1"))["data"] == {"more": "1"}


async def a_plain_write_owns_what_it_changes(s: Subject) -> None:
    created = await s.make("a", data={"text": "x"}, labels={"app": "y"})
    await applied(s, "one", more="1")

    changed = await s.write("a", "z")

    (author,) = {entry["manager"] for entry in created["metadata"]["managedFields"]}
    expected = {"f:data": {".": {}, "f:text": {}}, "f:metadata": {"f:labels": {".": {}, "f:app": {}}}}
    assert owned(created, author) == owned(changed, author) == expected
    with pytest.raises(Conflict, match=rf'conflict with "{author}" using v1: \.data\.text'):
        await applied(s, "one", text="mine")


async def a_status_is_owned_apart_from_the_rest(s: Subject) -> None:
    await s.cluster.create(JOBS, s.job("a"))

    patched = await s.cluster.patch(JOBS, (s.namespace, "a"), {"status": {"phase": "Running"}}, subresource="status")

    doors = {entry.get("subresource", "") for entry in patched["metadata"]["managedFields"]}
    assert doors == {"", "status"}


async def items_of_a_list_are_owned_one_by_one(s: Subject) -> None:
    pod = s.pod("a")
    await s.cluster.apply(PODS, pod, author="one")
    pod["spec"]["containers"][0] = {"name": "main", "image": "python:3.12"}

    with pytest.raises(Conflict, match=r'\.spec\.containers\[name="main"\]\.image'):
        await s.cluster.apply(PODS, pod, author="two")
    forced = await s.cluster.apply(PODS, pod, author="two", force=True)
    assert forced["spec"]["containers"][0]["command"] == ["python", "-V"]


async def entries_can_be_thrown_away_and_begin_anew(s: Subject) -> None:
    await applied(s, "one", text="x")
    bare = await s.cluster.patch(CONFIG_MAPS, (s.namespace, "a"), {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in bare["metadata"]

    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using v1: \.data\.text'):
        await applied(s, "one", text="y")


async def entries_cannot_be_applied(s: Subject) -> None:
    note = s.note("a", managedFields=[{}])

    with pytest.raises(BadRequest, match=r"metadata\.managedFields must"):
        await s.cluster.apply(CONFIG_MAPS, note, author="one")


async def nobody_applies_without_a_name(s: Subject) -> None:
    with pytest.raises(Invalid, match="fieldManager: Required value: is required for apply patch"):
        await applied(s, "", text="x")


PROMISES: tuple[Promise, ...] = (
    what_is_applied_is_made_and_is_its_authors,
    applying_the_same_again_writes_nothing,
    a_field_of_another_author_is_a_conflict_that_names_it,
    force_takes_the_field,
    what_an_author_no_longer_says_goes,
    a_field_that_two_share_stays_until_both_let_go,
    a_plain_write_owns_what_it_changes,
    a_status_is_owned_apart_from_the_rest,
    items_of_a_list_are_owned_one_by_one,
    entries_can_be_thrown_away_and_begin_anew,
    entries_cannot_be_applied,
    nobody_applies_without_a_name,
)
