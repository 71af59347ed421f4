"""Values reach the command to the digit, as flags or as environment, under the names that it knows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.kinds.spec.hyperparameters import (
    Hyperparameters,
    check_hyperparameters,
    flags_of,
    text_of,
    variables_of,
    with_flags,
)
from tests.unit.kinds.manifests import container_of, env_of, generic, pytorch, replica, template

EXACT = {
    0.1: "0.1",
    0.001: "0.001",
    1e-5: "1e-05",
    "1e-5": "1e-5",
    "007": "007",
    True: "true",
    False: "false",
    20: "20",
    2**63 - 1: "9223372036854775807",
    -0.5: "-0.5",
    "a b": "a b",
}


@pytest.mark.parametrize(("value", "text"), EXACT.items(), ids=[f"{type(each).__name__} {each}" for each in EXACT])
def test_h40_a_value_is_passed_on_to_the_digit(value, text):
    given_values = Hyperparameters(values={"x": value})

    assert flags_of(given_values) == (f"--x={text}",)
    assert variables_of(given_values) == {"X": text}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_digit_of_a_number_is_lost(number):
    assert float(text_of(number)) == number
    assert math.copysign(1, float(text_of(number))) == math.copysign(1, number)


@pytest.mark.parametrize("value", [None, ""], ids=["nothing", "no text"])
def test_what_has_no_value_is_not_passed_on(value):
    assert flags_of(Hyperparameters(values={"x": value})) == ()


def test_zero_is_a_value():
    assert flags_of(Hyperparameters(values={"dropout": 0})) == ("--dropout=0",)


@pytest.mark.parametrize(
    ("name", "words"),
    [("--learning_rate", ("--learning_rate=0.1",)), ("-l", ("-l", "0.1")), ("optimizer.lr", ("optimizer.lr=0.1",))],
    ids=["a long flag", "a short flag", "a word as Hydra reads it"],
)
def test_the_command_is_spoken_to_in_its_own_words(name, words):
    assert flags_of(Hyperparameters(values={"lr": 0.1}, names={"lr": name})) == words


def test_words_are_in_the_order_of_their_names():
    assert flags_of(Hyperparameters(values={"b": 1, "a": 2})) == ("--a=2", "--b=1")


COMMANDS = {
    "a command": ({"command": ["python", "t.py"]}, {"command": ["python", "t.py"], "args": ["--x=1"]}),
    "a command with arguments": (
        {"command": ["python"], "args": ["t.py"]},
        {"command": ["python"], "args": ["t.py", "--x=1"]},
    ),
    "the image's own command": ({}, {"args": ["--x=1"]}),
    "a text for a shell": ({"command": ["sh", "-c", "python t.py\n"]}, {"command": ["sh", "-c", "python t.py --x=1"]}),
    "a text for a shell in args": (
        {"command": ["/bin/bash", "-ec"], "args": ["python t.py"]},
        {"command": ["/bin/bash", "-ec"], "args": ["python t.py --x=1"]},
    ),
    "a text for a shell that another program starts": (
        {"command": ["timeout", "60", "/bin/bash", "-c"], "args": ["python t.py"]},
        {"command": ["timeout", "60", "/bin/bash", "-c"], "args": ["python t.py --x=1"]},
    ),
    "a text for no shell": (
        {"command": ["python", "-c", "print(1)"]},
        {"command": ["python", "-c", "print(1)"], "args": ["--x=1"]},
    ),
    "a script of a shell": ({"command": ["sh", "run.sh"]}, {"command": ["sh", "run.sh"], "args": ["--x=1"]}),
}


@pytest.mark.parametrize(("before", "after"), COMMANDS.values(), ids=COMMANDS)
def test_flags_follow_the_command(before, after):
    assert with_flags(before, ("--x=1",)) == after


def test_a_value_is_one_word_whatever_is_in_it():
    text = {"command": ["sh", "-c", "echo"]}

    assert with_flags(text, ("--x=$(rm -rf /); 'a'",))["command"][2] == "echo '--x=$$(rm -rf /); '\"'\"'a'\"'\"''"
    assert with_flags({}, ("--x=$(HOME)",))["args"] == ["--x=$$(HOME)"]


def test_no_values_change_nothing():
    assert with_flags({"command": ["a"]}, ()) == {"command": ["a"]}


def test_as_environment_they_can_be_named_in_args():
    values = {"values": {"learning-rate": 0.001}, "passedAs": "Environment", "names": {}}
    job = generic(replica(template=template(args=["--lr=$(LEARNING_RATE)"])), hyperparameters=values)
    container = container_of(job)

    assert container["args"] == ["--lr=$(LEARNING_RATE)"]
    assert env_of(container)["LEARNING_RATE"] == "0.001"


def test_as_environment_a_value_is_what_was_written_whatever_is_in_it():
    """Kubernetes expands `$(NAME)` in variables too."""
    values = {"values": {"text": "$(HOME) costs $$5"}, "passedAs": "Environment"}

    assert env_of(container_of(generic(hyperparameters=values)))["TEXT"] == "$$(HOME) costs $$$$5"


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 2**63, -(2**63) - 1, 10**30])
def test_what_would_not_arrive_as_it_was_written_is_refused(value):
    wrong = list(check_hyperparameters(Hyperparameters(values={"x": value}), "spec.hyperparameters"))

    assert [fault.path for fault in wrong] == ["spec.hyperparameters.values.x"]


def test_they_follow_the_script_that_torchrun_starts():
    job = pytorch(torchrunConfig={"enabled": True}, hyperparameters={"values": {"lr": 0.1}})
    container = container_of(job)

    assert [*container["command"], *container["args"]][-2:] == ["train.py", "--lr=0.1"]


def test_a_replica_that_only_waits_to_be_looked_into_is_handed_no_flags():
    job = generic(runMode={"debug": {"enabled": True}}, hyperparameters={"values": {"lr": 0.1}})

    assert container_of(job)["command"] == ["sleep", "inf"]
    assert "args" not in container_of(job)


def test_a_command_that_sleeps_is_a_command_like_any_other():
    job = generic(replica(template=template(command=["sleep"], args=["1"])), hyperparameters={"values": {"lr": 0.1}})

    assert container_of(job)["args"] == ["1", "--lr=0.1"]


def test_by_hand_the_values_are_there_as_environment():
    values = {"values": {"lr": 0.1}, "passedAs": "Environment"}

    assert env_of(container_of(generic(runMode={"debug": {"enabled": True}}, hyperparameters=values)))["LR"] == "0.1"
