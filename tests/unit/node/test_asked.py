"""A container that is to stop stops, also when the disk cannot take down that it was asked."""

import errno
import os
from pathlib import Path

from paceline.apimachinery.timestamps import to_wire_micro
from paceline.node.lifecycle.killer import StopRequests
from paceline.node.lifecycle.state_files import ASKED, read_try
from paceline.testing.sim.effects import SimFiles, sim_world
from tests.unit.node.pods import NOW, ago, done, running

FOLDER = Path("/agent/pods/u/containers/main/0")
WHO = running().started.identity


class Full(SimFiles):
    """A disk without any room."""

    def overwrite(self, path, data, mode=0o644):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_it_is_on_record_where_there_is_room_and_nowhere_else():
    files, asked = SimFiles(), StopRequests()
    files.make_folder(FOLDER)

    asked.note(files, FOLDER, WHO, now=NOW)

    assert files.exists(FOLDER / ASKED)
    assert asked.recalled({"main": running()})["main"].asked_at is None


def test_d07_the_signal_that_somebody_chose_is_on_record_for_the_shim():
    sim, asked = sim_world(1), StopRequests()
    files = sim.files
    files.make_folder(FOLDER)

    asked.note(files, FOLDER, WHO, now=NOW, number=2)

    assert files.read(FOLDER / ASKED).decode().split() == [to_wire_micro(NOW), "2"]
    assert read_try(files, sim.processes, FOLDER).asked_at == NOW


def test_a_record_that_a_full_disk_left_empty_is_none():
    sim = sim_world(1)
    sim.files.make_folder(FOLDER)
    sim.files.overwrite(FOLDER / ASKED, b"")

    assert read_try(sim.files, sim.processes, FOLDER).asked_at is None


def test_on_a_full_disk_it_is_remembered_until_the_container_has_ended():
    asked = StopRequests()

    asked.note(Full(), FOLDER, WHO, now=NOW)

    assert asked.recalled({"main": running()})["main"].asked_at == NOW
    asked.forget(WHO)
    assert asked.recalled({"main": running()})["main"].asked_at is None


def test_what_is_on_record_counts_more_than_what_is_remembered():
    asked = StopRequests()
    asked.note(Full(), FOLDER, WHO, now=NOW)

    assert asked.recalled({"main": running(asked=7)})["main"].asked_at == ago(7)


def test_nobody_else_is_taken_for_asked():
    asked = StopRequests()

    assert asked.recalled({"main": done(1)}) == {"main": done(1)}
