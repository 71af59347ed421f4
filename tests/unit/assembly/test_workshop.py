"""Builds run beside the agent: one of each at a time, tried again after a while, ended with the agent."""

import asyncio
import os
from contextlib import asynccontextmanager

import pytest

from paceline.assembly.environments import Environments
from paceline.assembly.recipes import Recipes
from paceline.assembly.workshop import FIRST_SECONDS, RealWorkshop
from paceline.node.host import Blocked
from paceline.testing.world import SimClock

SECONDS = 15


class Place:
    """A workshop whose uv is a script of the test's."""

    def __init__(self, folder, script):
        self.folder, self.clock, self.changes = folder, SimClock(), asyncio.Queue()
        program = folder / "bin" / "uv"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n{script}\n')
        program.chmod(0o755)
        place = Environments(cache=folder / "cache", env={"PATH": f"{program.parent}:/usr/bin:/bin"})
        self.workshop = RealWorkshop(place=place, recipes=Recipes(own={"mine": ("six==1",)}), clock=self.clock)
        self.workshop.listen(lambda: self.changes.put_nowait(None))

    def blocked(self, *, may_build=True):
        with pytest.raises(Blocked) as caught:
            self.workshop.open("mine", may_build=may_build)
        return caught.value

    async def changed(self):
        async with asyncio.timeout(SECONDS):
            await self.changes.get()

    def tries(self):
        """How often a virtual environment was asked for."""
        asked = self.folder / "asked"
        return [line for line in asked.read_text().splitlines() if line.startswith("venv")] if asked.exists() else []

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

        folder = place.workshop.open("mine", may_build=True)
        assert folder.name.startswith("mine-1-")
        assert (folder / "paceline.json").exists()
        assert len(place.tries()) == 1


async def test_what_must_not_be_built_is_not(tmp_path):
    async with Place(tmp_path, WORKS).running() as place:
        said = place.blocked(may_build=False)

    assert "paceline image build mine" in str(said)
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
    monkeypatch.setattr("paceline.assembly.environments.find_uv", lambda *_: None)
    async with place.running():
        place.blocked()
        await place.changed()
        assert "uv is not installed" in str(place.blocked())
        for _ in range(5):
            place.clock.advance(FIRST_SECONDS)
            assert place.blocked().reason == "ContainerCreating"
            await place.changed()
