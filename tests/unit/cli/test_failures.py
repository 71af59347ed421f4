"""Errors say who must act: in words for people, in a number for scripts."""

import pytest

from paceline import errors
from paceline.cli.exit_codes import exit_code, messages
from paceline.client.http.transport import Unreachable

CODES = {
    errors.BadRequest: 2,
    errors.TooLarge: 2,
    errors.UnsupportedMediaType: 2,
    errors.Unauthorized: 1,
    errors.Forbidden: 1,
    errors.NotFound: 1,
    errors.MethodNotAllowed: 1,
    errors.AlreadyExists: 1,
    errors.Conflict: 1,
    errors.Expired: 1,
    errors.HostError: 1,
    errors.ServiceUnavailable: 3,
    Unreachable: 3,
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
    assert list(messages(errors.BadRequest("one\ntwo"))) == ["one", "two"]


def test_an_error_without_words_gives_its_name():
    assert list(messages(errors.Conflict())) == ["Conflict"]
