"""Send the same requests to two servers, and tell what they answer differently.

What no two servers can share (ids, revisions, the time of day, addresses they gave away) is put aside first;
all the rest of an answer is compared: code, content type, warnings, and every field of the body.
"""

import http.client
import json
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any

from paceline.apimachinery.yaml_reader import read_documents
from paceline.model import reasons
from paceline.model.well_known_labels import ASKED_BY

SECONDS = 20.0
LOOK_SECONDS = 0.05
# A time that a server has just written, and not one that a client sent.
FRESH = timedelta(minutes=30)
PROTOBUF = "application/vnd.kubernetes.protobuf"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"(\d+[smhdy])+|<unknown>")
_QUOTED = re.compile(r'\\"(.*?)\\"')
_ADDRESS = re.compile(r"10\.\d+\.\d+\.\d+")
# A name of the scenarios whose end a server chose.
_MADE_UP = re.compile(r"(Gen_).{5}")
_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
    "yaml": "application/yaml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server is, and how to be let in."""

    host: str
    ca_file: Path
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request. `$name` in it stands for what an earlier answer said."""

    case: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    # What later steps need: a name, and where in the answer it stands ("metadata.uid", "items.0.metadata.name").
    keep: Mapping[str, str] = field(default_factory=dict)
    # A watch is hung up after so many events; None reads to the end.
    events: int | None = None
    # What comes about by itself is asked for until it answers with this code.
    wait: int = 0
    # "all": every field. "subset": what the second says, the first says too. "head": the code and type only.
    look: str = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, as it came."""

    code: int
    content_type: str
    warnings: tuple[str, ...]
    body: bytes


def steps_of(scenario: list[dict[str, Any]]) -> tuple[Step, ...]:
    """Read a scenario's table; a row with `each` stands for several."""
    return tuple(step for row in scenario for step in _steps_of_row(row))


def _steps_of_row(row: Mapping[str, Any]) -> Iterator[Step]:
    fields = {**row}
    names, values = next(iter(fields.pop("each", {"": [""]}).items()))
    for value in values:
        variables = dict(zip(names.split(","), value if isinstance(value, list) else [value], strict=True))
        yield _step_of({key: _filled(field, variables) for key, field in fields.items()})


def _step_of(row: dict[str, Any]) -> Step:
    method, _, path = row.pop("send").partition(" ")
    headers, body, sort = row.pop("headers", {}), row.pop("body", None), row.pop("type", None)
    if body is not None and "Content-Type" not in headers:
        headers = {"Content-Type": _TYPES.get(sort, sort or "application/json"), **headers}
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    return Step(method=method, path=path, headers=headers, body=text, **row)


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    match value:
        case str():
            return Template(value).safe_substitute(variables)
        case dict():
            return {_filled(key, variables): _filled(inner, variables) for key, inner in value.items()}
        case list():
            return [_filled(inner, variables) for inner in value]
    return value


class Asker:
    """Sends steps to one server, and remembers what its answers said for the steps that need it."""

    def __init__(self, place: Place, variables: Mapping[str, str]) -> None:
        self._place = place
        self._tls = ssl.create_default_context(cafile=place.ca_file)
        self.variables = dict(variables)

    def ask(self, step: Step) -> Answer:
        """Send one request, read the answer, and keep of it what the step says."""
        answer = self._once(step)
        deadline = time.monotonic() + SECONDS
        while step.wait and answer.code != step.wait and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            answer = self._once(step)
        self._keep(step, answer)
        return answer

    def _once(self, step: Step) -> Answer:
        connection = http.client.HTTPSConnection(self._place.host, context=self._tls, timeout=SECONDS)
        try:
            self._send(connection, step)
            response = connection.getresponse()
            body = _events(response, step.events) if step.events is not None else response.read()
            return Answer(
                code=response.status,
                content_type=response.headers.get("Content-Type", ""),
                warnings=tuple(response.headers.get_all("Warning", [])),
                body=body,
            )
        finally:
            connection.close()

    def _send(self, connection: http.client.HTTPSConnection, step: Step) -> None:
        headers = {"Authorization": f"Bearer {self._place.token}", **step.headers}
        if "Accept" in headers:
            headers["Accept"] = without_protobuf(headers["Accept"])
        body = None if step.body is None else _filled(step.body, self.variables).encode("utf-8", "surrogateescape")
        connection.request(step.method, _filled(step.path, self.variables), body=body, headers=headers)

    def _keep(self, step: Step, answer: Answer) -> None:
        document = _read(answer) if step.keep else None
        for name, path in step.keep.items():
            self.variables[name] = str(_at(document, path))


def without_protobuf(accept: str) -> str:
    """Let a client that also takes JSON have it: two encodings of one answer are no difference."""
    offers = [offer for offer in accept.split(",") if PROTOBUF not in offer]
    return ",".join(offers) if any("json" in offer for offer in offers) else accept


def _events(response: http.client.HTTPResponse, count: int) -> bytes:
    return b"".join(response.readline() for _ in range(count))


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(document, list):
            document = document[int(part)] if int(part) < len(document) else None
        else:
            document = document.get(part) if isinstance(document, dict) else None
    return document


def _read(answer: Answer) -> Any:
    if answer.content_type == "application/yaml":
        return next((tree.value for tree in read_documents(answer.body.decode(), "answer")), None)
    try:
        document = json.loads(answer.body)
        return [] if _is_reminder(document) else document
    except ValueError:
        lines = answer.body.decode("utf-8", "backslashreplace").splitlines()
    try:
        events = [json.loads(line) for line in lines]
    except ValueError:
        return lines
    return [event for event in events if not _is_reminder(event)]


def _is_reminder(event: Any) -> bool:
    """Tell whether an event of a watch only says how far it is, which each server does when it likes."""
    is_bookmark = isinstance(event, dict) and event.get("type") == "BOOKMARK"
    return is_bookmark and not event["object"]["metadata"].get("annotations")


def differences(
    step: Step, real: Answer, ours: Answer, *, variables: tuple[Mapping[str, str], Mapping[str, str]]
) -> list[str]:
    """Name every field in which two answers differ: "field: what the real one says | what ours says"."""
    heads = [
        {
            "code": answer.code,
            "content type": answer.content_type,
            "warnings": [_subject(text) for text in answer.warnings],
        }
        for answer in (real, ours)
    ]
    problems = list(_differ(heads[0], heads[1], "", subset=False))
    if step.look == "head" or (problems and problems[0].startswith("code")):
        bodies = [None if step.look == "head" else _status(_read(answer)) for answer in (real, ours)]
    else:
        bodies = [_shared(_read(answer), names) for answer, names in zip((real, ours), variables, strict=True)]
    return [*problems, *_differ(bodies[0], bodies[1], "body", subset=step.look == "subset")]


def _subject(warning: str) -> str:
    """Return the field that a warning quotes first; warnings that quote none are only counted."""
    quoted = _QUOTED.search(warning)
    return quoted[1] if quoted else "*"


def _status(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    return {key: document.get(key) for key in ("kind", "reason")}


def _differ(real: Any, ours: Any, path: str, *, subset: bool) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in ours.keys() - _ADDED if subset else sorted({*real, *ours}):
            place = f"{path}.{key}" if path else str(key)
            yield from _differ(real.get(key, "(none)"), ours.get(key, "(none)"), place, subset=subset)
    elif isinstance(real, list) and isinstance(ours, list):
        if subset or (len(real) != len(ours) and all(_name(items) for items in (*real, *ours))):
            yield from _differ(_by_name(real), _by_name(ours), path, subset=subset)
            return
        for index in range(max(len(real), len(ours))):
            expected, right = (items[index] if index < len(items) else "(none)" for items in (real, ours))
            yield from _differ(expected, right, f"{path}.{index}", subset=subset)
    elif real != ours:
        yield f"{path}: {_short(real)} | {_short(ours)}"


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    metadata = item.get("metadata")
    inner = metadata.get("name") if isinstance(metadata, dict) else None
    if metadata == {}:
        return "core"  # The group that has no name, in discovery.
    names = (inner, *(item.get(key) for key in ("name", "resource", "subresource", "groupVersion", "version")))
    return str(next(filter(None, names), ""))


def _by_name(items: list[Any]) -> dict[str, Any]:
    return {_name(item) or str(item): item for item in items}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) < 400 else f"{text[:400]}…"


def _shared(document: Any, variables: Mapping[str, str]) -> Any:
    """Put aside what no two servers can share."""
    match document:
        case dict():
            fields = {key: value for key, value in document.items() if (key, value) not in _SAYS_NOTHING}
            return {key: _shared_field(fields, key, variables) for key in fields}
        case list():
            return [_shared(item, variables) for item in document if not _is_own_event(item)]
        case str():
            return _shared_text(document, variables)
    return document


def _is_own_event(item: Any) -> bool:
    """Tell whether an event is of one server alone: a real one, when it is new, has to put its own books right."""
    if not isinstance(item, dict) or not {"cells", "metadata"} & item.keys():
        return False
    return any(word in json.dumps(item) for word in _OWN_EVENTS)


_OWN_EVENTS = ("ipallocator-repair-controller", reasons.DELETE_REQUESTED)
# A list that is whole may say so or not; and the real server of the tests runs without the admission that gives
# every pod an account, because no controller there creates one, nor has it ours, which notes who asked for a job.
_SAYS_NOTHING: tuple[tuple[str, Any], ...] = (
    ("continue", ""),
    ("serviceAccount", "default"),
    ("serviceAccountName", "default"),
    ("details", {}),
    (ASKED_BY, "admin"),
    ("annotations", {ASKED_BY: "admin"}),
)
# Add-ons that a kube-apiserver alone does not bring along.
_ADDED = frozenset({"metrics.k8s.io"})
_OWN = frozenset({"storageVersionHash", "uid", "resourceVersion", "continue", "targetRefUid", "remainingItemCount"})


def _shared_field(holder: Mapping[str, Any], key: str, variables: Mapping[str, str]) -> Any:
    value = holder[key]
    if key in _OWN and isinstance(value, str) and value:
        return "*"
    if key == "name" and isinstance(value, str) and _MADE_UP.fullmatch(value):
        return _MADE_UP.sub(r"\1*", value)
    if key == "name" and isinstance(holder.get("generateName"), str) and isinstance(value, str):
        return f"{holder['generateName']}*" if value.startswith(holder["generateName"]) else value
    if key == "cells" and isinstance(value, list):
        return ["AGE" if isinstance(cell, str) and _AGE.fullmatch(cell) else _shared(cell, variables) for cell in value]
    if key == "message" and holder.get("kind") == "Status":
        return "*"  # Each server has its own sentences; code, reason and causes are compared.
    if isinstance(value, list) and key in _UNORDERED:
        return _in_order(key, value)
    if key == "description" and "type" in holder and "format" in holder:
        return "*"  # Of a column: no client shows it.
    return _shared(value, variables)


# Lists whose order says nothing.
_UNORDERED = frozenset({"causes", "managedFields", "nonResourceRules", "resourceRules"})


def _in_order(key: str, value: list[Any]) -> list[Any]:
    if key == "causes":
        # Told once or twice, in any order. One without a field says that CEL rules were not checked.
        causes = sorted({_cause(cause) for cause in value if cause.get("field") != "<nil>"})
        return [{"field": field, "reason": reason} for field, reason in causes]
    # Who owns what, and what one may do, in whatever order it is named.
    entries = ({part: content for part, content in manager.items() if part != "time"} for manager in value)
    return sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))


def _cause(cause: Mapping[str, Any]) -> tuple[str, str]:
    return str(cause.get("field", "")), str(cause.get("reason", ""))


def _shared_text(text: str, variables: Mapping[str, str]) -> str:
    if _TIME.fullmatch(text):
        written = datetime.fromisoformat(text)
        return "NOW" if abs(datetime.now(UTC) - written) < FRESH else text
    for name, value in variables.items():
        if len(value) > 3 and value in text:
            text = text.replace(value, f"${name}")
    return _ADDRESS.sub("ADDRESS", text)
