"""Label and field selectors of Kubernetes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import Malformed
from paceline.objects.meta import Object
from paceline.objects.names import key_problem, value_problem

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|<|>)|([^\s=!,()<>]+))\s*")
_SIGNS = frozenset({"==", "!=", "=", "!", ",", "(", ")", "<", ">"})
_END = "end of string"

# Field selectors of each built-in kind, besides metadata.name and metadata.namespace.
_SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "Event"): (
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("", "Namespace"): ("status.phase",),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
}
_SHORT = {"source": "source.component"}
_BY_KEY = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """One requirement of a label selector: key, operator and values."""

    key: str
    op: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, Any]) -> bool:
        """Return whether labels satisfy it."""
        value = labels.get(self.key)
        match self.op:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return value is not None and self._compares(str(value))

    def _compares(self, value: str) -> bool:
        (bound,) = self.values
        if not _is_integer(value):
            return False
        return int(value) > int(bound) if self.op == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRule:
    """One requirement of a field selector: a path, and the value that it must or must not have."""

    path: str
    value: str
    equal: bool

    def holds(self, obj: Object) -> bool:
        """Return whether an object satisfies it."""
        value: Any = obj
        for step in _SHORT.get(self.path, self.path).split("."):
            value = value.get(step) if isinstance(value, dict) else None
        text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
        if self.path in {"spec.unschedulable", "spec.hostNetwork"}:
            text = text or "false"
        return (text == self.value) is self.equal

    def holds_for(self, namespace: str, name: str) -> bool:
        """Return whether a namespace and name satisfy it; only for rules with `is_by_key`."""
        return ((name if self.path == _BY_KEY[0] else namespace) == self.value) is self.equal

    @property
    def is_by_key(self) -> bool:
        """Whether only the namespace or name is compared."""
        return self.path in _BY_KEY


def parse_labels(text: str) -> tuple[LabelRule, ...]:
    """Return the parsed label selector; raise Malformed with what was expected where."""
    tokens = _tokens(text)
    rules: list[LabelRule] = []
    while tokens[0] != _END:
        rules.append(_rule(tokens))
        if tokens[0] == _END:
            break
        _expect(tokens, ",")
        if tokens[0] == _END:
            raise Malformed("found '', expected: identifier after ','")
    return tuple(rules)


def _rule(tokens: list[str]) -> LabelRule:
    negated = tokens[0] == "!"
    if negated:
        tokens.pop(0)
    if not negated and tokens[0] in _SIGNS:
        raise Malformed(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    key = _word(tokens)
    if problem := key_problem(key):
        detail = f'key: Invalid value: "{key}": {problem}'
        raise Malformed(f"unable to parse requirement: {detail}")
    if negated:
        return LabelRule(key=key, op="absent")
    if tokens[0] in {",", _END}:
        return LabelRule(key=key, op="exists")
    op = tokens.pop(0)
    if op in {"in", "notin"}:
        return LabelRule(key=key, op=op, values=_listed(tokens))
    if op not in {"=", "==", "!=", "<", ">"}:
        raise Malformed(f"unable to parse requirement: found '{op}', expected: in, notin, =, ==, !=, gt, lt")
    value = "" if tokens[0] in {",", _END} else _word(tokens)
    if op in {"<", ">"}:
        if not _is_integer(value):
            raise Malformed(f"for '{op}' the value must be an integer, not '{value}'")
        return LabelRule(key=key, op=op, values=frozenset({value}))
    name = "notin" if op == "!=" else "in"
    return LabelRule(key=key, op=name, values=frozenset({_checked(value)}))


def _listed(tokens: list[str]) -> frozenset[str]:
    if tokens[0] != "(":
        raise Malformed(f"unable to parse requirement: found '{tokens[0]}' expected: '('")
    tokens.pop(0)
    values: set[str] = set()
    while True:
        if tokens[0] in {",", ")"}:
            values.add("")
        else:
            values.add(_checked(_word(tokens)))
        if tokens[0] == ")":
            tokens.pop(0)
            return frozenset(values)
        if tokens[0] != ",":
            token = "" if tokens[0] == _END else tokens[0]
            raise Malformed(f"unable to parse requirement: found '{token}', expected: ',' or ')'")
        tokens.pop(0)


def parse_fields(text: str, *, group: str, kind: str, more: tuple[str, ...] = ()) -> tuple[FieldRule, ...]:
    """Return the parsed field selector of a kind; raise Malformed for an unknown field."""
    selectable = (*_BY_KEY, *_SELECTABLE.get((group, kind), ()), *more)
    rules: list[FieldRule] = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = re.fullmatch(r"([^=!]*?)(!=|==|=)((?:[^=\\]|\\[\\,=])*)", part, re.DOTALL)
        if match is None:
            raise Malformed(f"invalid selector: '{text}'; can't understand '{part}'")
        path, op, value = match.groups()
        if not path and not value:
            continue
        if path not in selectable:
            raise Malformed(_unknown_field(path, group, kind))
        plain = re.sub(r"\\([\\,=])", r"\1", value)
        rules.append(FieldRule(path=path, value=plain, equal=op != "!="))
    return tuple(rules)


def _unknown_field(path: str, group: str, kind: str) -> str:
    """Return Kubernetes' message, which differs for built-in kinds without their own selectable fields."""
    is_plain = (not group or group.endswith(".k8s.io")) and (group, kind) not in _SELECTABLE
    if is_plain:
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {path}"


def matches(rules: tuple[LabelRule, ...], labels: Mapping[str, Any]) -> bool:
    """Return whether labels satisfy every rule."""
    return all(rule.holds(labels) for rule in rules)


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Malformed(f"unable to parse the label selector at '{text[position:]}'")
        tokens.append(match[1] or match[2])
        position = match.end()
    tokens.append(_END)
    return tokens


def _word(tokens: list[str]) -> str:
    token = tokens.pop(0) if tokens[0] != _END else ""
    if not token or token in _SIGNS:
        raise Malformed(f"unable to parse requirement: found '{token}', expected: identifier")
    return token


def _expect(tokens: list[str], sign: str) -> None:
    if tokens[0] != sign:
        raise Malformed(f"found '{tokens[0]}', expected: ',' or 'end of string'")
    tokens.pop(0)


def _checked(value: str) -> str:
    if problem := value_problem(value):
        raise Malformed(f'unable to parse requirement: values: Invalid value: "{value}": {problem}')
    return value


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None
