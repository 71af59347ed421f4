"""A container that is to stop stops, also when the disk cannot take down that it was requests."""

import errno
import os
from pathlib import Path

from paceline.apimachinery.timestamps import to_wire_micro
from paceline.node.lifecycle.killer import StopRequests
from paceline.node.lifecycle.state_files import read_attempt
from paceline.node.runtime.shim import STOP_REQUEST
from paceline.testing.sim.effects import SimFiles, sim_world
from tests.unit.node.pods import NOW, ago, done, running

FOLDER = Path("/agent/pods/u/containers/main/0")
WHO = running().started.identity


class Full(SimFiles):
    """A disk without any room."""

    def overwrite(self, path, data, mode=0o644):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_it_is_on_record_where_there_is_room_and_nowhere_else():
    files, requests = SimFiles(), StopRequests()
    files.make_folder(FOLDER)

    requests.record(files, FOLDER, WHO, now=NOW)

    assert files.exists(FOLDER / STOP_REQUEST)
    assert requests.add_to({"main": running()})["main"].stop_requested_at is None


def test_d07_the_signal_that_somebody_chose_is_on_record_for_the_shim():
    sim, requests = sim_world(1), StopRequests()
    files = sim.files
    files.make_folder(FOLDER)

    requests.record(files, FOLDER, WHO, now=NOW, number=2)

    assert files.read(FOLDER / STOP_REQUEST).decode().split() == [to_wire_micro(NOW), "2"]
    assert read_attempt(files, sim.processes, FOLDER).stop_requested_at == NOW


def test_a_record_that_a_full_disk_left_empty_is_none():
    sim = sim_world(1)
    sim.files.make_folder(FOLDER)
    sim.files.overwrite(FOLDER / STOP_REQUEST, b"")

    assert read_attempt(sim.files, sim.processes, FOLDER).stop_requested_at is None


def test_on_a_full_disk_it_is_remembered_until_the_container_has_ended():
    requests = StopRequests()

    requests.record(Full(), FOLDER, WHO, now=NOW)

    assert requests.add_to({"main": running()})["main"].stop_requested_at == NOW
    requests.forget(WHO)
    assert requests.add_to({"main": running()})["main"].stop_requested_at is None


def test_what_is_on_record_counts_more_than_what_is_remembered():
    requests = StopRequests()
    requests.record(Full(), FOLDER, WHO, now=NOW)

    assert requests.add_to({"main": running(asked=7)})["main"].stop_requested_at == ago(7)


def test_nobody_else_is_taken_for_asked():
    requests = StopRequests()

    assert requests.add_to({"main": done(1)}) == {"main": done(1)}
