"""What a gone object owned goes too, whatever kind either of them is."""

import pytest

from paceline.apimachinery.meta import key_of
from paceline.client.interface import CONFIG_MAPS, CRDS, NODES, PODS, Collection
from tests.unit.controllers.owning import LAMPS, ROOMS, refers_to, run_beside


@pytest.fixture
def with_place():
    return run_beside


def test_what_a_gone_object_owned_goes_with_it_through_all_generations(with_place):
    async def use(place):
        first = await place.make("first")
        second = await place.make("second", refers_to(first))
        await place.make("third", refers_to(second))
        await place.make("free")

        await place.delete(first)

        assert await place.there("first", "second", "third", "free") == ["free"]

    with_place(use)


def test_an_object_with_several_owners_goes_with_the_last_of_them(with_place):
    async def use(place):
        one, two = await place.make("one"), await place.make("two")
        await place.make("owned", refers_to(one), refers_to(two))

        await place.delete(one)

        assert await place.there("owned") == ["owned"]
        kept = (await place.find("owned"))["metadata"]["ownerReferences"]
        assert [each["uid"] for each in kept] == [two["metadata"]["uid"]]
        await place.delete(two)
        assert await place.there("owned") == []

    with_place(use)


@pytest.mark.parametrize("other", [{"uid": "somebody-else"}, {"name": "nobody"}, {"kind": "Secret"}])
def test_an_owner_that_is_not_the_one_that_was_meant_counts_as_gone(with_place, other):
    async def use(place):
        owner = await place.make("owner")
        await place.make("owned", refers_to(owner) | other)

        assert await place.there("owner", "owned") == ["owner"]

    with_place(use)


def test_what_names_an_owner_of_an_unknown_kind_stays_until_the_kind_is_known(with_place):
    async def use(place):
        lamp = {"apiVersion": "home.example.com/v1", "kind": "Lamp", "metadata": {"name": "lamp", "uid": "gone"}}
        await place.make("owned", refers_to(lamp))
        assert await place.there("owned") == ["owned"]

        await place.define(LAMPS, "Lamp")

        assert await place.there("owned") == []

    with_place(use)


def test_objects_of_a_kind_that_somebody_defines_own_and_are_owned(with_place):
    async def use(place):
        await place.define(LAMPS, "Lamp")
        await place.define(ROOMS, "Room")
        room = await place.make("room", where=ROOMS, kind="Room")
        lamp = await place.make("lamp", refers_to(room), where=LAMPS, kind="Lamp")
        await place.make("bulb", refers_to(lamp), where=PODS, kind="Pod")
        await place.settle()

        await place.delete(room, where=ROOMS)

        assert await place.there("lamp", where=LAMPS) == []
        assert await place.there("bulb", where=PODS) == []

    with_place(use)


def test_an_owner_may_be_named_in_any_version_that_is_served(with_place):
    async def use(place):
        await place.define(LAMPS, "Lamp", versions=("v1", "v1beta1"))
        lamp = await place.make("lamp", where=LAMPS, kind="Lamp")
        await place.make("owned", refers_to(lamp, apiVersion="home.example.com/v1beta1"))
        assert await place.there("owned") == ["owned"]

        await place.delete(lamp, where=LAMPS)

        assert await place.there("owned") == []

    with_place(use)


def test_what_the_objects_of_a_definition_owned_goes_with_the_definition(with_place):
    async def use(place):
        await place.define(LAMPS, "Lamp")
        lamp = await place.make("lamp", where=LAMPS, kind="Lamp")
        await place.make("owned", refers_to(lamp))
        await place.settle()

        await place.cluster.delete(CRDS, ("", "lamps.home.example.com"))

        assert await place.there("owned") == []
        assert await place.there("lamps.home.example.com", where=CRDS) == []

    with_place(use)


def test_a_kind_that_comes_again_is_followed_again(with_place):
    async def use(place):
        for _ in range(2):
            await place.define(LAMPS, "Lamp")
            lamp = await place.make("lamp", where=LAMPS, kind="Lamp")
            await place.make("owned", refers_to(lamp))
            await place.settle()
            await place.delete(lamp, where=LAMPS)
            assert await place.there("owned") == []
            await place.cluster.delete(CRDS, ("", "lamps.home.example.com"))
            await place.settle()

    with_place(use)


def test_in_the_foreground_what_blocks_goes_first(with_place):
    async def use(place):
        owner = await place.make("owner")
        await place.make("held", refers_to(owner), finalizers=["test.example.com/hold"])
        await place.make("quick", refers_to(owner))

        await place.delete(owner, "Foreground")

        assert await place.there("owner", "held", "quick") == ["owner", "held"]
        await place.cluster.patch(CONFIG_MAPS, ("default", "held"), {"metadata": {"finalizers": None}})
        assert await place.there("owner", "held") == []

    with_place(use)


def test_in_the_foreground_what_does_not_block_is_not_waited_for(with_place):
    async def use(place):
        owner = await place.make("owner")
        await place.make("held", refers_to(owner, blocks=False), finalizers=["test.example.com/hold"])

        await place.delete(owner, "Foreground")

        assert await place.there("owner", "held") == ["held"]
        assert (await place.find("held"))["metadata"]["deletionTimestamp"]

    with_place(use)


def test_in_the_foreground_whole_generations_go_from_the_last_to_the_first(with_place):
    async def use(place):
        first = await place.make("first")
        second = await place.make("second", refers_to(first))
        third = await place.make("third", refers_to(second), finalizers=["test.example.com/hold"])

        await place.delete(first, "Foreground")

        assert await place.there("first", "second", "third") == ["first", "second", "third"]
        await place.cluster.patch(CONFIG_MAPS, ("default", third["metadata"]["name"]), {"metadata": {"finalizers": []}})
        assert await place.there("first", "second", "third") == []

    with_place(use)


def test_an_owner_in_the_foreground_takes_along_nothing_that_another_still_owns(with_place):
    async def use(place):
        going, staying = await place.make("going"), await place.make("staying")
        await place.make("owned", refers_to(going), refers_to(staying))

        await place.delete(going, "Foreground")

        assert await place.there("going", "staying", "owned") == ["staying", "owned"]

    with_place(use)


def test_orphans_stay_and_name_no_owner_any_more(with_place):
    async def use(place):
        await place.define(LAMPS, "Lamp")
        lamp = await place.make("lamp", where=LAMPS, kind="Lamp")
        other = await place.make("other")
        await place.make("owned", refers_to(lamp), refers_to(other))
        await place.make("service", refers_to(lamp))
        await place.settle()

        await place.delete(lamp, "Orphan", where=LAMPS)

        assert await place.there("lamp", where=LAMPS) == []
        assert await place.there("owned", "service") == ["owned", "service"]
        assert not (await place.find("service"))["metadata"].get("ownerReferences")
        left = (await place.find("owned"))["metadata"]["ownerReferences"]
        assert [each["name"] for each in left] == ["other"]

    with_place(use)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_circle_goes_as_a_whole(with_place, policy, length):
    async def use(place):
        names = [f"link-{number}" for number in range(length)]
        links = [await place.make(name) for name in names]
        for number, link in enumerate(links):
            owner = refers_to(links[number - 1])
            await place.cluster.patch(CONFIG_MAPS, key_of(link), {"metadata": {"ownerReferences": [owner]}})
        assert await place.there(*names) == names

        await place.delete(links[0], policy)

        assert await place.there(*names) == []

    with_place(use)


def test_an_owner_in_another_namespace_owns_nothing_and_somebody_says_so(with_place):
    async def use(place):
        owner = await place.make("owner", namespace="other")
        await place.make("owned", refers_to(owner))

        assert await place.there("owned") == []
        uid = owner["metadata"]["uid"]
        meant = f"[v1/ConfigMap, namespace: default, name: owner, uid: {uid}]"
        said = f'ownerRef {meant} does not exist in namespace "default"'
        assert await place.warnings() == [("OwnerRefInvalidNamespace", said)]
        assert await place.find("owner", namespace="other")

    with_place(use)


def test_what_is_in_no_namespace_is_not_owned_by_what_is_in_one(with_place):
    async def use(place):
        owner = await place.make("owner")
        await place.make("node", refers_to(owner), where=NODES, kind="Node")

        await place.delete(owner)

        assert await place.there("node", where=NODES) == ["node"]
        assert {reason for reason, _ in await place.warnings()} == {"OwnerRefInvalidNamespace"}

    with_place(use)


def test_two_kinds_of_the_same_plural_are_told_apart(with_place):
    async def use(place):
        toys = Collection(group="toys.example.com", version="v1", plural="services")
        await place.define(toys, "Service")
        toy = await place.make("same", where=toys, kind="Service")
        await place.make("owned", refers_to(toy))
        await place.settle()

        await place.delete(toy, where=toys)

        assert await place.there("owned") == []

    with_place(use)


def test_what_names_an_owner_that_went_with_its_kind_goes_too(with_place):
    async def use(place):
        await place.define(LAMPS, "Lamp")
        lamp = await place.make("lamp", where=LAMPS, kind="Lamp")
        await place.settle()
        await place.cluster.delete(CRDS, ("", "lamps.home.example.com"))
        await place.settle()

        await place.make("late", refers_to(lamp))

        assert await place.there("late") == []

    with_place(use)
