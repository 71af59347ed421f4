"""The cluster's clock goes on evenly, whoever sets the machine's clock, and through restarts and reboots."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paceline.host.clock import RealClock
from paceline.host.cluster_clock import RECORD_SECONDS, ClockKeeper, ClusterClock, open_clock, start_clock, uptime
from paceline.testing.sim.effects import START, SimBlocking, SimWorld, sim_world
from paceline.testing.sim.loop import run_simulated

PLACE = Path("/home/clock.json")
JUMPS = {
    "2 hours ahead": timedelta(hours=2),
    "2 hours behind": timedelta(hours=-2),
    "2 days ahead": timedelta(days=2),
    "2 days behind": timedelta(days=-2),
    "40 days ahead": timedelta(days=40),
    "10 years ahead": timedelta(days=3653),
}


@pytest.fixture
def sim() -> SimWorld:
    made = sim_world()
    made.files.make_folder(PLACE.parent)
    return made


def opened(sim: SimWorld) -> ClusterClock:
    return open_clock(PLACE, sim.world(), lambda: round(sim.clock.monotonic() * 1e9))


def keeper(sim: SimWorld, clock: ClusterClock) -> ClockKeeper:
    return ClockKeeper(path=PLACE, clock=clock, world=sim.world(), blocking=SimBlocking())


def passed(clock: ClusterClock) -> float:
    return (clock.now() - START).total_seconds()


def test_a_new_cluster_starts_at_the_machines_time(sim: SimWorld) -> None:
    assert opened(sim).now() == START


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_setting_the_machines_clock_changes_nothing(sim: SimWorld, jump: timedelta) -> None:
    clock = opened(sim)
    sim.clock.advance(10)
    sim.clock.jump(jump.total_seconds())
    sim.clock.advance(5)

    assert passed(clock) == 15
    assert clock.ahead() == jump


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_process_that_starts_while_the_clock_is_wrong_has_the_same_time(sim: SimWorld, jump: timedelta) -> None:
    before = opened(sim)
    keeper(sim, before).record()
    sim.clock.advance(10)
    sim.clock.jump(jump.total_seconds())
    sim.clock.advance(1000)
    during = opened(sim)
    sim.clock.jump(-jump.total_seconds())

    assert before.now() == during.now() == opened(sim).now() == START + timedelta(seconds=1010)


def test_after_a_reboot_the_time_off_counts(sim: SimWorld) -> None:
    keeper(sim, opened(sim)).record()
    sim.processes.reboot()
    sim.clock.jump(3600)

    assert passed(opened(sim)) == 3600


def test_after_a_reboot_with_a_clock_that_lost_its_time_the_record_counts(sim: SimWorld) -> None:
    clock = opened(sim)
    sim.clock.advance(500)
    keeper(sim, clock).record()
    sim.processes.reboot()
    sim.clock.jump(-timedelta(days=3000).total_seconds())

    assert passed(opened(sim)) == 500


def test_a_machine_that_is_brought_back_from_a_snapshot_does_not_go_back_in_time(sim: SimWorld) -> None:
    sim.clock.advance(500)
    keeper(sim, opened(sim)).record()
    sim.clock.advance(-400)

    assert passed(opened(sim)) == 500


def record_of(offset: str, time: str) -> bytes:
    return f'{{"bootID": "a", "offsetNanoseconds": {offset}, "time": "{time}"}}'.encode()


DAMAGED = {
    "empty": b"",
    "half": b"{",
    "a list": b"[]",
    "without fields": b"{}",
    "a time that is none": record_of("1", "x"),
    "an offset without end": record_of("Infinity", "2026-01-01T00:00:00.000000Z"),
    "an offset that leads beyond all times": record_of("9" * 30, "2026-01-01T00:00:00.000000Z"),
    "a time after which there is none": record_of("1", "9999-12-31T23:59:59.000000Z"),
    "nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_starts_the_time_anew(sim: SimWorld, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    sim.files.write(PLACE, text)

    assert opened(sim).now() == START
    assert "cannot be read" in caplog.text


def test_a_record_is_written_for_people_too(sim: SimWorld) -> None:
    keeper(sim, opened(sim)).record()
    shown = json.loads(sim.files.read(PLACE))

    assert shown["time"] == "2030-01-01T00:00:00.000000Z"
    assert shown["bootID"] == sim.processes.boot_id()


def test_progress_is_recorded_and_a_clock_that_leaves_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sim = sim_world(follows_loop=True)
    sim.files.make_folder(PLACE.parent)

    async def main() -> None:
        keeping = asyncio.get_running_loop().create_task(keeper(sim, opened(sim)).run())
        await asyncio.sleep(1)
        assert "differs" not in caplog.text
        sim.clock.jump(7200)
        await asyncio.sleep(3 * RECORD_SECONDS)
        sim.processes.reboot()
        sim.clock.jump(-7200 - 1000)
        assert passed(opened(sim)) == 3 * RECORD_SECONDS
        await asyncio.sleep(2 * RECORD_SECONDS)
        sim.clock.jump(1000)
        await asyncio.sleep(2 * RECORD_SECONDS)
        keeping.cancel()

    run_simulated(1, main())
    told = [record for record in caplog.records if "differs" in record.message]
    assert [vars(record)["seconds_ahead"] for record in told] == [7200, -1000]
    assert "agrees with the cluster's again" in caplog.text


def test_a_full_disk_keeps_the_progress_from_the_record_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    # No folder, no file.
    sim = sim_world(follows_loop=True)

    async def main() -> None:
        clock = opened(sim)
        keeping = asyncio.get_running_loop().create_task(keeper(sim, clock).run())
        await asyncio.sleep(2 * RECORD_SECONDS + 1)
        assert not keeping.done()
        keeping.cancel()

    run_simulated(1, main())
    assert "was not written" in caplog.text


def test_beside_another_cluster_the_servers_time_counts(sim: SimWorld) -> None:
    """Its server stamps the objects, and the clock of the controller's machine may be wrong."""
    sim.clock.jump(7200)
    clock = start_clock(sim.clock, "Tue, 01 Jan 2030 00:00:00 GMT", lambda: 0)

    assert clock.now() == START


@pytest.mark.parametrize("date", ["Mon, 31 Dec 2029 23:59:59 GMT", "", "yesterday"])
def test_beside_a_server_that_agrees_or_says_nothing_the_machines_time_counts(sim: SimWorld, date: str) -> None:
    sim.clock.advance(0.75)

    assert start_clock(sim.clock, date, lambda: 0).now() == START + timedelta(seconds=0.75)


def test_the_real_clock_counts_the_time_since_boot() -> None:
    real = RealClock()
    clock = ClusterClock(machine=real, offset=-uptime())

    assert timedelta() <= clock.now() - datetime.fromtimestamp(0, UTC) < timedelta(minutes=1)
    assert clock.monotonic() <= real.monotonic()
