"""Errors say who must act: in words for people, in a number for scripts."""

import pytest

from paceline import errors
from paceline.cli.exit_codes import exit_code, messages
from paceline.client.http.transport import Unreached

CODES = {
    errors.Malformed: 2,
    errors.TooLarge: 2,
    errors.Unreadable: 2,
    errors.Unknown: 1,
    errors.Forbidden: 1,
    errors.Missing: 1,
    errors.NotOffered: 1,
    errors.Exists: 1,
    errors.Conflict: 1,
    errors.Expired: 1,
    errors.Unavailable: 1,
    errors.Busy: 3,
    Unreached: 3,
}


@pytest.mark.parametrize(("error", "code"), CODES.items())
def test_exit_codes(error, code):
    assert exit_code(error("told")) == code


def test_every_error_has_an_exit_code():
    assert set(CODES) >= set(errors.BY_REASON.values())


def test_each_fault_is_a_line_with_path_value_and_suggestion():
    faults = (
        errors.Fault("spec.replicas", 0, "must be at least 1"),
        errors.Fault("spec.commands", None, 'unknown field; did you mean "command"?'),
    )
    error = errors.Invalid(faults, what="job.yaml:3: pytorchtrainingjob/a")

    assert exit_code(error) == 2
    assert list(messages(error)) == [
        "job.yaml:3: pytorchtrainingjob/a: spec.replicas: 0 is not allowed; must be at least 1",
        'job.yaml:3: pytorchtrainingjob/a: spec.commands: unknown field; did you mean "command"?',
    ]


def test_a_message_of_several_lines_stays_several_lines():
    assert list(messages(errors.Malformed("one\ntwo"))) == ["one", "two"]


def test_an_error_without_words_gives_its_name():
    assert list(messages(errors.Conflict())) == ["Conflict"]
