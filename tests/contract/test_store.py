"""One suite, three logs: in memory, in a SQLite file, and the simulated disk."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from paceline.host.effects import OneThread
from paceline.store.sqlite import SqliteLog
from paceline.testing.contract.store import LogSuite, MakeLog, StoreSuite
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.backend import SimLog


@pytest.fixture
def blocking() -> Iterator[OneThread]:
    with closing(OneThread("store")) as thread:
        yield thread


@pytest.fixture(params=["memory", "sqlite", "sim"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> MakeLog:
    if request.param == "sqlite":
        return lambda: SqliteLog(tmp_path / "objects.db")
    log = MemoryLog() if request.param == "memory" else SimLog()
    return lambda: log


class TestLog(LogSuite):
    pass


class TestStore(StoreSuite):
    pass
