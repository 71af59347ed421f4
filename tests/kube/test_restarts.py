"""The controllers are killed at every one of their writes, and started again: every life ends as it would have."""

import asyncio
from dataclasses import replace

import pytest

from paceline.client.http.transport import Transport
from tests.kube.lives import LIVES, Kill, Life, Outcome, differences, lived
from tests.kube.stage import OpenTransport, embedded_transport, run

# Lives that are lived at the same time, each in a namespace of its own.
TOGETHER = 6


async def every(transport: Transport, life: Life, moments: tuple[str, ...]) -> tuple[Outcome, dict[str, Outcome]]:
    """Live a life unbroken, then once for every moment of every write."""
    told = await lived(transport, life)
    limit, ends = asyncio.Semaphore(TOGETHER), {}

    async def once(moment: str, number: int) -> None:
        async with limit:
            ends[f"{moment} write {number}"] = await lived(
                transport, life, Kill(moment=moment, number=number, told=told)
            )

    async with asyncio.TaskGroup() as group:
        for number in range(1, told.writes + 1):
            for moment in moments:
                group.create_task(once(moment, number))
    return told, ends


def check(opens: OpenTransport, life: Life, moments: tuple[str, ...]) -> None:
    async def main() -> tuple[Outcome, dict[str, Outcome]]:
        async with opens() as transport:
            return await every(transport, life, moments)

    told, ends = run(main())
    assert told.writes > 8
    assert {count for _, count in told.made} == {1}
    wrong = [f"{name}: {line}" for name, seen in ends.items() for line in differences(told, seen)]
    assert wrong == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["a gang that comes back", "a job that starts together"])
def test_controllers_may_be_killed_after_every_write(opens: OpenTransport, name: str) -> None:
    check(opens, LIVES[name], ("after",))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", LIVES)
def test_controllers_may_be_killed_before_and_after_every_write(opens: OpenTransport, name: str) -> None:
    check(opens, LIVES[name], ("before", "after"))


@pytest.mark.kube
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", LIVES)
def test_a_life_ends_beside_a_real_server_as_it_does_beside_ours(opens_real: OpenTransport, name: str) -> None:
    """Counted and told in the same words, too."""

    async def main(opens: OpenTransport) -> Outcome:
        async with opens() as transport:
            return await lived(transport, LIVES[name])

    ours, theirs = run(main(embedded_transport)), run(main(opens_real))
    assert replace(ours, writes=0) == replace(theirs, writes=0)
