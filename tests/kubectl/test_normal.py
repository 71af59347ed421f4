"""What is compared: everything but what no two runs have in common."""

from dataclasses import replace

import pytest

from tests.kubectl import recordings
from tests.kubectl.normal import normal
from tests.kubectl.recordings import Said
from tests.kubectl.table import Case

CASE = Case(name="a case", file="none", run="kubectl get pods")

SAME = {
    "ages and the columns after them": (
        "NAME   AGE   NODE\none    5s    <none>\n",
        "NAME   AGE     NODE\none    3m12s   <none>\n",
    ),
    "how often an event came": (
        "LAST SEEN         TYPE\n2s (x3 over 5s)   Normal\n",
        "LAST SEEN           TYPE\n12s (x8 over 51s)   Normal\n",
    ),
    "times": ('at: "2030-01-31T12:00:00Z"\n', 'at: "2031-02-01T00:00:01Z"\n'),
    "revisions": ('  resourceVersion: "12"\n', '  resourceVersion: "9012"\n'),
    "ports": ("at https://127.0.0.1:6443 now\n", "at https://127.0.0.1:50001 now\n"),
}

OTHER = {
    "a status": ("NAME   STATUS    AGE\none    Running   5s\n", "NAME   STATUS    AGE\none    Pending   5s\n"),
    "an amount that looks like an age": ("      cpu:  200m\n", "      cpu:  100m\n"),
    "a line more": ("one\n", "one\ntwo\n"),
    "a missing end of line": ("one\n", "one"),
    "an address that is missing": ("IP:  10.0.0.1\n", "IP:  <none>\n"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_differs_from_run_to_run_is_not_compared(one: str, other: str) -> None:
    assert normal(one, CASE) == normal(other, CASE)


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=OTHER)
def test_what_a_user_would_notice_is_compared(one: str, other: str) -> None:
    assert normal(one, CASE) != normal(other, CASE)


def test_the_name_of_the_node_is_one_word_in_tables_too() -> None:
    ours = normal("NAME   NODE   IP\none    vm     10.0.0.1\n", CASE, node="vm")
    theirs = normal("NAME   NODE     IP\none    node-1   10.88.0.17\n", CASE, node="node-1")

    assert [line.split() for line in ours.splitlines()] == [line.split() for line in theirs.splitlines()]


def test_a_recording_is_read_as_it_was_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    said = [
        (CASE, Said(end="exit 0", out="no newline", err="")),
        (replace(CASE, name="another"), Said(end="exit 1", out="--- a\n+++ b\n\n", err="two\n\nlines\n\n")),
        (replace(CASE, name="the last"), Said(end="stopped", out="", err="words\n")),
    ]

    recordings.write("none", said)

    assert recordings.recordings("none") == {case.name: each for case, each in said}
