"""What is compared: everything but what no two runs have in common."""

from dataclasses import replace

import pytest

from tests.kubectl import recordings
from tests.kubectl.normal import normal, without_sentences
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


SAME_ERROR = {
    "the sentence of a bad request": (
        'Error from server (BadRequest): error when creating "STDIN": json: cannot unmarshal array into Go value\n',
        'Error from server (BadRequest): error when creating "STDIN": the body must be an object\n',
    ),
    "what a cause says beside its path and problem": (
        'The Pod "a" is invalid: \n* spec: Forbidden: no\n@@ -1 +1 @@\n- x\n* spec.a: Invalid value: 1: no\n',
        'The Pod "a" is invalid: \n* spec: Forbidden: immutable\n* spec.a: Invalid value: 1: must be 2\n',
    ),
    "why something is forbidden": (
        'Error from server (Forbidden): pods "a" is forbidden: error looking up service account\n',
        'Error from server (Forbidden): pods "a" is forbidden: no such account\n',
    ),
    "a suggestion": ('Warning: unknown field "a.b"\n', 'Warning: unknown field "a.b", did you mean "c"?\n'),
}
OTHER_ERROR = {
    "the reason": ("Error from server (BadRequest): x\n", "Error from server (Conflict): x\n"),
    "that there is a reason": ("Error from server: x\n", "Error from server (BadRequest): x\n"),
    "the file": (
        'Error from server (BadRequest): error when creating "a": x\n',
        'Error from server (BadRequest): error when creating "b": x\n',
    ),
    "the path of a cause": (
        'The Pod "a" is invalid: spec.x: Invalid value: 1: y\n',
        'The Pod "a" is invalid: spec.y: Invalid value: 1: y\n',
    ),
    "the problem of a cause": (
        'The Pod "a" is invalid: spec.x: Invalid value: 1: y\n',
        'The Pod "a" is invalid: spec.x: Required value\n',
    ),
    "a cause more": (
        'The Pod "a" is invalid: \n* spec.x: Required value\n',
        'The Pod "a" is invalid: \n* spec.x: Required value\n* spec.y: Required value\n',
    ),
    "the cause of a patch": ("The request is invalid: patch: Invalid value: x\n", "The request is invalid: x\n"),
    "an unknown field": (
        'Error from server (BadRequest): strict decoding error: unknown field "a"\n',
        'Error from server (BadRequest): strict decoding error: unknown field "b"\n',
    ),
    "what is not found": (
        'Error from server (NotFound): pods "a" not found\n',
        'Error from server (NotFound): pods "b" not found\n',
    ),
    "a line of kubectl after it": (
        'The Pod "a" is invalid: spec.x: Required value\nerror: one\n',
        'The Pod "a" is invalid: spec.x: Required value\nerror: two\n',
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME_ERROR.values(), ids=SAME_ERROR)
def test_sentences_of_the_server_are_not_compared(one: str, other: str) -> None:
    assert without_sentences(one) == without_sentences(other)


@pytest.mark.parametrize(("one", "other"), OTHER_ERROR.values(), ids=OTHER_ERROR)
def test_reasons_paths_and_problems_are_compared(one: str, other: str) -> None:
    assert without_sentences(one) != without_sentences(other)


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
