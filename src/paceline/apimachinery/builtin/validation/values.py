"""What single values of built-in kinds may look like, in the words of Kubernetes."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from paceline.apimachinery.field_errors import forbidden, invalid, required, unsupported
from paceline.apimachinery.name_validation import PART_RULE, key_problem, labels_faults, value_problem
from paceline.errors import Fault

HIGHEST_PORT = 65535
_LONGEST_PORT_NAME = 15
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_LETTER = re.compile(r"[a-z]")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY = 253


def at_least(lowest: int) -> str:
    """Say that a number is too small."""
    return f"must be greater than or equal to {lowest}"


def between(lowest: int, highest: int) -> str:
    """Say that a number is too small or too large."""
    return f"must be between {lowest} and {highest}, inclusive"


def port_faults(number: Any, path: str) -> Iterator[Fault]:
    """Find what keeps a number from being a port."""
    if not 0 < number <= HIGHEST_PORT:
        yield invalid(path, number, between(1, HIGHEST_PORT))


def port_or_name_faults(value: Any, path: str) -> Iterator[Fault]:
    """Find what keeps a value from being a port or the name of one."""
    if not isinstance(value, str):
        yield from port_faults(value, path)
    else:
        yield from port_name_faults(value, path)


def port_name_faults(name: str, path: str) -> Iterator[Fault]:
    """Find what keeps text from naming a port."""
    if len(name) > _LONGEST_PORT_NAME:
        yield invalid(path, name, f"must be no more than {_LONGEST_PORT_NAME} characters")
    if not _PORT_NAME.fullmatch(name):
        yield invalid(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER.search(name):
        yield invalid(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid(path, name, "must not contain consecutive hyphens")
    if name and "-" in (name[0], name[-1]):
        yield invalid(path, name, "must not begin or end with a hyphen")


def path_faults(path_value: str, path: str) -> Iterator[Fault]:
    """Find what keeps text from being a path below some folder."""
    if path_value.startswith("/"):
        yield invalid(path, path_value, "must be a relative path")
    if ".." in path_value.split("/"):
        yield invalid(path, path_value, "must not contain '..'")


def data_key_problem(key: str) -> str:
    """Say why text cannot be a key of a config map or secret; "" when it can."""
    if len(key) > _LONGEST_KEY:
        return f"must be no more than {_LONGEST_KEY} characters"
    if not _DATA_KEY.fullmatch(key):
        return (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key in {".", ".."}:
        return f"must not be '{key}'"
    return "must not start with '..'" if key.startswith("..") else ""


def choice_faults(value: Any, choices: Collection[str], path: str) -> Iterator[Fault]:
    """Find a value that is there and not one of a few."""
    if value and value not in choices:
        yield unsupported(path, value, choices)


def selector_faults(selector: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with a selector of labels."""
    yield from labels_faults(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, rule in enumerate(selector.get("matchExpressions") or ()):
        yield from _rule_faults(rule, f"{path}.matchExpressions[{index}]")


def _rule_faults(rule: Mapping[str, Any], path: str) -> Iterator[Fault]:
    operator, values = rule.get("operator"), rule.get("values") or ()
    if operator in {"In", "NotIn"}:
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            hint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", hint)
    else:
        yield invalid(f"{path}.operator", operator or "", "not a valid selector operator")
    yield from key_faults(rule.get("key") or "", f"{path}.key")
    for index, value in enumerate(values):
        if wrong := value_problem(value):
            yield invalid(f"{path}.values[{index}]", value, wrong)


def key_faults(key: str, path: str) -> Iterator[Fault]:
    """Find what keeps text from being the key of a label."""
    if wrong := key_problem(key):
        yield invalid(path, key, wrong)
    if not key:
        yield invalid(path, key, PART_RULE)
