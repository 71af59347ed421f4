"""What a program said last: what it wrote for that, or the end of its log."""

from pathlib import Path

import pytest

from paceline.node.lifecycle.state_files import MESSAGE, read_ended, write_ended
from paceline.node.logs.logs import with_message_from_log
from paceline.testing.sim.effects import SimFiles
from tests.unit.node.pods import container, ended

FOLDER = Path("/agent/0")
HEAD = "2030-01-01T00:00:00.000000000Z stdout F "
FROM_LOG = container(terminationMessagePolicy="FallbackToLogsOnError")


@pytest.fixture
def files():
    files = SimFiles()
    files.make_folder(FOLDER)
    return files


def log(files, *lines):
    files.write(FOLDER / "log", "".join(f"{HEAD}{line}\n" for line in lines).encode())


def said(files, *, spec=FROM_LOG, code=1):
    return with_message_from_log(spec, ended(code), files, FOLDER).message


def test_a_failed_program_that_wants_it_is_quoted_from_its_log(files):
    log(files, "one", "two")

    assert said(files) == "one\ntwo\n"
    assert said(files, code=0) == said(files, spec=container()) == ""


def test_of_a_long_log_the_last_eighty_lines_are_taken(files):
    log(files, *range(600))

    assert said(files) == "".join(f"{number}\n" for number in range(520, 600))


def test_of_long_lines_the_last_two_thousand_bytes_are_taken(files):
    log(files, *("x" * 3000 for _ in range(100)))

    assert said(files) == "x" * 2047 + "\n"


def test_a_log_that_is_not_there_says_nothing(files):
    assert said(files) == ""


def test_of_a_long_message_the_end_is_kept(files):
    write_ended(files, FOLDER, ended(1))
    files.write(FOLDER / MESSAGE, b"a" * 5000 + b"z")

    found = read_ended(files, FOLDER)

    assert found is not None
    assert found.message == "a" * 4095 + "z"
    assert with_message_from_log(FROM_LOG, found, files, FOLDER) == found
