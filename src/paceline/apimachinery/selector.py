"""Label and field selectors of Kubernetes."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import key_problem, value_problem
from paceline.errors import BadRequest

_TOKEN = re.compile(r"\s*(?:(==|!=|=|!|,|\(|\)|<|>)|([^\s=!,()<>]+))\s*")
_SIGNS = frozenset({"==", "!=", "=", "!", ",", "(", ")", "<", ">"})
_END = "end of string"

# Field selectors of each built-in kind, besides metadata.name and metadata.namespace.
_SELECTABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    ),
    ("", "Event"): (
        *("involvedObject.apiVersion", "involvedObject.fieldPath", "involvedObject.kind", "involvedObject.name"),
        *("involvedObject.namespace", "involvedObject.resourceVersion", "involvedObject.uid"),
        *("reason", "reportingComponent", "source", "type"),
    ),
    ("", "Namespace"): ("status.phase",),
    ("", "Node"): ("spec.unschedulable",),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
}
# The operators of selectors in objects.
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent", "Gt": ">", "Lt": "<"}
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
        bound = next(iter(self.values), "")
        if not _is_integer(value) or not _is_integer(bound):
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
        return (field_text(obj, self.path) == self.value) is self.equal

    @property
    def is_by_key(self) -> bool:
        """Whether only the namespace or name is compared."""
        return self.path in _BY_KEY


def field_text(obj: Object, path: str) -> str:
    """Return a field of an object as the text that selectors compare."""
    value: Any = obj
    for step in _SHORT.get(path, path).split("."):
        value = value.get(step) if isinstance(value, dict) else None
    text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    return text or "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else text


def parse_labels(text: str) -> tuple[LabelRule, ...]:
    """Return the parsed label selector; raise BadRequest with what was expected where."""
    tokens = _tokens(text)
    rules: list[LabelRule] = []
    while tokens[0] != _END:
        rules.append(_rule(tokens))
        if tokens[0] == _END:
            break
        _take(tokens, ",", expected="',' or the end")
        if tokens[0] == _END:
            raise _unexpected(_END, "a key after ','")
    return tuple(rules)


def _rule(tokens: deque[str]) -> LabelRule:
    is_negated = tokens[0] == "!"
    if is_negated:
        tokens.popleft()
    key = _word(tokens)
    if problem := key_problem(key):
        raise BadRequest(f'invalid label selector: key "{key}" {problem}')
    if is_negated:
        return LabelRule(key=key, op="absent")
    if tokens[0] in {",", _END}:
        return LabelRule(key=key, op="exists")
    op = tokens.popleft()
    if op in {"in", "notin"}:
        return LabelRule(key=key, op=op, values=_listed(tokens))
    if op not in {"=", "==", "!=", "<", ">"}:
        raise _unexpected(op, "in, notin, =, ==, !=, < or >")
    value = "" if tokens[0] in {",", _END} else _word(tokens)
    if op in {"<", ">"}:
        if not _is_integer(value):
            raise _unexpected(value, f"an integer after '{op}'")
        return LabelRule(key=key, op=op, values=frozenset({value}))
    return LabelRule(key=key, op="notin" if op == "!=" else "in", values=frozenset({_checked(value)}))


def _listed(tokens: deque[str]) -> frozenset[str]:
    _take(tokens, "(", expected="'('")
    values: set[str] = set()
    while True:
        values.add("" if tokens[0] in {",", ")"} else _checked(_word(tokens)))
        if tokens[0] == ")":
            tokens.popleft()
            return frozenset(values)
        _take(tokens, ",", expected="',' or ')'")


def selector_rules(selector: Mapping[str, Any] | None) -> tuple[LabelRule, ...]:
    """Return the rules of a label selector in an object; it must be valid."""
    exact, expressions = ((selector or {}).get(part) or {} for part in ("matchLabels", "matchExpressions"))
    rules = (LabelRule(key=key, op="in", values=frozenset({str(value)})) for key, value in exact.items())
    return (*rules, *map(expression_rule, expressions))


def expression_rule(expression: Mapping[str, Any]) -> LabelRule:
    """Return the rule of an expression of a label or node selector; raise KeyError if there is no such operator."""
    values = frozenset(map(str, expression.get("values") or ()))
    return LabelRule(key=str(expression.get("key")), op=_OPERATORS[str(expression.get("operator"))], values=values)


def parse_fields(text: str, *, group: str, kind: str, selectable: tuple[str, ...] = ()) -> tuple[FieldRule, ...]:
    """Return the parsed field selector of a kind; raise BadRequest for an unknown field."""
    paths = (*_BY_KEY, *_SELECTABLE.get((group, kind), ()), *selectable)
    rules: list[FieldRule] = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = re.fullmatch(r"([^=!]*?)(!=|==|=)((?:[^=\\]|\\[\\,=])*)", part, re.DOTALL)
        if match is None:
            raise BadRequest(f"invalid field selector: '{part}' is not of the form path=value or path!=value")
        path, op, value = match.groups()
        if not path and not value:
            continue
        if path not in paths:
            raise BadRequest(f"field label not supported: {path}; supported: {', '.join(paths)}")
        plain = re.sub(r"\\([\\,=])", r"\1", value)
        rules.append(FieldRule(path=path, value=plain, equal=op != "!="))
    return tuple(rules)


def matches(rules: tuple[LabelRule, ...], labels: Mapping[str, Any]) -> bool:
    """Return whether labels satisfy every rule."""
    return all(rule.holds(labels) for rule in rules)


class LabelMatcher:
    """Many label rules, grouped by key: matching takes time by the labels of an object, not by the number of rules."""

    def __init__(self, rules: tuple[LabelRule, ...]) -> None:
        self._absent = frozenset(rule.key for rule in rules if rule.op == "absent")
        self._required: dict[str, list[LabelRule]] = {}
        self._excluded: dict[str, set[str]] = {}
        for rule in dict.fromkeys(rules):
            if rule.op == "notin":
                self._excluded.setdefault(rule.key, set()).update(rule.values)
            elif rule.op != "absent":
                self._required.setdefault(rule.key, []).append(rule)
        for key, key_rules in self._required.items():
            self._required[key] = self._joined(key, key_rules)

    def _joined(self, key: str, rules: list[LabelRule]) -> list[LabelRule]:
        """Return the fewest rules that are equivalent for one key."""
        sets = [rule.values for rule in rules if rule.op == "in"]
        joined = [LabelRule(key=key, op="in", values=frozenset.intersection(*sets))] if sets else []
        for op, strictest in ((">", max), ("<", min)):
            if bounds := [next(iter(rule.values)) for rule in rules if rule.op == op]:
                joined.append(LabelRule(key=key, op=op, values=frozenset({strictest(bounds, key=int)})))
        return joined or [LabelRule(key=key, op="exists")]

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Return whether labels satisfy every rule."""
        if len(self._required) > len(labels):
            return False
        for key, value in labels.items():
            if value is None:
                continue
            if key in self._absent or (key in self._excluded and value in self._excluded[key]):
                return False
        return all(rule.holds(labels) for rules in self._required.values() for rule in rules)


class FieldMatcher:
    """Many field rules: each field is looked up once."""

    def __init__(self, rules: tuple[FieldRule, ...]) -> None:
        self._rules: list[FieldRule] = []
        self._excluded: dict[str, set[str]] = {}
        for rule in dict.fromkeys(rules):
            if rule.equal:
                self._rules.append(rule)
            else:
                self._excluded.setdefault(rule.path, set()).add(rule.value)
        # No object has two values in one field.
        self._is_possible = len({rule.path for rule in self._rules}) == len(self._rules)

    def matches(self, text_of: Callable[[str], str]) -> bool:
        """Return whether fields, given as text by their path, satisfy every rule."""
        return (
            self._is_possible
            and all(text_of(rule.path) == rule.value for rule in self._rules)
            and all(text_of(path) not in values for path, values in self._excluded.items())
        )


def _tokens(text: str) -> deque[str]:
    tokens: deque[str] = deque()
    position = 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unexpected(text[position:], "a key or value")
        tokens.append(match[1] or match[2])
        position = match.end()
    tokens.append(_END)
    return tokens


def _word(tokens: deque[str]) -> str:
    token = tokens[0]
    if token == _END or token in _SIGNS:
        raise _unexpected(token, "a key or value")
    return tokens.popleft()


def _take(tokens: deque[str], sign: str, *, expected: str) -> None:
    if tokens[0] != sign:
        raise _unexpected(tokens[0], expected)
    tokens.popleft()


def _unexpected(token: str, expected: str) -> BadRequest:
    return BadRequest(f"invalid label selector: found '{token}', expected {expected}")


def _checked(value: str) -> str:
    if problem := value_problem(value):
        raise BadRequest(f'invalid label selector: value "{value}" {problem}')
    return value


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None
