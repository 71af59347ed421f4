"""Rules for single values that several built-in kinds share."""

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any

from paceline.apimachinery.field_errors import duplicate, forbidden, invalid, required, unsupported
from paceline.apimachinery.name_validation import PART_RULE, key_problem, labels_faults, value_problem
from paceline.errors import Fault

PROTOCOLS = ("SCTP", "TCP", "UDP")
IMMUTABLE = "field is immutable"
HIGHEST_PORT = 65535
_LONGEST_PORT_NAME = 15
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_LETTER = re.compile(r"[a-z]")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY = 253


def at_least(lowest: int) -> str:
    """Return the hint for a number that is too small."""
    return f"must be greater than or equal to {lowest}"


def between(lowest: int, highest: int) -> str:
    """Return the hint for a number that is out of range."""
    return f"must be between {lowest} and {highest}, inclusive"


def choice_faults(value: Any, choices: Collection[str], path: str) -> Iterator[Fault]:
    """Yield a fault if a value is set and not among the choices."""
    if value and value not in choices:
        yield unsupported(path, value, choices)


def name_faults(
    name: str | None, path: str, problem_of: Callable[[str], str], *, is_required: bool = True
) -> Iterator[Fault]:
    """Yield a fault if a name is missing or `problem_of` returns a problem."""
    if not name:
        if is_required:
            yield required(path)
    elif problem := problem_of(name):
        yield invalid(path, name, problem)


def once(value: Hashable, path: str, taken: set[Any]) -> Iterator[Fault]:
    """Yield a fault if a value is taken, and add it to `taken`."""
    if value in taken:
        yield duplicate(path, value)
    taken.add(value)


def port_faults(number: Any, path: str) -> Iterator[Fault]:
    """Yield a fault if a number is not a port."""
    if not 0 < number <= HIGHEST_PORT:
        yield invalid(path, number, between(1, HIGHEST_PORT))


def port_or_name_faults(value: Any, path: str) -> Iterator[Fault]:
    """Yield the faults of a port number or port name."""
    return port_name_faults(value, path) if isinstance(value, str) else port_faults(value, path)


def port_name_faults(name: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a port name."""
    if len(name) > _LONGEST_PORT_NAME:
        yield invalid(path, name, f"must be no more than {_LONGEST_PORT_NAME} characters")
    if not _PORT_NAME.fullmatch(name):
        yield invalid(path, name, "must contain only a-z, 0-9 and '-'")
    if not _LETTER.search(name):
        yield invalid(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid(path, name, "must not contain '--'")
    if name and "-" in (name[0], name[-1]):
        yield invalid(path, name, "must not begin or end with '-'")


def path_faults(path_value: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a path that must stay below its folder."""
    if path_value.startswith("/"):
        yield invalid(path, path_value, "must be a relative path")
    if ".." in path_value.split("/"):
        yield invalid(path, path_value, "must not contain '..'")


def data_key_problem(key: str) -> str:
    """Return why text is not a valid key of a ConfigMap or Secret; "" if it is."""
    if len(key) > _LONGEST_KEY:
        return f"must be no more than {_LONGEST_KEY} characters"
    if not _DATA_KEY.fullmatch(key):
        return "a key must consist of letters, digits, '-', '_' or '.'"
    if key in {".", ".."}:
        return f"must not be '{key}'"
    return "must not start with '..'" if key.startswith("..") else ""


def selector_faults(selector: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Yield the faults of a label selector."""
    yield from labels_faults(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, rule in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        yield from expression_faults(rule, where)
        for position, value in enumerate(rule.get("values") or ()):
            if problem := value_problem(value):
                yield invalid(f"{where}.values[{position}]", value, problem)


def expression_faults(rule: Mapping[str, Any], path: str, *, compares: bool = False) -> Iterator[Fault]:
    """Yield the faults of an expression of a selector; with `compares`, Gt and Lt are operators too."""
    operator, values = rule.get("operator") or "", rule.get("values") or ()
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif compares and operator in {"Gt", "Lt"}:
        if len(values) != 1:
            yield required(f"{path}.values", "must be a single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from key_faults(rule.get("key") or "", f"{path}.key")


def key_faults(key: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a label key."""
    if problem := key_problem(key):
        yield invalid(path, key, problem)
    if not key:
        yield invalid(path, key, PART_RULE)
