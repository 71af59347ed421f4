"""Builds run beside the agent: one of each at a time, tried again after a while, ended with the agent."""

import asyncio
import os
import shutil
from contextlib import asynccontextmanager

import pytest

from paceline.environments.build_queue import FIRST_SECONDS, FRESH_SECONDS, BuildQueue
from paceline.environments.cache import EnvironmentCache
from paceline.environments.specs import EnvironmentSpecs
from paceline.node.host_info import CannotStart
from paceline.testing.sim.effects import SimClock

SECONDS = 15


class Place:
    """A workshop whose uv is a script of the test's."""

    def __init__(self, folder, script, wanted="six==1"):
        self.folder, self.clock, self.changes = folder, SimClock(), asyncio.Queue()
        program = folder / "bin" / "uv"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n{script}\n')
        program.chmod(0o755)
        place = EnvironmentCache(cache=folder / "cache", env={"PATH": "/usr/bin:/bin", "PACELINE_UV": str(program)})
        self.workshop = BuildQueue(cache=place, specs=EnvironmentSpecs(custom={"mine": (wanted,)}), clock=self.clock)
        self.workshop.listen(lambda: self.changes.put_nowait(None))

    def blocked(self, *, policy="IfNotPresent"):
        with pytest.raises(CannotStart) as caught:
            self.workshop.open("mine", policy=policy)
        return caught.value

    async def changed(self):
        async with asyncio.timeout(SECONDS):
            await self.changes.get()

    def tries(self, what="venv"):
        """How often a virtual environment was asked for."""
        asked = self.folder / "asked"
        return [line for line in asked.read_text().splitlines() if what in line] if asked.exists() else []

    async def opened(self, policy):
        """Ask again and again, as the agent does, until there is an answer."""
        while True:
            try:
                return self.workshop.open("mine", policy=policy)
            except CannotStart:
                await self.changed()

    @asynccontextmanager
    async def running(self):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.workshop.run())
            await asyncio.sleep(0)
            yield self
            task.cancel()


FAILS = "echo 'no such thing' >&2; exit 1"
# Makes what uv would make, as far as anybody here looks.
WORKS = 'case "$1" in venv) for last; do :; done; mkdir -p "$last/bin";; esac'


async def test_a_build_that_fails_is_said_with_its_last_words_and_tried_again_later_and_later(tmp_path):
    async with Place(tmp_path, FAILS).running() as place:
        assert place.blocked().reason == "ContainerCreating"
        await place.changed()
        said = place.blocked()
        assert (said.reason, str(said)) == ("ErrImagePull", "environment mine could not be built: no such thing")
        place.clock.advance(FIRST_SECONDS - 1)
        assert place.blocked().reason == "ErrImagePull"
        assert len(place.tries()) == 1

        place.clock.advance(1)
        assert place.blocked().reason == "ContainerCreating"
        await place.changed()
        place.clock.advance(FIRST_SECONDS)
        assert place.blocked().reason == "ErrImagePull"
        assert len(place.tries()) == 2
        place.clock.advance(FIRST_SECONDS)
        assert place.blocked().reason == "ContainerCreating"
        await place.changed()


async def test_many_pods_that_want_the_same_have_it_built_once(tmp_path):
    async with Place(tmp_path, WORKS).running() as place:
        for _ in range(10):
            assert place.blocked().reason == "ContainerCreating"
        await place.changed()

        folder = place.workshop.open("mine", policy="IfNotPresent").folder
        assert folder.name.startswith("mine-1-")
        assert (folder / "paceline.json").exists()
        assert len(place.tries()) == 1


LOOKS = "--dry-run"
# Newer packages are there as soon as a file says so.
RENEWS = f'case "$*" in *--dry-run*) cat "$(dirname "$0")/newer" 2>/dev/null;; *) {WORKS};; esac'


def newer(place, said):
    (place.folder / "bin" / "newer").write_text(said)


async def test_h36_always_has_newer_packages_looked_for_and_takes_them_into_a_build_of_their_own(tmp_path):
    async with Place(tmp_path, f"{RENEWS}; true", wanted="six").running() as place:
        first = await place.opened("IfNotPresent")
        newer(place, "Would uninstall 1 package\n - six==1\n + six==2\n")
        place.clock.advance(FRESH_SECONDS)

        assert await place.opened("IfNotPresent") == first
        assert place.tries(LOOKS) == []
        second = await place.opened("Always")

        assert second.folder.name == f"{first.folder.name}-2"
        # Containers may still run in it.
        assert first.folder.exists()
        assert await place.opened("IfNotPresent") == second
        # One look is enough for all that start together, and a later start looks again.
        assert [await place.opened("Always") for _ in range(3)] == [second] * 3
        assert len(place.tries(LOOKS)) == 1
        newer(place, "Would make no changes\n")
        place.clock.advance(FRESH_SECONDS)
        assert await place.opened("Always") == second
        assert len(place.tries(LOOKS)) == 2


async def test_always_asks_nobody_where_every_version_is_named(tmp_path):
    async with Place(tmp_path, f"{RENEWS}; true", wanted="six==1").running() as place:
        first = await place.opened("Always")
        newer(place, " + six==2\n")
        place.clock.advance(FRESH_SECONDS)

        assert await place.opened("Always") == first
        assert place.tries(LOOKS) == []


async def test_without_an_index_what_was_built_is_used_and_that_is_said(tmp_path):
    script = f'case "$*" in *--dry-run*) echo "no route to the index"; exit 2;; *) {WORKS};; esac'
    async with Place(tmp_path, script, wanted="six").running() as place:
        first = await place.opened("Always")
        assert first.note == ""
        place.clock.advance(FRESH_SECONDS)

        again = await place.opened("Always")

        assert again.folder == first.folder
        assert again.note.startswith("the existing environment is used")
        assert "no route to the index" in again.note


async def test_what_was_removed_is_built_again_at_once(tmp_path):
    async with Place(tmp_path, WORKS).running() as place:
        first = await place.opened("IfNotPresent")
        shutil.rmtree(first.folder)

        assert await place.opened("IfNotPresent") == first
        assert len(place.tries()) == 2


async def test_what_must_not_be_built_is_not(tmp_path):
    async with Place(tmp_path, WORKS).running() as place:
        said = place.blocked(policy="Never")

    assert "paceline env build mine" in str(said)
    assert place.tries() == []


async def test_how_far_a_build_is_can_be_read(tmp_path):
    script = f'case "$1 $2" in "pip install") echo "Downloading six"; cat {tmp_path}/wait;; *) {WORKS};; esac'
    place = Place(tmp_path, script)
    os.mkfifo(tmp_path / "wait")
    async with place.running(), asyncio.timeout(SECONDS):
        # It is said from another thread, to nobody in particular.
        while "Downloading six" not in str(place.blocked()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    # Left while uv was at work: it was ended, and left nothing.
    assert not [each for each in (tmp_path / "cache" / "envs").iterdir() if each.is_dir()]


async def test_no_uv_is_said_and_looked_for_again_soon(tmp_path, monkeypatch):
    place = Place(tmp_path, WORKS)
    monkeypatch.setattr("paceline.environments.cache.find_uv", lambda *_: None)
    async with place.running():
        place.blocked()
        await place.changed()
        assert "uv is not installed" in str(place.blocked())
        for _ in range(5):
            place.clock.advance(FIRST_SECONDS)
            assert place.blocked().reason == "ContainerCreating"
            await place.changed()
