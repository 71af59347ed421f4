"""What is kept is told in the log: every file once, all of them in every run, and never a secret."""

import argparse
import os

import pytest

from paceline.podtools import data_steps
from paceline.podtools.output_tree import Stamp
from paceline.podtools.reporting import Reporter
from paceline.podtools.upload_log import UploadReporter, kept_line


@pytest.fixture
def asked(tmp_path):
    folder = tmp_path / "output"
    folder.mkdir()
    parser = argparse.ArgumentParser()
    parser.set_defaults(secret=None)
    data_steps.add_output_arguments(parser)
    bucket = f"file://{tmp_path}/bucket"
    return parser.parse_args(["--url", bucket, "--from", str(folder), "--prefix", "j/worker-0", "--job", "j-1"])


def write(asked, name, text, second=0):
    (asked.folder / name).write_text(text)
    os.utime(asked.folder / name, (second, second))


def stamp(size=1, mtime=0):
    return Stamp(size=size, mtime_ns=mtime * 10**9, inode=1)


def said(capsys):
    return capsys.readouterr().out.splitlines()


def kept(capsys):
    return [line for line in said(capsys) if line.startswith("kept ")]


def test_a_flush_tells_every_file_with_size_and_time_and_where_they_are(asked, capsys, tmp_path):
    write(asked, "a.bin", "1234", 1_900_000_000)

    concluded = data_steps.run_flush(asked, {}, Reporter())

    place = f"file:///{tmp_path}/bucket/j/worker-0".replace("////", "///")
    assert said(capsys) == [f"results go to {place}", "kept 4 2030-03-17T17:46:40Z a.bin"]
    assert concluded == f"1 file, 4 bytes, is in {place}"


def test_a_running_copy_tells_a_file_once_it_is_kept_and_again_when_it_has_changed(asked, capsys):
    sync = data_steps.start_upload(asked, {}, UploadReporter(Reporter()))
    write(asked, "a", "1")
    sync.upload_changes()
    assert kept(capsys) == []
    sync.upload_changes()
    assert kept(capsys) == ["kept 1 1970-01-01T00:00:00Z a"]
    sync.upload_changes()
    assert kept(capsys) == []
    write(asked, "a", "1, 2", 1)
    sync.upload_changes()
    sync.upload_changes()
    assert kept(capsys) == ["kept 4 1970-01-01T00:00:01Z a"]


def test_what_a_run_has_told_its_last_copy_does_not_repeat_and_the_rest_it_tells(asked, capsys):
    teller = UploadReporter(Reporter())
    sync = data_steps.start_upload(asked, {}, teller)
    write(asked, "early", "1")
    sync.upload_changes()
    sync.upload_changes()
    write(asked, "late", "12")

    data_steps.finish_upload(asked, {}, teller)

    assert kept(capsys) == ["kept 1 1970-01-01T00:00:00Z early", kept_line("late", stamp_of(asked, "late"))]


def stamp_of(asked, name):
    known = (asked.folder / name).stat()
    return Stamp(size=known.st_size, mtime_ns=known.st_mtime_ns, inode=known.st_ino)


def test_what_another_run_kept_is_told_too(asked, capsys):
    write(asked, "a", "1")
    data_steps.run_flush(asked, {}, Reporter())
    (asked.folder / "a").unlink()
    assert len(kept(capsys)) == 1

    data_steps.start_upload(asked, {}, UploadReporter(Reporter()))

    assert kept(capsys) == ["kept 1 1970-01-01T00:00:00Z a"]


def test_trouble_that_is_over_is_not_the_last_word(capsys):
    teller = UploadReporter(Reporter())
    teller.reached("there")
    teller.failed(OSError("no way"))
    teller.failed(OSError("no way"))
    teller.reached("there")
    teller.reached("there")

    assert said(capsys) == ["results go to there", "no way; it is tried again", "results go to there"]


def test_no_secret_is_told_in_the_name_of_a_file_however_it_is_written(capsys):
    UploadReporter(Reporter(secrets=('pass"word',))).report_files([(' of pass"word', stamp()), ('pass"word', stamp())])

    assert kept(capsys) == ['kept 1 1970-01-01T00:00:00Z " of \\u2026"', "kept 1 1970-01-01T00:00:00Z …"]


def test_all_is_told_again_before_a_node_may_have_dropped_the_first_lines(capsys):
    teller = UploadReporter(Reporter(), repeat_bytes=1000)
    teller.reached("there")
    teller.report_files([("first", stamp())])
    for second in range(40):
        teller.report_files([("first", stamp()), ("grows", stamp(mtime=second))])

    lines = said(capsys)

    again = lines.index("results go to there", 1)
    assert lines[again + 1] == "kept 1 1970-01-01T00:00:00Z first"
    assert 1000 < sum(map(len, lines[1:again])) < 1100
    assert lines.count("results go to there") == 2


def test_a_long_list_is_not_told_over_and_over(capsys):
    teller = UploadReporter(Reporter(), repeat_bytes=1000)
    files = [(f"file-{number}", stamp()) for number in range(1000)]
    for _ in range(3):
        teller.report_files(files)

    assert len(kept(capsys)) == 1000


@pytest.mark.parametrize("mtime", [-(2**62), 2**62])
def test_a_file_of_no_time_that_can_be_written_is_told(mtime):
    assert kept_line("a", Stamp(size=1, mtime_ns=mtime * 10**6, inode=1)).endswith("Z a")
