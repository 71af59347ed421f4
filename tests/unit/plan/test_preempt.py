"""Less important jobs give way to more important ones: whole, as few as will do, and only where that makes room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.plan.scheduling.gang import place
from paceline.plan.scheduling.preemption import VictimCandidate, holders_of
from paceline.plan.scheduling.resources import QUEUE_STEPS
from tests.unit.plan.test_place import GPU, amounts, ask, bound, node, waits
from tests.unit.plan.test_room import pod


def gang(name, *pods, rank=10, **more):
    return ask(name, *pods, **{"rank": rank, "priority": rank * QUEUE_STEPS, "family": name, **more})


def holder(name, *, pods=1, leaving=False, rank=0, **more):
    keys = tuple(("default", f"{name}-{index}") for index in range(pods))
    since = more.pop("since", "2029")
    return VictimCandidate(
        family=name, pods=keys, holds={"one": amounts(**more)}, rank=rank, since=since, is_leaving=leaving
    )


def full(*holders, **capacity):
    """One node, less what its holders have."""
    used = {}
    for each in holders:
        for amount in each.holds.values():
            used = {name: used.get(name, 0) + amount.get(name, 0) for name in {**used, **amount}}
    return node(used=used, **capacity)


def victims(gangs, holders, **capacity):
    found = place(gangs, (full(*holders, **capacity),), holders)
    return {name for _, name in found.victims}


# Who waits, who holds what → the pods that go. There are four GPUs.
CASES = {
    "one of lower priority goes": ((gang("a", GPU),), (holder("low", gpu=4),), {"low-0"}),
    "all pods of a job go": ((gang("a", GPU),), (holder("low", pods=3, gpu=4),), {"low-0", "low-1", "low-2"}),
    "nobody goes where there is room": ((gang("a", GPU),), (holder("low", gpu=3),), set()),
    "nobody of the same priority goes": ((gang("a", GPU),), (holder("same", rank=10, gpu=4),), set()),
    "nobody goes for one that never preempts": ((gang("a", GPU, preempts=False),), (holder("low", gpu=4),), set()),
    "nobody goes when it would not be enough": (
        (gang("a", GPU, GPU),),
        (holder("low", gpu=1), holder("same", rank=10, gpu=3)),
        set(),
    ),
    "nobody goes for one that can never fit": ((gang("a", *[GPU] * 5),), (holder("low", gpu=4),), set()),
    "the least important goes": (
        (gang("a", GPU),),
        (holder("low", rank=5, gpu=2), holder("lower", rank=1, gpu=2)),
        {"lower-0"},
    ),
    "of two the younger goes": (
        (gang("a", GPU),),
        (holder("old", since="2020", gpu=2), holder("new", since="2029", gpu=2)),
        {"new-0"},
    ),
    "one that is enough goes before two younger ones": (
        (gang("a", GPU, GPU),),
        (
            holder("large", since="2020", gpu=2),
            holder("small", since="2028", gpu=1),
            holder("little", since="2029", gpu=1),
        ),
        {"large-0"},
    ),
    "one more important stays though it alone would do": (
        (gang("a", GPU, GPU),),
        (holder("large", rank=5, gpu=2), holder("small", gpu=1), holder("little", gpu=1)),
        {"small-0", "little-0"},
    ),
    "no more go than must": (
        (gang("a", *[GPU] * 3),),
        tuple(holder(name, since=since, gpu=1) for name, since in zip("bcde", "1234", strict=True)),
        {"c-0", "d-0", "e-0"},
    ),
    "nobody goes while who is going makes enough room": (
        (gang("a", GPU),),
        (holder("low", gpu=2), holder("gone", gpu=2, leaving=True)),
        set(),
    ),
    "who is going is counted, and others go for the rest": (
        (gang("a", *[GPU] * 3),),
        (holder("low", gpu=2), holder("gone", gpu=2, leaving=True)),
        {"low-0"},
    ),
    "one after the other": (
        (gang("a", GPU, GPU), gang("b", GPU, GPU, rank=9)),
        (holder("low", gpu=2), holder("lower", rank=-1, gpu=2)),
        {"lower-0"},
    ),
    "nobody goes for another member of its own job": ((gang("a", GPU),), (holder("a", gpu=4),), set()),
    "a job that may start smaller takes no more than it needs": (
        (gang("a", *[GPU] * 3, size=1),),
        (holder("low", since="1", gpu=3), holder("new", since="2", gpu=1)),
        {"new-0"},
    ),
}


@pytest.mark.parametrize(("gangs", "holders", "gone"), CASES.values(), ids=CASES)
def test_x14_who_gives_way(gangs, holders, gone):
    assert victims(gangs, holders, gpu=4) == gone


def test_x14_who_waits_for_others_to_go_has_its_node_promised_and_says_so():
    low = holder("low", gpu=4)
    found = place((gang("a", GPU, GPU),), (full(low, gpu=4),), (low,))

    assert found.nominate == {("default", "a-0"): "one", ("default", "a-1"): "one"}
    assert found.victims == {("default", "low-0"): ("default", "a-0")}
    assert waits(found)["a-0"] == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu (2 asked, 0 of 4 free). "
        "preemption: pods of lower priority give way"
    )


NO_WAY = {
    "nobody's going helps": (gang("a", GPU), "preemption: No preemption victims found for incoming pod"),
    "it is not wanted": (gang("a", GPU, preempts=False), "preemption: not eligible due to preemptionPolicy=Never"),
}


@pytest.mark.parametrize(("waiting", "said"), NO_WAY.values(), ids=NO_WAY)
def test_x14_who_is_important_and_waits_is_told_why_nobody_goes(waiting, said):
    low = holder("low", rank=0 if not waiting.preempts else 10, gpu=4)
    found = place((waiting,), (full(low, gpu=4),), (low,))

    assert waits(found)["a-0"].endswith(f"free). {said}")
    assert not found.nominate


def test_x14_what_a_victim_leaves_is_kept_from_those_behind():
    """Its own next try among them: it wants memory alone, which is free, and which the more important one needs too."""
    gone = holder("low", gpu=4, leaving=True)
    room = node(used=amounts(gpu=4, memory="1Gi"), gpu=4, memory="4Gi")
    again = gang("low", amounts(memory="2Gi"), rank=0)
    found = place((gang("a", amounts(gpu=1, memory="3Gi")), again), (room,), (gone,))

    assert not found.bind
    assert set(found.nominate) == {("default", "a-0")}
    assert not found.victims


def test_x14_somebody_more_important_than_both_goes_first():
    gone = holder("low", gpu=1, leaving=True)
    found = place((gang("a", GPU), gang("first", GPU, rank=11)), (full(gone, gpu=1),), (gone,))

    assert set(found.nominate) == {("default", "first-0")}


def test_x14_a_queue_orders_and_stops_nobody():
    """T9k's number is about who goes first within a queue."""
    queued = ask("a", GPU, priority=7, family="a")
    low = holder("low", gpu=1)

    assert not place((queued,), (full(low, gpu=1),), (low,)).victims


def test_x14_holders_are_jobs_and_single_pods():
    spec = {"nodeName": "one", "priority": 3}
    crew = [pod(f"crew-{i}", owner="crew", size=2, index=i, spec={**spec, "priority": i}) for i in range(2)]
    ended = pod("ended", spec=spec, phase="Succeeded")
    going = pod("going", spec=spec, deleting=True)
    errand = pod("errand", spec={"nodeName": "one"})
    errand["metadata"]["labels"]["paceline.dev/errand"] = "flush-worker-0"
    found = holders_of((*crew, ended, going, errand, pod("waits")), below=10)

    assert [(each.pods, each.rank, each.is_leaving) for each in found] == [
        ((("default", "crew-0"), ("default", "crew-1")), 1, False),
        ((("default", "going"),), 3, True),
    ]


def test_x14_where_nobody_is_less_important_nobody_is_looked_at():
    assert holders_of((pod("low", spec={"nodeName": "one"}),), below=0) == ()


SIZES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans()), max_size=6)


@given(SIZES, st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3))
def test_x14_victims_are_less_important_and_needed_and_their_going_lets_the_gang_start(held, wanted):
    holders = tuple(holder(f"h{i}", rank=rank, gpu=gpus, leaving=out) for i, (gpus, rank, out) in enumerate(held))
    gangs = tuple(gang(f"g{i}", *[GPU] * gpus, rank=rank) for i, (gpus, rank) in enumerate(wanted))
    capacity = max(sum(gpus for gpus, _, _ in held), 4)
    found = place(gangs, (full(*holders, gpu=capacity),), holders)

    told = {key: next(each for each in gangs if each.asks[0].key == by) for key, by in found.victims.items()}
    for each in holders:
        if each.pods[0] in told:
            assert not each.is_leaving
            assert each.rank < told[each.pods[0]].rank
    # Once all have gone that are going, whoever was promised a node starts, before anybody who was not.
    left = tuple(each for each in holders if not each.is_leaving and each.pods[0] not in found.victims)
    rest = tuple(each for each in gangs if each.asks[0].key not in found.bind)
    started = {f"{each.name}-0" for each in gangs if each.asks[0].key in found.bind}
    used = holder("started", gpu=sum(len(each.asks) for each in gangs if f"{each.name}-0" in started), rank=99)
    after = place(rest, (full(*left, used, gpu=capacity),), left)
    assert {name for (_, name) in found.nominate} <= set(bound(after))
