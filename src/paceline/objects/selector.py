"""Which objects are meant: label and field selectors as Kubernetes writes them."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import Malformed
from paceline.objects.meta import Object
from paceline.objects.names import key_problem, value_problem

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|<|>)|([^\s=!,()<>]+))\s*")
_SIGNS = frozenset({"==", "!=", "=", "!", ",", "(", ")", "<", ">"})
_END = "end of string"

# Field selectors that each built-in kind knows beside metadata.name and metadata.namespace.
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
    """One requirement: the key, how it is compared, and with what."""

    key: str
    op: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, Any]) -> bool:
        """Tell whether labels satisfy it."""
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
    """One requirement: the path of a field and the value it must have, or must not."""

    path: str
    value: str
    equal: bool

    def holds(self, obj: Object) -> bool:
        """Tell whether an object satisfies it."""
        return (field_text(obj, self.path) == self.value) is self.equal

    def holds_for(self, namespace: str, name: str) -> bool:
        """Tell whether a key satisfies it; only for rules that `is_by_key`."""
        return ((name if self.path == _BY_KEY[0] else namespace) == self.value) is self.equal

    @property
    def is_by_key(self) -> bool:
        """Tell whether namespace and name alone decide."""
        return self.path in _BY_KEY


def field_text(obj: Object, path: str) -> str:
    """Return a field of an object as selectors compare it."""
    found: Any = obj
    for step in _SHORT.get(path, path).split("."):
        found = found.get(step) if isinstance(found, dict) else None
    text = str(found).lower() if isinstance(found, bool) else "" if found is None else str(found)
    return text or "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else text


def parse_labels(text: str) -> tuple[LabelRule, ...]:
    """Read a label selector; Malformed says what was expected where."""
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


def _rule(tokens: deque[str]) -> LabelRule:
    negated = tokens[0] == "!"
    if negated:
        tokens.popleft()
    if not negated and tokens[0] in _SIGNS:
        raise Malformed(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    key = _word(tokens)
    if wrong := key_problem(key):
        said = f'key: Invalid value: "{key}": {wrong}'
        raise Malformed(f"unable to parse requirement: {said}")
    if negated:
        return LabelRule(key=key, op="absent")
    if tokens[0] in {",", _END}:
        return LabelRule(key=key, op="exists")
    op = tokens.popleft()
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


def _listed(tokens: deque[str]) -> frozenset[str]:
    if tokens[0] != "(":
        raise Malformed(f"unable to parse requirement: found '{tokens[0]}' expected: '('")
    tokens.popleft()
    values: set[str] = set()
    while True:
        if tokens[0] in {",", ")"}:
            values.add("")
        else:
            values.add(_checked(_word(tokens)))
        if tokens[0] == ")":
            tokens.popleft()
            return frozenset(values)
        if tokens[0] != ",":
            found = "" if tokens[0] == _END else tokens[0]
            raise Malformed(f"unable to parse requirement: found '{found}', expected: ',' or ')'")
        tokens.popleft()


def parse_fields(text: str, *, group: str, kind: str, more: tuple[str, ...] = ()) -> tuple[FieldRule, ...]:
    """Read a field selector of one kind; Malformed names what it does not know."""
    known = (*_BY_KEY, *_SELECTABLE.get((group, kind), ()), *more)
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
        if path not in known:
            raise Malformed(_unknown_field(path, group, kind))
        plain = re.sub(r"\\([\\,=])", r"\1", value)
        rules.append(FieldRule(path=path, value=plain, equal=op != "!="))
    return tuple(rules)


def _unknown_field(path: str, group: str, kind: str) -> str:
    """Refuse in Kubernetes' words, which are others for built-in kinds that have no fields of their own."""
    is_plain = (not group or group.endswith(".k8s.io")) and (group, kind) not in _SELECTABLE
    if is_plain:
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {path}"


def matches(rules: tuple[LabelRule, ...], labels: Mapping[str, Any]) -> bool:
    """Tell whether labels satisfy every rule."""
    return all(rule.holds(labels) for rule in rules)


class LabelMatcher:
    """Many rules, sorted by what they need: an object costs as many steps as it has labels, not as there are rules."""

    def __init__(self, rules: tuple[LabelRule, ...]) -> None:
        self._absent = frozenset(rule.key for rule in rules if rule.op == "absent")
        self._needed: dict[str, list[LabelRule]] = {}
        self._unwanted: dict[str, set[str]] = {}
        for rule in dict.fromkeys(rules):
            if rule.op == "notin":
                self._unwanted.setdefault(rule.key, set()).update(rule.values)
            elif rule.op != "absent":
                self._needed.setdefault(rule.key, []).append(rule)
        for key, needed in self._needed.items():
            self._needed[key] = self._joined(key, needed)

    def _joined(self, key: str, rules: list[LabelRule]) -> list[LabelRule]:
        """Return as few rules as say the same about one key."""
        sets = [rule.values for rule in rules if rule.op == "in"]
        joined = [LabelRule(key=key, op="in", values=frozenset.intersection(*sets))] if sets else []
        for op, sharpest in ((">", max), ("<", min)):
            if bounds := [next(iter(rule.values)) for rule in rules if rule.op == op]:
                joined.append(LabelRule(key=key, op=op, values=frozenset({sharpest(bounds, key=int)})))
        return joined or [LabelRule(key=key, op="exists")]

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Tell whether labels satisfy every rule."""
        if len(self._needed) > len(labels):
            return False
        for key, value in labels.items():
            if value is None:
                continue
            if key in self._absent or (key in self._unwanted and value in self._unwanted[key]):
                return False
        return all(rule.holds(labels) for rules in self._needed.values() for rule in rules)


class FieldMatcher:
    """Many rules about fields: each field is looked up once."""

    def __init__(self, rules: tuple[FieldRule, ...]) -> None:
        self._rules: list[FieldRule] = []
        self._unwanted: dict[str, set[str]] = {}
        for rule in dict.fromkeys(rules):
            if rule.equal:
                self._rules.append(rule)
            else:
                self._unwanted.setdefault(rule.path, set()).add(rule.value)
        # Two values of one field: nothing has both.
        self._is_possible = len({rule.path for rule in self._rules}) == len(self._rules)

    def matches(self, text_of: Callable[[str], str]) -> bool:
        """Tell whether fields, given as text by their path, satisfy every rule."""
        return (
            self._is_possible
            and all(text_of(rule.path) == rule.value for rule in self._rules)
            and all(text_of(path) not in values for path, values in self._unwanted.items())
        )


def _tokens(text: str) -> deque[str]:
    found: deque[str] = deque()
    at = 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Malformed(f"unable to parse the label selector at '{text[at:]}'")
        found.append(match[1] or match[2])
        at = match.end()
    found.append(_END)
    return found


def _word(tokens: deque[str]) -> str:
    token = tokens.popleft() if tokens[0] != _END else ""
    if not token or token in _SIGNS:
        raise Malformed(f"unable to parse requirement: found '{token}', expected: identifier")
    return token


def _expect(tokens: deque[str], sign: str) -> None:
    if tokens[0] != sign:
        raise Malformed(f"found '{tokens[0]}', expected: ',' or 'end of string'")
    tokens.popleft()


def _checked(value: str) -> str:
    if wrong := value_problem(value):
        raise Malformed(f'unable to parse requirement: values: Invalid value: "{value}": {wrong}')
    return value


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None
