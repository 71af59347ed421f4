"""Gangs are placed whole or not at all, and who waits is told why."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.apimachinery.quantity import parse
from paceline.plan.scheduling.gang import place
from paceline.plan.scheduling.node_affinity import NodeRequirements
from paceline.plan.scheduling.resources import NodeResources, PodGroup, PodRequest


def amounts(**words):
    names = {"gpu": "nvidia.com/gpu"}
    return {names.get(name, name): parse(value) for name, value in words.items()}


def ask(name, *pods, selector=None, **more):
    asks = tuple(
        PodRequest(key=("default", f"{name}-{index}"), requests=pod, wishes=NodeRequirements(selector=selector or {}))
        for index, pod in enumerate(pods)
    )
    return PodGroup(name=name, asks=asks, **{"size": len(pods), "present": len(pods), "since": "2030", **more})


def node(name="one", labels=None, used=None, **capacity):
    return NodeResources(node=name, capacity=amounts(**capacity), used=used or {}, labels=labels or {})


LAPTOP = node(cpu=2, memory="8Gi", gpu=2)
GPU = amounts(gpu=1)


def bound(placement):
    return {name: where for (_, name), where in placement.bind.items()}


def waits(placement):
    return {name: said for (_, name), said in placement.waits.items()}


def test_a_gang_that_fits_is_placed():
    assert bound(place((ask("a", GPU, GPU),), (LAPTOP,))) == {"a-0": "one", "a-1": "one"}


def test_a_gang_that_does_not_fit_is_not_placed_in_part():
    """X-13"""
    placement = place((ask("a", GPU, GPU, GPU),), (LAPTOP,))

    assert not placement.bind
    assert set(waits(placement)) == {"a-0", "a-1", "a-2"}


def test_a_gang_waits_until_all_its_pods_exist():
    placement = place((ask("a", GPU, size=2, present=1),), (LAPTOP,))

    assert waits(placement) == {"a-0": "waits for the other members: 1 of 2 pods exist"}


REASONS = {
    "memory is named in binary units": (
        (ask("a", amounts(memory="3Gi"), amounts(memory="1.5Gi")),),
        (node(memory="8Gi", used=amounts(memory="4Gi")),),
        "0/1 nodes are available: 1 Insufficient memory (4.5Gi asked, 4Gi of 8Gi free)",
    ),
    "devices are counted": (
        (ask("a", GPU, GPU),),
        (node(gpu=2, used=amounts(gpu=1)),),
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu (2 asked, 1 of 2 free)",
    ),
    "what can never fit is said so": (
        (ask("a", GPU),),
        (node(memory="8Gi"),),
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu (1 asked, 0 of 0 free); it can never run here",
    ),
    "two things may lack": (
        (ask("a", amounts(memory="2Gi", gpu=1)),),
        (node(memory="1Gi"),),
        (
            "0/1 nodes are available: 1 Insufficient memory (2Gi asked, 1Gi of 1Gi free), "
            "1 Insufficient nvidia.com/gpu (1 asked, 0 of 0 free); it can never run here"
        ),
    ),
    "pods are counted where the node counts them": (
        (ask("a", amounts(pods=1), amounts(pods=1)),),
        (node(pods=1),),
        "0/1 nodes are available: 1 Too many pods (2 asked, 1 of 1 free); it can never run here",
    ),
    "a gang that would fit only if nodes were one is explained by the pod that finds none": (
        (ask("a", amounts(memory="3Gi"), amounts(memory="3Gi")),),
        (node("one", memory="4Gi"), node("two", memory="2Gi")),
        "0/2 nodes are available: 2 Insufficient memory (6Gi asked, 6Gi of 6Gi free); it can never run here",
    ),
    "an over-used node has nothing free, not less": (
        (ask("a", amounts(memory="1Gi")),),
        (node(memory="1Gi", used=amounts(memory="2Gi")),),
        "0/1 nodes are available: 1 Insufficient memory (1Gi asked, 0 of 1Gi free)",
    ),
    "a port of the node that another pod has": (
        (ask("a", {"port 8080/TCP": Decimal(1)}),),
        (node(used={"port 8080/TCP": Decimal(1)}),),
        (
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports "
            "(8080/TCP is taken; leave hostPort out, or choose another)"
        ),
    ),
    "a port of the node that two members ask for": (
        (ask("a", {"port 8080/TCP": Decimal(1)}, {"port 8080/TCP": Decimal(1)}),),
        (node(),),
        (
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports "
            "(8080/TCP is taken; leave hostPort out, or choose another); it can never run here"
        ),
    ),
    "without nodes": ((ask("a", GPU),), (), "no node is ready"),
    "a selector that no node matches": (
        (ask("a", GPU, selector={"disk": "ssd"}),),
        (LAPTOP,),
        "no node has the labels disk=ssd",
    ),
}


@pytest.mark.parametrize(("asks", "rooms", "said"), REASONS.values(), ids=REASONS)
def test_the_reason_to_wait(asks, rooms, said):
    """H-03, X-15"""
    assert waits(place(asks, rooms))["a-0"] == said


def test_cpus_are_shared_with_a_warning():
    placement = place((ask("a", amounts(cpu=4), amounts(cpu="4000m")),), (LAPTOP,))

    assert len(placement.bind) == 2
    assert placement.warn["default", "a-0"] == "8 cpu asked of 2 on one: pods share them"


def test_cpus_that_suffice_warn_nobody():
    assert not place((ask("a", amounts(cpu=1)),), (LAPTOP,)).warn


def test_a_pod_that_asks_for_no_cpu_is_not_warned():
    placement = place((ask("a", amounts(cpu=4), amounts(memory="1Gi")),), (LAPTOP,))

    assert set(placement.warn) == {("default", "a-0")}


def test_cpus_are_not_shared_where_nobody_allows_it():
    """H-03"""
    placement = place((ask("a", amounts(cpu=4)),), (LAPTOP,), shared=frozenset())

    assert waits(placement) == {
        "a-0": "0/1 nodes are available: 1 Insufficient cpu (4 asked, 2 of 2 free); it can never run here"
    }


def test_the_older_gang_goes_first():
    placement = place((ask("new", GPU, GPU, since="2031"), ask("old", GPU, GPU, since="2030")), (LAPTOP,))

    assert set(bound(placement)) == {"old-0", "old-1"}


def test_priority_goes_before_age():
    """X-14"""
    placement = place((ask("new", GPU, GPU, since="2031", priority=5), ask("old", GPU, GPU, since="2030")), (LAPTOP,))

    assert set(bound(placement)) == {"new-0", "new-1"}


def test_a_small_gang_does_not_pass_a_large_one_that_waits_for_the_same():
    room = node(gpu=2, memory="8Gi", used=amounts(gpu=1))
    placement = place((ask("large", GPU, GPU), ask("small", GPU, since="2031")), (room,))

    assert waits(placement)["small-0"] == "waits behind others for nvidia.com/gpu (1 asked)"


def test_a_gang_that_wants_something_else_passes():
    room = node(gpu=2, memory="8Gi", used=amounts(gpu=1))
    placement = place((ask("large", GPU, GPU), ask("small", amounts(memory="1Gi"), since="2031")), (room,))

    assert bound(placement) == {"small-0": "one"}


def test_a_gang_that_can_never_run_stops_nobody():
    placement = place((ask("huge", GPU, GPU, GPU), ask("small", GPU, since="2031")), (LAPTOP,))

    assert bound(placement) == {"small-0": "one"}


def test_a_gang_spreads_over_nodes_when_it_must():
    """X-26"""
    rooms = (node("one", gpu=1), node("two", gpu=1))

    assert bound(place((ask("a", GPU, GPU),), rooms)) == {"a-0": "one", "a-1": "two"}


def test_a_selector_chooses_the_node():
    """X-26"""
    rooms = (node("one", gpu=1), node("two", gpu=1, labels={"disk": "ssd"}))

    assert bound(place((ask("a", GPU, selector={"disk": "ssd"}),), rooms)) == {"a-0": "two"}


PODS = st.builds(lambda gpu, memory: amounts(gpu=gpu, memory=f"{memory}Gi"), st.integers(0, 3), st.integers(0, 4))
GANGS = st.lists(st.tuples(st.lists(PODS, min_size=1, max_size=4), st.integers(0, 2)), max_size=5)
ROOMS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), max_size=3)


@given(GANGS, ROOMS)
def test_nothing_but_cpu_is_ever_promised_twice_and_gangs_are_whole(gangs, nodes):
    asks = tuple(ask(f"g{index}", *pods, priority=priority) for index, (pods, priority) in enumerate(gangs))
    rooms = tuple(node(f"n{index}", gpu=gpu, memory=f"{memory}Gi") for index, (gpu, memory) in enumerate(nodes))
    placement = place(asks, rooms)

    for gang in asks:
        placed = [each for each in gang.asks if each.key in placement.bind]
        waiting = [each for each in gang.asks if each.key in placement.waits]
        assert (len(placed), len(waiting)) in ((len(gang.asks), 0), (0, len(gang.asks)))
    for room in rooms:
        here = [each for gang in asks for each in gang.asks if placement.bind.get(each.key) == room.node]
        for name, capacity in room.capacity.items():
            assert sum((each.requests.get(name, Decimal(0)) for each in here), Decimal(0)) <= capacity


@given(GANGS, ROOMS)
def test_the_first_gang_that_can_run_on_an_empty_cluster_does(gangs, nodes):
    """Nobody starves: whoever is first gets everything that is free."""
    asks = tuple(ask(f"g{index}", *pods) for index, (pods, _) in enumerate(gangs))
    rooms = tuple(node(f"n{index}", gpu=gpu, memory=f"{memory}Gi") for index, (gpu, memory) in enumerate(nodes))
    possible = [gang for gang in asks if place((gang,), rooms).bind]

    if possible:
        assert all(each.key in place(asks, rooms).bind for each in possible[0].asks)


# Four pods of which so many must be placed together, and room for three of them.
FEWEST = {
    "all or none by default": ({"size": 4}, 0),
    "as many as fit where fewer are enough": ({"size": 2}, 3),
    "none where too few fit": ({"size": 4, "placed": 0}, 0),
    "those that join others that run": ({"size": 4, "placed": 1}, 3),
}


@pytest.mark.parametrize(("more", "bound"), FEWEST.values(), ids=FEWEST)
def test_of_four_pods_with_room_for_three_there_are_placed(more, bound):
    found = place((ask("a", GPU, GPU, GPU, GPU, **more),), (node(gpu=3),))

    assert (len(found.bind), len(found.waits)) == (bound, 4 - bound)
    assert all("Insufficient nvidia.com/gpu" in why for why in found.waits.values())


def test_who_may_start_with_fewer_keeps_nothing_from_others():
    elastic = ask("a", *[amounts(memory="2Gi")] * 4, size=1)
    small = ask("b", amounts(memory="1Gi"), since="2031")
    found = place((elastic, small), (node(memory="7Gi"),))

    assert ("default", "b-0") in found.bind
    assert len(found.bind) == 4


def test_a_member_that_comes_back_alone_keeps_its_turn():
    alone = ask("a", amounts(memory="4Gi"), size=1, present=3, placed=2)
    later = ask("b", amounts(memory="1Gi"), since="2031")
    found = place((alone, later), (node(memory="8Gi", used=amounts(memory="6Gi")),))

    assert found.bind == {}
    assert found.waits["default", "b-0"] == "waits behind others for memory (1Gi asked)"
