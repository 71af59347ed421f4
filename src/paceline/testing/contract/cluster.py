"""What every cluster promises to its clients, ours and a real one alike.

Each promise is an async function that takes a `Subject`; `PROMISES` lists them all. A promise makes what it needs in
the subject's own namespace and may be run against a server that has other guests.
"""

import asyncio

import pytest

from paceline.apimachinery.meta import name_of, revision_of, uid_of
from paceline.client.interface import CONFIG_MAPS, Collection
from paceline.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from paceline.testing.contract import builtin, crds, object_lifecycle, server_side_apply, watch
from paceline.testing.contract.target import JOBS, Promise, Subject, assert_absent, outcome_of, pod_spec


async def a_created_object_reads_back_as_it_was_answered(s: Subject) -> None:
    created = await s.make("a", data={"text": "hello"}, labels={"app": "x"})

    assert created == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")
    assert created["data"] == {"text": "hello"}
    assert uid_of(created)
    assert int(revision_of(created)) > 0
    assert created["metadata"]["creationTimestamp"].endswith("Z")


async def a_taken_name_is_refused(s: Subject) -> None:
    created = await s.make("a", data={"text": "first"})

    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        await s.make("a", data={"text": "second"})
    assert created == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")


async def of_many_who_want_a_name_one_gets_it(s: Subject) -> None:
    outcomes = await asyncio.gather(*(outcome_of(s.make("a", data={"text": str(n)})) for n in range(8)))

    assert sorted(outcomes) == ["AlreadyExists"] * 7 + ["done"]


async def a_missing_object_is_said_to_be_missing(s: Subject) -> None:
    key = (s.namespace, "nobody")
    for request in (
        s.cluster.get(CONFIG_MAPS, *key),
        s.cluster.patch(CONFIG_MAPS, key, {"data": {}}),
        s.cluster.delete(CONFIG_MAPS, key),
    ):
        with pytest.raises(NotFound, match='configmaps "nobody" not found'):
            await request


async def a_collection_that_is_not_served_is_missing(s: Subject) -> None:
    with pytest.raises(NotFound):
        await s.cluster.list(Collection(group="no.such.group", version="v1", plural="things"))


async def nothing_is_made_in_a_namespace_that_is_not_there(s: Subject) -> None:
    note = s.note("a")
    note["metadata"]["namespace"] = "no-such-namespace"

    with pytest.raises(NotFound, match='namespaces "no-such-namespace" not found'):
        await s.cluster.create(CONFIG_MAPS, note)


async def a_name_can_be_left_to_the_server(s: Subject) -> None:
    note = s.note("")
    note["metadata"] = {"namespace": s.namespace, "generateName": "run-"}

    first, second = [await s.cluster.create(CONFIG_MAPS, note) for _ in range(2)]

    assert name_of(first).startswith("run-")
    assert len({"run-", name_of(first), name_of(second)}) == 3


async def a_stale_replace_is_a_conflict_and_changes_nothing(s: Subject) -> None:
    stale = await s.make("a")
    fresh = await s.write("a", "newer")

    with pytest.raises(Conflict, match="the object has been modified"):
        await s.cluster.replace(CONFIG_MAPS, {**stale, "data": {"text": "older"}})
    assert fresh == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")


async def of_many_who_replace_one_revision_one_succeeds(s: Subject) -> None:
    read = await s.make("a")

    outcomes = await asyncio.gather(
        *(outcome_of(s.cluster.replace(CONFIG_MAPS, {**read, "data": {"text": str(n)}})) for n in range(8))
    )

    assert sorted(outcomes) == ["Conflict"] * 7 + ["done"]


async def a_guarded_patch_of_a_stale_revision_is_a_conflict(s: Subject) -> None:
    stale = await s.make("a")
    fresh = await s.write("a", "newer")

    with pytest.raises(Conflict, match="the object has been modified"):
        await s.write("a", "older", resourceVersion=revision_of(stale))
    assert fresh == await s.cluster.get(CONFIG_MAPS, s.namespace, "a")
    assert (await s.write("a", "newest", resourceVersion=revision_of(fresh)))["data"] == {"text": "newest"}


async def a_merge_patch_changes_and_removes_only_what_it_names(s: Subject) -> None:
    await s.make("a", data={"keep": "1", "drop": "2"}, labels={"app": "x"})

    patched = await s.cluster.patch(CONFIG_MAPS, (s.namespace, "a"), {"data": {"drop": None, "new": "3"}})

    assert patched["data"] == {"keep": "1", "new": "3"}
    assert patched["metadata"]["labels"] == {"app": "x"}


async def a_write_that_changes_nothing_makes_no_revision(s: Subject) -> None:
    await s.make("a")
    first = await s.write("a", "same")
    second = await s.write("a", "same")

    assert revision_of(first) == revision_of(second)


async def status_and_spec_have_doors_of_their_own(s: Subject) -> None:
    key = (s.namespace, "demo")
    created = await s.cluster.create(JOBS, {**s.job("demo"), "status": {"phase": "Running"}})
    by_main = await s.cluster.patch(JOBS, key, {"status": {"phase": "Succeeded"}})
    spec = {"runMode": {"pause": {"enabled": True}}}
    by_status = await s.cluster.patch(JOBS, key, {"spec": spec, "status": {"phase": "Failed"}}, subresource="status")

    assert "phase" not in created.get("status", {})
    assert revision_of(by_main) == revision_of(created)
    assert by_status["status"]["phase"] == "Failed"
    assert by_status["spec"] == created["spec"]
    assert revision_of(by_status) != revision_of(created)


async def the_status_door_is_guarded(s: Subject) -> None:
    stale = await s.cluster.create(JOBS, s.job("demo"))
    written = {**stale, "status": {"phase": "Running"}}
    await s.cluster.replace(JOBS, written, subresource="status")

    with pytest.raises(Conflict, match="the object has been modified"):
        await s.cluster.replace(JOBS, {**stale, "status": {"phase": "Failed"}}, subresource="status")


async def only_the_spec_makes_a_generation(s: Subject) -> None:
    key = (s.namespace, "demo")
    created = await s.cluster.create(JOBS, s.job("demo"))
    labelled = await s.cluster.patch(JOBS, key, {"metadata": {"labels": {"app": "x"}}})
    status = {"status": {"phase": "Running"}}
    reported = await s.cluster.patch(JOBS, key, status, subresource="status")
    paused = await s.cluster.patch(JOBS, key, {"spec": {"runMode": {"pause": {"enabled": True}}}})

    generations = [job["metadata"]["generation"] for job in (created, labelled, reported, paused)]
    assert generations == [1, 1, 1, 2]
    assert paused["status"]["phase"] == "Running"


async def an_unknown_field_is_refused_and_named(s: Subject) -> None:
    with pytest.raises(BadRequest, match=r'unknown field "spec\.commands"'):
        await s.cluster.create(JOBS, s.job("demo", commands=["python"]))
    with pytest.raises(BadRequest, match='unknown field "dta"'):
        await s.cluster.create(CONFIG_MAPS, {**s.note("a"), "dta": {}})
    await assert_absent(s, JOBS, "demo")


FAULTY = (
    ("spec.cleanUpPolicy", {"cleanUpPolicy": "Sometimes"}, "Sometimes"),
    ("spec.successRules", {"successRules": None}, None),
    ("spec.replicaSpecs[0].replicas", {"replicaSpecs": [{"type": "worker", "replicas": 0}]}, 0),
)


async def a_value_that_is_not_allowed_is_refused_with_its_path(s: Subject) -> None:
    for path, spec, value in FAULTY:
        job = s.job("demo", **spec)
        job["spec"] = {name: part for name, part in job["spec"].items() if part is not None}
        if "replicaSpecs" in spec:
            job["spec"]["replicaSpecs"][0]["template"] = {"spec": pod_spec()}
        with pytest.raises(Invalid) as caught:
            await s.cluster.create(JOBS, job)
        assert [(fault.path, fault.value) for fault in caught.value.faults if fault.path == path] == [(path, value)]
        assert path in str(caught.value)
        await assert_absent(s, JOBS, "demo")


async def a_bad_name_is_refused_with_its_path(s: Subject) -> None:
    with pytest.raises(Invalid) as caught:
        await s.make("Not_A_Name")
    assert [fault.path for fault in caught.value.faults] == ["metadata.name"]


async def an_object_of_another_kind_is_refused(s: Subject) -> None:
    with pytest.raises(BadRequest):
        await s.cluster.create(CONFIG_MAPS, {**s.note("a"), "kind": "Secret"})


PROMISES: tuple[Promise, ...] = (
    a_created_object_reads_back_as_it_was_answered,
    a_taken_name_is_refused,
    of_many_who_want_a_name_one_gets_it,
    a_missing_object_is_said_to_be_missing,
    a_collection_that_is_not_served_is_missing,
    nothing_is_made_in_a_namespace_that_is_not_there,
    a_name_can_be_left_to_the_server,
    a_stale_replace_is_a_conflict_and_changes_nothing,
    of_many_who_replace_one_revision_one_succeeds,
    a_guarded_patch_of_a_stale_revision_is_a_conflict,
    a_merge_patch_changes_and_removes_only_what_it_names,
    a_write_that_changes_nothing_makes_no_revision,
    status_and_spec_have_doors_of_their_own,
    the_status_door_is_guarded,
    only_the_spec_makes_a_generation,
    an_unknown_field_is_refused_and_named,
    a_value_that_is_not_allowed_is_refused_with_its_path,
    a_bad_name_is_refused_with_its_path,
    an_object_of_another_kind_is_refused,
    *watch.PROMISES,
    *builtin.PROMISES,
    *object_lifecycle.PROMISES,
    *crds.PROMISES,
    *server_side_apply.PROMISES,
)
