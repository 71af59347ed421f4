"""Checks of a YAML text: every fault of its objects with line and column, and what its jobs ask for.

The kinds' own checks do it, so it is the same on both clusters; the server's dry run has the last word.
"""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from paceline.apimachinery.field_errors import FieldFault, Problem
from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.apimachinery.yaml_positions import Location, Locations, Span, locate, nearest_location
from paceline.apimachinery.yaml_reader import YamlDocument, read_documents
from paceline.console.manifests.object_checks import (
    UNKNOWN,
    Claims,
    JobTotals,
    faults_of,
    job_totals,
    pod_faults_of,
    warnings_of,
)
from paceline.errors import BadRequest, Fault, TooLarge

MAX_BYTES = 1024 * 1024
MAX_FAULTS = 100
_SOURCE = "text"
_PLACE = re.compile(rf"^{_SOURCE}:(?P<line>\d+): (?P<message>.*)$", re.DOTALL)
_SUGGESTION = re.compile(r'did you mean "(?P<word>[^"]+)"\?')
_CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Text that would mend a fault, and the span that it replaces."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault or a warning, where it is written, and what would mend it."""

    severity: str
    # Number of the object in the text, and the path in it; empty for text that is not YAML.
    object: int
    path: str
    reason: str
    message: str
    span: Span
    fix: Fix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedObject:
    """An object of the text, and the totals of its replicas if it is a valid job."""

    line: int
    api_version: str
    kind: str
    namespace: str
    name: str
    totals: JobTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of checking a text."""

    objects: tuple[CheckedObject, ...] = ()
    findings: tuple[Finding, ...] = ()
    # How many findings are left out of the list because it is full.
    unlisted: int = 0

    def as_json(self) -> Object:
        """Return the result in its form on the wire."""
        return {
            "objects": [_camel(asdict(checked)) for checked in self.objects],
            "findings": [_camel(asdict(finding)) for finding in self.findings],
            "more": self.unlisted,
        }


def check(text: str, *, namespace: str = "", claims: Claims | None = None) -> Checked:
    """Return the objects of a text and everything that is wrong with them; never raise for any text."""
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        return Checked(findings=(_too_large(text, size),))
    try:
        documents = tuple(read_documents(text, _SOURCE))
    except (BadRequest, TooLarge) as error:
        return Checked(findings=(_syntax_finding(text, str(error)),))
    located = locate(text)
    written = [part for document in documents for part in _objects(document, located.get(document.line, {}))]
    complete = [replace(part, obj=_in_namespace(part.obj, namespace)) for part in written]
    all_claims = _with_new_claims(claims or {}, [part.obj for part in complete])
    findings = [finding for number, part in enumerate(complete) for finding in _findings(part, number, all_claims)]
    findings.sort(key=lambda finding: (finding.span.line, finding.span.column))
    return Checked(
        objects=tuple(_checked(part) for part in complete),
        findings=tuple(findings[:MAX_FAULTS]),
        unlisted=max(len(findings) - MAX_FAULTS, 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """An object of a text, and where its parts are written; `prefix` is its path in the document."""

    obj: Any
    line: int
    locations: Locations
    prefix: str = ""

    def location(self, path: str) -> Location | None:
        # The path of a fault of an application may be followed by a path in the job that it creates.
        path = path.partition(": ")[0]
        return nearest_location(self.locations, f"{self.prefix}.{path}" if self.prefix else path)


def _objects(document: YamlDocument, locations: Locations) -> Iterator[_Written]:
    """Yield the objects of a document: the document itself, or the items of a List."""
    value = document.value
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            prefix = f"items[{index}]"
            place = locations.get(prefix)
            line = place.value.line if place else document.line
            yield _Written(obj=item, line=line, locations=locations, prefix=prefix)
        return
    yield _Written(obj=value, line=document.line, locations=locations)


def _in_namespace(obj: Any, namespace: str) -> Any:
    """Return an object with the namespace in which it would be created."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or metadata.get("namespace") or not namespace:
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def _with_new_claims(claims: Claims, objects: list[Any]) -> Claims:
    """Return the claims that exist once the objects of the text are created."""
    result = dict(claims)
    for obj in objects:
        if isinstance(obj, dict) and obj.get("kind") == _CLAIM and isinstance(obj.get("metadata"), dict):
            namespace = namespace_of(obj)
            if namespace in result:
                result[namespace] |= {name_of(obj)}
    return result


def _findings(part: _Written, number: int, claims: Claims) -> Iterator[Finding]:
    for fault in faults_of(part.obj, claims):
        yield _finding(part, number, fault)
    for fault in pod_faults_of(part.obj):
        finding = _finding(part, number, fault)
        yield replace(finding, severity="warning", message=f"pods would be refused: {finding.message}")
    for warning in warnings_of(part.obj):
        path = warning.split(" ", 1)[0]
        location = part.location(path) or part.location("")
        yield Finding(
            severity="warning",
            object=number,
            path=path if path in part.locations else "",
            reason="",
            message=warning,
            span=location.best if location else _first(part.line),
        )


def _finding(part: _Written, number: int, fault: Fault) -> Finding:
    location = part.location(fault.path)
    is_unknown = fault.hint.startswith(UNKNOWN)
    span = _first(part.line)
    if location is not None:
        span = location.key if is_unknown and location.key else location.best
    return Finding(
        severity="error",
        object=number,
        path=fault.path,
        reason=(fault.problem if isinstance(fault, FieldFault) else Problem.INVALID).value,
        message=_message(fault),
        span=span,
        fix=_fix(fault, location, is_unknown=is_unknown),
    )


def _message(fault: Fault) -> str:
    name = re.split(r"\.(?![^\[]*\])", fault.path)[-1]
    if fault.hint.startswith(UNKNOWN):
        return fault.hint.replace(UNKNOWN, f'{UNKNOWN} "{name}"', 1)
    if fault.value is None or isinstance(fault.value, dict | list):
        return fault.hint or f"{name} is required"
    if fault.value == "":
        return (
            f"{name} is empty; it {fault.hint}" if fault.hint.startswith("must ") else f"{name} is empty; {fault.hint}"
        )
    shown = str(fault.value).lower() if isinstance(fault.value, bool) else str(fault.value)
    return f'"{shown[:60]}{"…" if len(shown) > 60 else ""}": {fault.hint}'


def _fix(fault: Fault, location: Location | None, *, is_unknown: bool) -> Fix | None:
    """Return the suggestion of a fault as a replacement of the key or of the value."""
    match = _SUGGESTION.search(fault.hint)
    if match is None or location is None:
        return None
    if is_unknown:
        return Fix(text=match["word"], span=location.key) if location.key else None
    return Fix(text=match["word"], span=location.value) if location.is_scalar else None


def _checked(part: _Written) -> CheckedObject:
    obj = part.obj if isinstance(part.obj, dict) else {}
    metadata = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    return CheckedObject(
        line=part.line,
        api_version=str(obj.get("apiVersion") or ""),
        kind=str(obj.get("kind") or ""),
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        totals=job_totals(obj),
    )


def _too_large(text: str, size: int) -> Finding:
    cut = text.encode("utf-8", "surrogatepass")[:MAX_BYTES]
    message = (
        f"the text has {size / 1024**2:.1f} MiB, and at most {MAX_BYTES // 1024**2} MiB are read (up to this line); "
        "a manifest takes a few KiB: put data on a claim"
    )
    return _text_finding(cut.count(b"\n") + 1, "RequestEntityTooLarge", message)


def _syntax_finding(text: str, message: str) -> Finding:
    match = _PLACE.match(message)
    line = int(match["line"]) if match else 1
    message = match["message"] if match else message
    lines = text.split("\n")
    content = lines[line - 1] if line <= len(lines) else ""
    finding = _text_finding(line, "BadRequest", message.removeprefix(f"line {line} is not YAML: "))
    start = len(content) - len(content.lstrip())
    span = Span(line=line, column=start + 1, end_line=line, end_column=max(len(content.rstrip()), start) + 1)
    return replace(finding, span=span)


def _text_finding(line: int, reason: str, message: str) -> Finding:
    return Finding(severity="error", object=-1, path="", reason=reason, message=message, span=_first(line))


def _first(line: int) -> Span:
    return Span(line=line, column=1, end_line=line, end_column=1)


def _camel(part: Any) -> Any:
    """Return data with keys as JSON writes them; names of resources are not touched."""
    if not isinstance(part, dict):
        return part
    names = {name: re.sub(r"_([a-z])", lambda match: match[1].upper(), name) for name in part}
    return {names[name]: _camel(value) if name in _NESTED else value for name, value in part.items()}


_NESTED = frozenset({"span", "fix"})
