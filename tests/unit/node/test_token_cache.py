"""Pods have a token that is good, from before they start until they are gone."""

import asyncio
from datetime import timedelta

import pytest

from paceline.apimachinery.meta import uid_of
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Server
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import ACCOUNTS, NAMESPACES, PODS
from paceline.node.volumes.references import TokenCache, token_keys
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, SimClock, sim_world

SOURCE = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
API = ("", 3607)


@pytest.fixture
def sim():
    return sim_world()


@pytest.fixture
async def cluster(sim):
    store = Store(MemoryLog(), SimBlocking())
    await store.open()
    kinds = fixed_kinds(store)
    tokens = AccountTokens(key=b"key", store=store, scheme=lambda: kinds.scheme, clock=sim.clock)
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}), account=tokens.caller)
    server = Server(store=store, kinds=kinds, clock=sim.clock, ids=sim.ids, gate=gate, nodes=None, tokens=tokens)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        async with LocalCluster(make_app(server), token="secret") as cluster:
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
            yield cluster
        writing.cancel()
        await store.close()


async def make_account(cluster):
    await cluster.create(
        ACCOUNTS,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}},
    )


async def make_pod(cluster, *sources):
    spec = {
        "containers": [{"name": "main", "image": "x"}],
        "volumes": [{"name": "v", "projected": {"sources": list(sources)}}],
    }
    metadata = {"name": "p", "namespace": "default"}
    return await cluster.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def test_a_token_is_asked_for_once_and_anew_before_it_runs_out(cluster, sim):
    await make_account(cluster)
    pod, tokens = await make_pod(cluster, SOURCE), TokenCache(cluster=cluster, clock=sim.clock)
    first = (await tokens.of(pod))[API]
    sim.clock.advance(2880)
    assert (await tokens.of(pod))[API] == first
    sim.clock.advance(10)

    assert (await tokens.of(pod))[API] != first


@pytest.mark.parametrize("hours", [-48, -2, 2, 48])
async def test_a_server_whose_clock_differs_has_no_say_in_when_a_token_is_renewed(cluster, sim, hours):
    await make_account(cluster)
    own = SimClock()
    pod, tokens = await make_pod(cluster, SOURCE), TokenCache(cluster=cluster, clock=own)
    sim.clock.jump(hours * 3600)
    first = (await tokens.of(pod))[API]
    own.advance(2880)
    assert (await tokens.of(pod))[API] == first
    own.advance(10)

    assert (await tokens.of(pod))[API] != first


async def test_a_token_that_would_last_long_is_renewed_every_day(cluster, sim):
    await make_account(cluster)
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 10 * 24 * 3600}}
    pod, tokens = await make_pod(cluster, source), TokenCache(cluster=cluster, clock=sim.clock)
    first = await tokens.of(pod)
    sim.clock.advance(timedelta(hours=24, seconds=1).total_seconds())

    assert await tokens.of(pod) != first


async def test_every_audience_has_its_own(cluster, sim):
    await make_account(cluster)
    vault = {"serviceAccountToken": {"path": "vault", "audience": "vault"}}
    pod, tokens = await make_pod(cluster, SOURCE, vault), TokenCache(cluster=cluster, clock=sim.clock)

    assert list(token_keys(pod)) == [API, ("vault", 3600)]
    assert len(set((await tokens.of(pod)).values())) == 2


async def test_without_its_account_a_pod_has_none_and_with_it_it_has(cluster, sim):
    pod, tokens = await make_pod(cluster, SOURCE), TokenCache(cluster=cluster, clock=sim.clock)
    assert await tokens.of(pod) == {}
    await make_account(cluster)

    assert API in await tokens.of(pod)


async def test_a_pod_that_is_gone_has_none(cluster, sim):
    await make_account(cluster)
    pod, tokens = await make_pod(cluster, SOURCE), TokenCache(cluster=cluster, clock=sim.clock)
    await tokens.of(pod)
    await cluster.delete(PODS, ("default", "p"), {"gracePeriodSeconds": 0})
    assert await tokens.of(pod) != {}, "nobody has told yet"
    tokens.retain(())

    assert await tokens.of(pod) == {}


async def test_the_token_of_another_pod_is_kept(cluster, sim):
    await make_account(cluster)
    pod, tokens = await make_pod(cluster, SOURCE), TokenCache(cluster=cluster, clock=sim.clock)
    first = await tokens.of(pod)
    tokens.retain((uid_of(pod),))

    assert await tokens.of(pod) == first
