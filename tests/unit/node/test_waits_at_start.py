"""What a pod waits for before its containers start: objects, a token and a network, all at the same time."""

import asyncio
from ipaddress import IPv4Network

import pytest

from paceline.client.interface import CONFIG_MAPS
from paceline.errors import ServiceUnavailable
from paceline.node.host_info import CannotStart
from paceline.node.network.network import PodNetwork

SOURCES = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "settings"}}]
SPEC = {
    "volumes": [{"name": "access", "projected": {"sources": SOURCES}}],
    "container": {"volumeMounts": [{"name": "access", "mountPath": "/access"}]},
}
SUBNET = PodNetwork(subnet=IPv4Network("10.7.0.0/18"))


class Networks:
    """Networks that can be created once `begin` returns."""

    def __init__(self, begin):
        self._begin = begin
        self.uids = set()

    async def make(self, uid, address):
        if uid not in self.uids:
            await self._begin()
        self.uids.add(uid)
        return f"/networks/{address}"

    async def remove(self, uid):
        self.uids.discard(uid)

    def pod_uids(self):
        return frozenset(self.uids)


class Requests:
    """A cluster that answers for ConfigMaps and tokens once `begin` returns."""

    def __init__(self, cluster, begin):
        self._cluster = cluster
        self._begin = begin

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def get(self, collection, namespace, name):
        if collection == CONFIG_MAPS:
            await self._begin()
            return {"kind": "ConfigMap", "data": {"rate": "3"}}
        return await self._cluster.get(collection, namespace, name)

    async def post(self, path, body):
        assert path.endswith("/token")
        await self._begin()
        return {"spec": {"expirationSeconds": 3600}, "status": {"token": "secret"}}


def connected(place, *, make, answer):
    """Let the node's pods have networks of their own, and say what happens before one is made or a request answered."""
    networks = Networks(make)
    place.cluster = Requests(place.cluster, answer)
    place.options = {"network": SUBNET, "networks": networks}
    return networks


async def at_once():
    """Let everything begin without a wait."""


def test_objects_token_and_network_are_asked_for_at_the_same_time(play):
    async def story(place):
        # Each of them waits until the two others have begun.
        begun = asyncio.Barrier(3)
        networks = connected(place, make=begun.wait, answer=begun.wait)
        async with place.agent():
            pod = await place.create(**SPEC)
            await place.phase("Running")
            (intent,) = place.sim.processes.running().values()
        assert networks.uids == {pod["metadata"]["uid"]}
        assert intent["network"].startswith("/networks/10.7.")

    async def briefly(place):
        async with asyncio.timeout(60):
            await story(place)

    play(briefly)


@pytest.mark.parametrize("reason", ["AddressInUse", "FailedCreatePodSandBox"])
def test_a_network_that_cannot_be_made_keeps_the_pod_waiting_and_is_tried_again(play, reason):
    async def story(place):
        problems = [CannotStart(reason, "not now")] * 4

        async def make():
            if problems:
                raise problems.pop()

        connected(place, make=make, answer=at_once)
        async with place.agent():
            await place.create(**SPEC)
            assert await place.waits(reason) == "not now"
            await place.phase("Running")

    play(story)


def test_a_request_that_fails_is_repeated_and_the_pod_starts(play):
    async def story(place):
        errors = [ServiceUnavailable("busy"), ServiceUnavailable("busy")]

        async def answer():
            if errors:
                raise errors.pop()

        connected(place, make=at_once, answer=answer)
        async with place.agent():
            await place.create(**SPEC)
            await place.phase("Running")
        assert errors == []

    play(story)


def test_a_pod_that_goes_before_it_starts_leaves_no_network(play):
    async def story(place):
        networks = connected(place, make=at_once, answer=at_once)
        place.sandbox = None
        async with place.agent():
            await place.create(**SPEC)
            await place.waits("SandboxMissing")
            assert networks.uids
            await place.delete(grace=0)
            await place.gone()
            await asyncio.sleep(1)
        assert networks.uids == set()

    play(story)
