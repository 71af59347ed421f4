"""Validation of names, labels and annotations, with the messages of Kubernetes."""

import re
from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.field_errors import FieldFault, Problem, invalid
from paceline.errors import Fault

MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_ANNOTATIONS_BYTES = 256 * 1024

_ALNUM = "must start and end with an alphanumeric character"
_REGEX = "regex used for validation is"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_PART})?"

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    f"{_ALNUM} (e.g. 'my-name',  or '123-abc', {_REGEX} '{_LABEL}')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    f"'.', and {_ALNUM} (e.g. 'example.com', {_REGEX} '{_SUBDOMAIN}')"
)
OLD_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', {_REGEX} '{_OLD_LABEL}')"
)
PART_RULE = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', and {_ALNUM} (e.g. "
    f"'MyName',  or 'my.name',  or '123-abc', {_REGEX} '{_PART}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', and {_ALNUM} (e.g. 'MyValue',  or 'my_value',  or '12345', {_REGEX} '{_VALUE}')"
)

_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_IS_OLD_LABEL = re.compile(_OLD_LABEL)
_IS_PART = re.compile(_PART)


def label_problem(name: str) -> str:
    """Return why a name is not a DNS label; "" if it is one."""
    return _problem(name, _IS_LABEL, rule=LABEL_RULE, longest=MAX_LABEL)


def subdomain_problem(name: str) -> str:
    """Return why a name is not a DNS subdomain; "" if it is one."""
    return _problem(name, _IS_SUBDOMAIN, rule=SUBDOMAIN_RULE, longest=MAX_SUBDOMAIN)


def service_problem(name: str) -> str:
    """Return why a name is not valid for a Service; "" if it is."""
    return _problem(name, _IS_OLD_LABEL, rule=OLD_LABEL_RULE, longest=MAX_LABEL)


def better_name(name: str) -> str:
    """Return `, did you mean "…"?` with a name that is valid for a Service, or an empty string."""
    better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f', did you mean "{better}"?' if not service_problem(better) else ""


def key_problem(key: str) -> str:
    """Return why text is not a valid key of a label or annotation; "" if it is."""
    prefix, slash, part = key.rpartition("/")
    if slash and (problem := subdomain_problem(prefix)):
        return f"prefix part {problem}"
    if not part:
        return "name part must be non-empty"
    if len(part) > MAX_LABEL:
        return f"name part must be no more than {MAX_LABEL} bytes"
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
