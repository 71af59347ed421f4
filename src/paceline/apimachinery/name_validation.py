"""Validation of names, labels and annotations."""

import re
from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.field_errors import FieldFault, Problem, invalid
from paceline.errors import Fault

MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_ANNOTATIONS_BYTES = 256 * 1024

_ENDS = "and start and end with a letter or digit"
LABEL_RULE = f"must consist of lower case letters, digits and '-', {_ENDS}"
SUBDOMAIN_RULE = f"must consist of lower case letters, digits, '-' and '.', {_ENDS}"
SERVICE_RULE = "must consist of lower case letters, digits and '-', start with a letter, and end with a letter or digit"
PART_RULE = f"must consist of letters, digits, '-', '_' and '.', {_ENDS}"
_VALUE_RULE = f"must be empty, or consist of letters, digits, '-', '_' and '.', {_ENDS}"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_IS_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_IS_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def label_problem(name: str) -> str:
    """Return why a name is not a DNS label; "" if it is one."""
    return _problem(name, _IS_LABEL, rule=LABEL_RULE, longest=MAX_LABEL)


def subdomain_problem(name: str) -> str:
    """Return why a name is not a DNS subdomain; "" if it is one."""
    return _problem(name, _IS_SUBDOMAIN, rule=SUBDOMAIN_RULE, longest=MAX_SUBDOMAIN)


def service_problem(name: str) -> str:
    """Return why a name is not valid for a Service; "" if it is."""
    return _problem(name, _IS_SERVICE, rule=SERVICE_RULE, longest=MAX_LABEL)


def better_name(name: str) -> str:
    """Return `, did you mean "…"?` with a name that is valid for a Service, or an empty string."""
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f', did you mean "{better}"?' if not service_problem(better) else ""


def key_problem(key: str) -> str:
    """Return why text is not a valid key of a label or annotation; "" if it is."""
    prefix, slash, part = key.rpartition("/")
    if slash and (problem := subdomain_problem(prefix)):
        return f"the part before the slash {problem}"
    if not part:
        return "the name must not be empty"
    if len(part) > MAX_LABEL:
        return f"the name must be no more than {MAX_LABEL} bytes"
    return "" if _IS_PART.fullmatch(part) else PART_RULE


def value_problem(value: str) -> str:
    """Return why text is not a valid label value; "" if it is."""
    if len(value) > MAX_LABEL:
        return f"must be no more than {MAX_LABEL} bytes"
    return "" if not value or _IS_PART.fullmatch(value) else _VALUE_RULE


def labels_faults(labels: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
    """Return the faults of labels."""
    faults: list[Fault] = []
    for key, value in labels.items():
        if problem := key_problem(key):
            faults.append(invalid(path, key, problem))
        if problem := value_problem(str(value)):
            faults.append(invalid(path, value, problem))
    return tuple(faults)


def annotations_faults(annotations: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
    """Return the faults of annotations, including their total size."""
    problems = ((key, key_problem(key.lower())) for key in annotations)
    faults: list[Fault] = [invalid(path, key, problem) for key, problem in problems if problem]
    size = sum(len(key) + len(str(value).encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS_BYTES:
        hint = f"may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        faults.append(FieldFault(path, "", hint, Problem.TOO_LONG))
    return tuple(faults)


def _problem(name: str, allowed: re.Pattern[str], *, rule: str, longest: int) -> str:
    if len(name) > longest:
        return f"must be no more than {longest} bytes"
    return "" if allowed.fullmatch(name) else rule
