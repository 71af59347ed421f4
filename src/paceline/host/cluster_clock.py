"""The cluster's clock: it counts the time since boot, so setting the machine's clock changes nothing.

Cluster time is a constant offset plus CLOCK_BOOTTIME. The control process keeps the offset in PACELINE_HOME, so that
the node agent, the shims and every later process of the same boot share one time line (docs/decisions/0024).
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

from paceline.apimachinery.timestamps import from_wire, to_wire_micro
from paceline.effects import Clock, Effects, Executor

log = logging.getLogger(__name__)

# How often progress is recorded: after a reboot with a wrong clock, at most so much time counts twice.
RECORD_SECONDS = 60.0
# A difference between the machine's clock and the cluster's that is logged.
NOTABLE = timedelta(minutes=1)
# A Date header has whole seconds, and the response takes a while to arrive.
EXACTNESS = timedelta(seconds=2)
# The range of a record: nanoseconds of 64 bits end in 2262. Starting at a later time, later ones could not be stored.
FARTHEST, FIRST_YEAR, LAST_YEAR = 2**63, 1970, 2262
_EPOCH = datetime.fromtimestamp(0, UTC)


def uptime() -> int:
    """Return the nanoseconds since this machine booted, sleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterClock:
    """A clock that neither people nor time servers can set while the machine is up."""

    # The machine's own clock, which may jump.
    machine: Clock
    # Cluster time minus uptime, in nanoseconds.
    offset: int
    uptime: Callable[[], int] = uptime

    def now(self) -> datetime:
        return datetime.fromtimestamp((self.uptime() + self.offset) / 1e9, UTC)

    def monotonic(self) -> float:
        return self.machine.monotonic()

    def ahead(self) -> timedelta:
        """Return how far the machine's clock is ahead of the cluster's."""
        return self.machine.now() - self.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRecord:
    """The stored state of the clock: the offset of a boot, and the last recorded time."""

    boot_id: str
    offset: int
    time: datetime

    def to_bytes(self) -> bytes:
        wire = {"bootID": self.boot_id, "offsetNanoseconds": self.offset, "time": to_wire_micro(self.time)}
        return json.dumps(wire).encode() + b"\n"


def read_record(data: bytes) -> ClockRecord:
    """Read a record; ValueError if it is malformed."""
    try:
        wire = json.loads(data)
        record = ClockRecord(
            boot_id=str(wire["bootID"]), offset=int(wire["offsetNanoseconds"]), time=from_wire(str(wire["time"]))
        )
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"malformed: {error}") from error
    if abs(record.offset) > FARTHEST or not FIRST_YEAR <= record.time.year <= LAST_YEAR:
        raise ValueError(f"out of range: {record.time}, offset {record.offset}")
    return record


def continue_clock(machine: Clock, record: ClockRecord | None, boot_id: str, ticks: Callable[[], int]) -> ClusterClock:
    """Return the clock that continues from the record.

    On the same boot the offset stays the same. After a reboot, the time that the machine was off counts if its clock is
    ahead of the record; a clock behind the record is wrong, and time continues from the record.
    """
    if record is not None and record.boot_id == boot_id:
        same = ClusterClock(machine=machine, offset=record.offset, uptime=ticks)
        # After a virtual machine is restored from a snapshot, its uptime is older than the record.
        if same.now() >= record.time:
            return same
    start = machine.now() if record is None else max(machine.now(), record.time)
    return _starting_at(start, machine, ticks)


def start_clock(machine: Clock, date: str, ticks: Callable[[], int] = uptime) -> ClusterClock:
    """Return a clock that starts at the time of another server, given by the Date header of its response.

    If the machine's clock agrees with the header, it is used instead, because it has fractions of a second.
    """
    start = machine.now()
    with contextlib.suppress(ValueError):
        server_time = parsedate_to_datetime(date).astimezone(UTC)
        start = start if abs(start - server_time) <= EXACTNESS else server_time
    return _starting_at(start, machine, ticks)


def _starting_at(start: datetime, machine: Clock, ticks: Callable[[], int]) -> ClusterClock:
    passed = (start - _EPOCH) // timedelta(microseconds=1) * 1000
    return ClusterClock(machine=machine, offset=passed - ticks(), uptime=ticks)


def open_clock(path: Path, world: Effects, ticks: Callable[[], int] = uptime) -> ClusterClock:
    """Return the cluster's clock, continued from its record, or started at the machine's time if there is none."""
    record = None
    try:
        record = read_record(world.files.read(path))
    except FileNotFoundError:
        pass
    except ValueError as error:
        log.warning("the clock's record cannot be read; starting at the machine's time", extra={"error": str(error)})
    return continue_clock(world.clock, record, world.processes.boot_id(), ticks)


@dataclass(slots=True, kw_only=True)
class ClockKeeper:
    """Records the progress of the cluster's clock, and logs when the machine's clock differs from it."""

    path: Path
    clock: ClusterClock
    world: Effects
    blocking: Executor
    _ahead: timedelta = timedelta()

    def record(self) -> None:
        """Write the record; OSError if the disk refuses it."""
        record = ClockRecord(boot_id=self.world.processes.boot_id(), offset=self.clock.offset, time=self.clock.now())
        self.world.files.write(self.path, record.to_bytes())

    async def run(self) -> None:
        while True:
            self._compare()
            await asyncio.sleep(RECORD_SECONDS)
            try:
                await self.blocking.run(self.record)
            except OSError as error:
                log.warning("the clock's record was not written", extra={"error": str(error)})

    def _compare(self) -> None:
        ahead = self.clock.ahead()
        if abs(ahead - self._ahead) < NOTABLE:
            return
        self._ahead = ahead
        seconds = round(ahead.total_seconds())
        if abs(ahead) < NOTABLE:
            log.info("the machine's clock agrees with the cluster's again")
        else:
            log.warning(
                "the machine's clock differs from the cluster's, which is used", extra={"seconds_ahead": seconds}
            )
