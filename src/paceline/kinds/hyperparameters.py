"""A job's hyperparameters: values with names, handed to the command as flags or as environment, to the digit.

In     `spec.hyperparameters`, as written.
Out    their faults; the same values as words of a command line, or as variables.
Never  rounds, guesses a type, or hands on what has no value.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from paceline.errors import Fault
from paceline.kinds.fields import Free, Part, about
from paceline.objects.faults import did_you_mean, duplicate, invalid

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
FLAG = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The largest number that comes back from a cluster as it was sent.
MOST = 2**63 - 1
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
# `-c`, alone or behind other letters: what follows is a text that the shell reads.
TEXT_FOLLOWS = re.compile("-[a-z]*c")


class Hyperparameters(Part, frozen=True, kw_only=True):
    """Values that a training is tuned by, and how the command gets them."""

    values: Annotated[
        Free, about("Name and value of each. Numbers, true and false, or text; text keeps every digit as written.")
    ]
    passed_as: Annotated[
        Literal["Flags", "Environment"],
        about("Flags: --name=value behind the command. Environment: a variable each, which args may name as $(NAME)."),
    ] = "Flags"
    names: Annotated[
        dict[str, str],
        about(
            "What the command calls them: learningrate: --lr. Left out: --NAME, or NAME in capitals. A flag without "
            "dashes is passed as name=value, one with a single dash as two words."
        ),
    ] = msgspec.field(default_factory=dict)


def check_hyperparameters(given: Hyperparameters, path: str) -> Iterator[Fault]:
    """Name values that cannot be handed on, and names that nobody has."""
    for name, value in given.values.items():
        where = f"{path}.values.{name}"
        if not NAME.fullmatch(name):
            yield invalid(where, name, "a name begins with a letter and has letters, digits, _, . and - in it")
        if isinstance(value, dict | list):
            yield invalid(where, value, "give one number, text, or true or false")
        elif isinstance(value, int) and not -MOST - 1 <= value <= MOST:
            yield invalid(where, value, "no cluster keeps so many digits of a number; write it as text, in quotes")
        elif isinstance(value, float) and not math.isfinite(value):
            yield invalid(where, str(value), "give a number, or text")
        elif isinstance(value, str) and "\0" in value:
            yield invalid(where, value, "no command can be given a text with a zero byte in it")
    for name in given.names:
        if name not in given.values:
            hint = did_you_mean(name, given.values) or f"; there are {', '.join(given.values) or 'none'}"
            yield invalid(f"{path}.names.{name}", name, f"there is no such value{hint}")
    yield from _check_called(given, path)


def text_of(value: object) -> str:
    """Write a value as its author did: 0.001 and not 0.0010000000000000000208, true and not True."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def flags_of(given: Hyperparameters) -> tuple[str, ...]:
    """Give the words that follow the command, in the order of the names: kubectl keeps no other."""
    words: list[str] = []
    for name, value in _given(given):
        flag, text = given.names.get(name, f"--{name}"), text_of(value)
        is_short = flag.startswith("-") and not flag.startswith("--")
        words += (flag, text) if is_short else (f"{flag}={text}",)
    return tuple(words)


def variables_of(given: Hyperparameters) -> dict[str, str]:
    """Give the variables that carry the values."""
    return {_variable(given, name): text_of(value) for name, value in _given(given)}


def with_flags(container: Mapping[str, Any], words: tuple[str, ...]) -> Free:
    """Copy a container whose command ends with these words; into the text, where a shell reads one.

    Kubernetes expands `$(NAME)` in a command, so that every $ of a value is doubled.
    """
    if not words:
        return dict(container)
    command, args = list(container.get("command") or ()), list(container.get("args") or ())
    whole = [*command, *args]
    if _reads_text(whole):
        said = " ".join(shlex.quote(word) for word in words).replace("$", "$$")
        last = f"{whole[-1].rstrip()} {said}"
        return {**container, "args": [*args[:-1], last]} if args else {**container, "command": [*command[:-1], last]}
    return {**container, "args": [*args, *(word.replace("$", "$$") for word in words)]}


def _reads_text(whole: list[str]) -> bool:
    """Tell whether the last word is a text that a shell reads, also one that `env` or `timeout` starts."""
    is_shell = any(word.rpartition("/")[2] in SHELLS for word in whole[:-2])
    return is_shell and bool(TEXT_FOLLOWS.fullmatch(whole[-2]))


def _given(given: Hyperparameters) -> Iterator[tuple[str, object]]:
    """Give the values that there are: nothing and no text mean that the command is to take its own."""
    return ((name, value) for name, value in sorted(given.values.items()) if value is not None and value != "")


def _variable(given: Hyperparameters, name: str) -> str:
    return given.names.get(name) or re.sub("[^A-Za-z0-9]", "_", name).upper()


def _check_called(given: Hyperparameters, path: str) -> Iterator[Fault]:
    called: set[str] = set()
    for name in given.values:
        is_flag = given.passed_as == "Flags"
        word = given.names.get(name, f"--{name}") if is_flag else _variable(given, name)
        where = f"{path}.names.{name}"
        if is_flag and not FLAG.fullmatch(word):
            yield invalid(where, word, "write a flag, such as --learning_rate")
        elif not is_flag and not VARIABLE.fullmatch(word):
            yield invalid(where, word, "write the name of a variable, such as LEARNING_RATE")
        elif word in called:
            yield duplicate(where, word)
        called.add(word)
