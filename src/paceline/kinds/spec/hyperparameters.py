"""A job's hyperparameters: named values, passed to the command as flags or environment variables, digit for digit.

In     `spec.hyperparameters`, as written.
Out    their faults; the same values as arguments of a command, or as environment variables.
Never  rounds, guesses a type, or passes on an empty value.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from paceline.apimachinery.field_errors import did_you_mean, duplicate, invalid
from paceline.errors import Fault
from paceline.kinds.spec.fields import Free, Part, about

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
FLAG = re.compile(r"-{0,2}[A-Za-z][A-Za-z0-9_.-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The largest integer that an API server returns unchanged.
MOST = 2**63 - 1
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
# `-c`, alone or after other letters: the next argument is a shell script.
TEXT_FOLLOWS = re.compile("-[a-z]*c")


class Hyperparameters(Part, frozen=True, kw_only=True):
    """The hyperparameters of a training, and how they are passed to the command."""

    values: Annotated[
        Free, about("Values by name: numbers, booleans or strings. A string is passed on exactly as written.")
    ]
    passed_as: Annotated[
        Literal["Flags", "Environment"],
        about("Flags: --name=value after the command. Environment: one variable each, which args can use as $(NAME)."),
    ] = "Flags"
    names: Annotated[
        dict[str, str],
        about(
            "Names that the command uses instead, such as learningrate: --lr. If omitted, --NAME, or NAME in upper "
            "case. A flag without dashes is passed as name=value, one with a single dash as two arguments."
        ),
    ] = msgspec.field(default_factory=dict)


def check_hyperparameters(hyperparameters: Hyperparameters, path: str) -> Iterator[Fault]:
    """Yield a fault for each value that cannot be passed on, and each entry of `names` without a value."""
    for name, value in hyperparameters.values.items():
        where = f"{path}.values.{name}"
        if not NAME.fullmatch(name):
            yield invalid(where, name, "a name must start with a letter and contain only letters, digits, _, . and -")
        if isinstance(value, dict | list):
            yield invalid(where, value, "must be a number, a string, or true or false")
        elif isinstance(value, int) and not -MOST - 1 <= value <= MOST:
            yield invalid(
                where,
                value,
                "an API server does not keep this many digits of a number; write it as a string, in quotes",
            )
        elif isinstance(value, float) and not math.isfinite(value):
            yield invalid(where, str(value), "must be a finite number or a string")
        elif isinstance(value, str) and "\0" in value:
            yield invalid(where, value, "must not contain a zero byte: a command cannot receive one")
    for name in hyperparameters.names:
        if name not in hyperparameters.values:
            hint = (
                did_you_mean(name, hyperparameters.values)
                or f"; the values are {', '.join(hyperparameters.values) or 'none'}"
            )
            yield invalid(f"{path}.names.{name}", name, f"{path}.values has no such entry{hint}")
    yield from _check_names(hyperparameters, path)


def text_of(value: object) -> str:
    """Return a value as its author wrote it: 0.001 and not 0.0010000000000000000208, true and not True."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def flags_of(hyperparameters: Hyperparameters) -> tuple[str, ...]:
    """Return the arguments that follow the command, sorted by name: kubectl does not keep the order of a file."""
    arguments: list[str] = []
    for name, value in _set_values(hyperparameters):
        flag, text = hyperparameters.names.get(name, f"--{name}"), text_of(value)
        is_short = flag.startswith("-") and not flag.startswith("--")
        arguments += (flag, text) if is_short else (f"{flag}={text}",)
    return tuple(arguments)


def variables_of(hyperparameters: Hyperparameters) -> dict[str, str]:
    """Return the environment variables for the values."""
    return {_variable(hyperparameters, name): text_of(value) for name, value in _set_values(hyperparameters)}


def with_flags(container: Mapping[str, Any], flags: tuple[str, ...]) -> Free:
    """Return a copy of a container with arguments appended to its command, or to its script if a shell runs one.

    Kubernetes expands `$(NAME)` in a command, so every $ of a value is doubled.
    """
    if not flags:
        return dict(container)
    command, args = list(container.get("command") or ()), list(container.get("args") or ())
    arguments = [*command, *args]
    if _reads_text(arguments):
        appended = " ".join(shlex.quote(word) for word in flags).replace("$", "$$")
        script = f"{arguments[-1].rstrip()} {appended}"
        return (
            {**container, "args": [*args[:-1], script]} if args else {**container, "command": [*command[:-1], script]}
        )
    return {**container, "args": [*args, *(word.replace("$", "$$") for word in flags)]}


def _reads_text(arguments: list[str]) -> bool:
    """Return whether the last argument is a shell script, also of a shell that `env` or `timeout` starts."""
    is_shell = any(argument.rpartition("/")[2] in SHELLS for argument in arguments[:-2])
    return is_shell and bool(TEXT_FOLLOWS.fullmatch(arguments[-2]))


def _set_values(hyperparameters: Hyperparameters) -> Iterator[tuple[str, object]]:
    """Yield the values that are set: for null and the empty string the command uses its own default."""
    return (
        (name, value) for name, value in sorted(hyperparameters.values.items()) if value is not None and value != ""
    )


def _variable(hyperparameters: Hyperparameters, name: str) -> str:
    return hyperparameters.names.get(name) or re.sub("[^A-Za-z0-9]", "_", name).upper()


def _check_names(hyperparameters: Hyperparameters, path: str) -> Iterator[Fault]:
    names: set[str] = set()
    for name in hyperparameters.values:
        is_flag = hyperparameters.passed_as == "Flags"
        target_name = hyperparameters.names.get(name, f"--{name}") if is_flag else _variable(hyperparameters, name)
        where = f"{path}.names.{name}"
        if is_flag and not FLAG.fullmatch(target_name):
            yield invalid(where, target_name, "must be a flag, such as --learning_rate")
        elif not is_flag and not VARIABLE.fullmatch(target_name):
            yield invalid(where, target_name, "must be the name of an environment variable, such as LEARNING_RATE")
        elif target_name in names:
            yield duplicate(where, target_name)
        names.add(target_name)
