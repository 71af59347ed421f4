"""Rules for where a pod wants to run and what it puts up with there."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import key_faults, selector_faults
from paceline.apimachinery.field_errors import forbidden, invalid, required, unsupported
from paceline.apimachinery.name_validation import key_problem, value_problem
from paceline.errors import Fault

_HIGHEST_WEIGHT = 100
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_IF_NOT = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def tolerations_faults(tolerations: Any, path: str) -> Iterator[Fault]:
    """Find what is wrong with what a pod puts up with."""
    for index, each in enumerate(tolerations or ()):
        where = f"{path}[{index}]"
        key, operator, value = each.get("key") or "", each.get("operator") or "", each.get("value") or ""
        effect = each.get("effect") or ""
        if key and (wrong := key_problem(key)):
            yield invalid(f"{where}.key", key, wrong)
        if not key and operator != "Exists":
            hint = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", operator, hint)
        if each.get("tolerationSeconds") is not None and effect != "NoExecute":
            hint = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", effect, hint)
        if operator in {"", "Equal"}:
            if wrong := value_problem(value):
                yield invalid(f"{where}.operator", value, wrong)
        elif operator == "Exists":
            if value:
                yield invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in EFFECTS:
            yield unsupported(f"{where}.effect", effect, EFFECTS)


def affinity_faults(affinity: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with which nodes and neighbours a pod wants."""
    yield from _node_faults(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        wanted = affinity.get(field) or {}
        for index, term in enumerate(wanted.get(_REQUIRED) or ()):
            yield from _neighbour_faults(term, f"{path}.{field}.{_REQUIRED}[{index}]")
        for index, choice in enumerate(wanted.get(_PREFERRED) or ()):
            where = f"{path}.{field}.{_PREFERRED}[{index}]"
            yield from _weight_faults(choice, where)
            yield from _neighbour_faults(choice.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _node_faults(wanted: Mapping[str, Any], path: str) -> Iterator[Fault]:
    needed = wanted.get(_REQUIRED)
    if needed is not None:
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            yield required(where, "must have at least one node selector term")
        for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
            yield from _term_faults(term, f"{where}[{index}]")
    for index, choice in enumerate(wanted.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_faults(choice, where)
        yield from _term_faults(choice.get("preference") or {}, f"{where}.preference")


def _weight_faults(choice: Mapping[str, Any], path: str) -> Iterator[Fault]:
    weight = choice.get("weight") or 0
    if not 1 <= weight <= _HIGHEST_WEIGHT:
        yield invalid(f"{path}.weight", weight, f"must be in the range 1-{_HIGHEST_WEIGHT}")


def _term_faults(term: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, rule in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        operator, values = rule.get("operator") or "", rule.get("values") or ()
        match operator:
            case "In" | "NotIn":
                if not values:
                    yield required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    hint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    yield forbidden(f"{where}.values", hint)
            case "Gt" | "Lt":
                if len(values) != 1:
                    hint = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    yield required(f"{where}.values", hint)
            case _:
                yield invalid(f"{where}.operator", operator, "not a valid selector operator")
        yield from key_faults(rule.get("key") or "", f"{where}.key")


def _neighbour_faults(term: Mapping[str, Any], path: str) -> Iterator[Fault]:
    yield from selector_faults(term.get("labelSelector") or {}, f"{path}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_faults(key, f"{path}.topologyKey")


def spread_faults(constraints: Any, path: str) -> Iterator[Fault]:
    """Find what is wrong with how pods are to be spread."""
    for index, each in enumerate(constraints or ()):
        where = f"{path}[{index}]"
        if (each.get("maxSkew") or 0) <= 0:
            yield invalid(f"{where}.maxSkew", each.get("maxSkew") or 0, "must be greater than zero")
        if not each.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        if each.get("whenUnsatisfiable") not in _IF_NOT:
            yield unsupported(f"{where}.whenUnsatisfiable", each.get("whenUnsatisfiable") or "", _IF_NOT)
        yield from selector_faults(each.get("labelSelector") or {}, f"{where}.labelSelector")
