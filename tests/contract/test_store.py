"""One suite, three logs: in memory, in a SQLite file, and the simulated disk."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.store.memory import MemoryLog
from paceline.store.sqlite import SqliteLog
from paceline.testing.contract.store import LogSuite, StoreSuite
from paceline.testing.logs import SimLog


class OneThread:
    """Calls on a thread of their own, as in the product."""

    def __init__(self, executor):
        self._executor = executor

    async def run(self, call):
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)


@pytest.fixture
def blocking():
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield OneThread(executor)


@pytest.fixture(params=["memory", "sqlite", "sim"])
def make_log(request, tmp_path):
    if request.param == "sqlite":
        return lambda: SqliteLog(tmp_path / "objects.db")
    log = MemoryLog() if request.param == "memory" else SimLog()
    return lambda: log


class TestLog(LogSuite):
    pass


class TestStore(StoreSuite):
    pass
