"""A runner that holds calls back until a test lets them go."""

import asyncio

import pytest


class Gate:
    """Holds every call until the gate is open."""

    def __init__(self):
        self.opened = asyncio.Event()
        self.opened.set()
        self._arrived = asyncio.Semaphore(0)

    async def run(self, call):
        self._arrived.release()
        # Bounded, so that a test that fails with the gate shut still ends.
        async with asyncio.timeout(30):
            await self.opened.wait()
        return call()

    async def arrivals(self, count):
        """Wait until as many more calls have arrived."""
        async with asyncio.timeout(30):
            for _ in range(count):
                await self._arrived.acquire()


@pytest.fixture
def gate():
    return Gate()
