"""What one caller may take of the server, and when its streams end."""

import asyncio

import pytest

from paceline.apiserver.auth import authentication
from paceline.apiserver.fairness import POD_UID, Fairness, FlowLimits
from paceline.apiserver.http_types import Account, Caller
from paceline.apiserver.status_errors import StatusError
from tests.unit.apiserver.client import CONFIG_MAPS, PODS, Following, scope_of
from tests.unit.apiserver.test_tokens import ACCOUNTS, bound_to, make_pod, token_of
from tests.unit.apiserver.test_tokens import client as account_client

client = account_client
ADMIN = Caller(name="admin")
NODE = Caller(name="system:node")


def pod(uid):
    account = Account(namespace="default", name="default", uid="1", extra=((POD_UID, uid),))
    return Caller(name="system:serviceaccount:default:default", account=account)


def small(seconds=0.05):
    return Fairness(
        holder=FlowLimits(requests=2, streams=2),
        pod=FlowLimits(requests=1, streams=1, body_bytes=100_000),
        wait_seconds=seconds,
    )


async def test_a_request_too_many_waits_and_is_then_refused():
    fairness = small()
    await fairness.enter(ADMIN)
    await fairness.enter(ADMIN)

    with pytest.raises(StatusError) as refused:
        await fairness.enter(ADMIN)

    status = refused.value.status
    assert (status.code, status.reason, status.details) == (429, "TooManyRequests", {"retryAfterSeconds": 1})


async def test_whoever_waits_gets_the_seat_of_whoever_leaves():
    fairness = small(seconds=30)
    seats = [await fairness.enter(ADMIN) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(fairness.enter(ADMIN)) for _ in range(2)]
        await asyncio.sleep(0)
        fairness.leave(seats.pop())
        fairness.leave(await waiting[0])
        fairness.leave(await waiting[1])
    fairness.leave(seats.pop())

    assert await fairness.enter(ADMIN) is not None


async def test_more_than_wait_are_refused_at_once():
    fairness = small(seconds=30)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fairness.enter(ADMIN)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(StatusError):
            await fairness.enter(ADMIN)
        for task in tasks:
            task.cancel()


async def test_whoever_goes_while_waiting_takes_no_seat():
    fairness = small(seconds=30)
    seats = [await fairness.enter(ADMIN) for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(fairness.enter(ADMIN))
        await asyncio.sleep(0)
        waiting.cancel()
    for seat in seats:
        fairness.leave(seat)

    assert [await fairness.enter(ADMIN) for _ in range(2)]


async def test_one_pod_does_not_keep_another_waiting():
    fairness = small()
    await fairness.enter(pod("a"))

    assert await fairness.enter(pod("b")) is not None
    with pytest.raises(StatusError):
        await fairness.enter(pod("a"))


async def test_our_own_processes_are_never_kept_waiting():
    fairness = small()
    for _ in range(100):
        assert await fairness.enter(NODE) is None


def test_streams_are_counted_apart():
    fairness = small()
    with fairness.stream(pod("a")), fairness.stream(pod("b")), pytest.raises(StatusError), fairness.stream(pod("a")):
        pass
    with fairness.stream(pod("a")):
        pass


def test_large_bodies_are_counted_by_their_bytes():
    fairness = small()
    with fairness.body(pod("a"), 80_000), fairness.body(pod("a"), 1000):
        with pytest.raises(StatusError), fairness.body(pod("a"), 80_000):
            pass
        with fairness.body(pod("b"), 80_000):
            pass


class Stream:
    """A watch with a token."""

    def __init__(self, client, token, path=CONFIG_MAPS):
        self.following = Following()
        headers = {"authorization": f"Bearer {token}"}
        scope = scope_of("GET", path, query={"watch": "1"}, headers=headers)
        self.run = client.app(scope, self.following.receive, self.following.send)


@pytest.fixture
def quick(monkeypatch):
    """Streams ask very often whether they may go on."""
    monkeypatch.setattr(authentication, "CHECK_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
async def test_a_watch_ends_with_its_account(client):
    stream = Stream(client, await token_of(client))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(stream.run)
        await asyncio.wait((running,), timeout=0.1)
        assert not running.done()
        await client.delete(f"{ACCOUNTS}/default")
        await running

    assert stream.following.code == 200


@pytest.mark.usefixtures("quick")
async def test_a_watch_ends_with_its_pod(client):
    token = await token_of(client, boundObjectRef=bound_to(await make_pod(client)))
    stream = Stream(client, token)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(stream.run)
        await client.delete(f"{PODS}/p", gracePeriodSeconds="0")
        await running


@pytest.mark.usefixtures("quick")
async def test_a_watch_ends_when_its_token_runs_out(client, world):
    stream = Stream(client, await token_of(client, expirationSeconds=600))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(stream.run)
        await asyncio.wait((running,), timeout=0.1)
        assert not running.done()
        world.clock.advance(4000)
        await running


def test_streams_end_within_five_seconds():
    assert authentication.CHECK_SECONDS < 5


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
async def test_health_is_only_read(client, method, path):
    assert (await client.send(method, path)).code == 405
