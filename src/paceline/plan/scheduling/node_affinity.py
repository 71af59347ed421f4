"""Which nodes a pod may run on: node selector, node affinity and tolerations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.selector import expression_rule

NOT_READY = "node.kubernetes.io/not-ready"
# Taints with another effect do not prevent scheduling.
HARD = frozenset({"NoSchedule", "NoExecute"})

Terms = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirements:
    """The requirements of a pod about its node."""

    selector: Mapping[str, str] = field(default_factory=dict)
    # One of these must hold; no terms at all hold everywhere.
    terms: Terms = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()


def wishes_of(spec: Mapping[str, Any]) -> NodeRequirements:
    """Return the requirements in a pod's spec."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return NodeRequirements(
        selector=dict(spec.get("nodeSelector") or {}),
        terms=tuple(required.get("nodeSelectorTerms") or ()),
        tolerations=tuple(spec.get("tolerations") or ()),
    )


def taints_of(spec: Mapping[str, Any]) -> tuple[Taint, ...]:
    """Return the taints of a node that prevent scheduling."""
    taints = (
        Taint(key=str(taint["key"]), value=str(taint.get("value") or ""), effect=str(taint["effect"]))
        for taint in spec.get("taints") or ()
    )
    return tuple(taint for taint in taints if taint.effect in HARD)


def why_not_schedulable(
    wishes: NodeRequirements, *, node: str, labels: Mapping[str, str], taints: Iterable[Taint]
) -> str:
    """Return why a pod does not fit a node's labels or taints; empty when it does."""
    if missing := sorted(wishes.selector.items() - labels.items()):
        return f"no node has the labels {', '.join(f'{name}={value}' for name, value in missing)}"
    if wishes.terms and not any(_holds(term, node, labels) for term in wishes.terms):
        return f"no node matches the affinity {' or '.join(_spelled(term) for term in wishes.terms)}"
    for taint in taints:
        if not any(_tolerates(toleration, taint) for toleration in wishes.tolerations):
            if taint.key == NOT_READY:
                return "no node is ready"
            return f"every node has a taint that the pod does not tolerate: {taint}"
    return ""


def _holds(term: Mapping[str, Any], node: str, labels: Mapping[str, str]) -> bool:
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_label and not by_field:
        # Kubernetes: an empty term matches nothing.
        return False
    fields = {"metadata.name": node}
    return all(_meets(expression, labels) for expression in by_label) and all(
        _meets(expression, fields) for expression in by_field
    )


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    try:
        return expression_rule(expression).holds(labels)
    except KeyError:
        return False


def _spelled(term: Mapping[str, Any]) -> str:
    expressions = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
    parts = (
        f"{expression.get('key')} {expression.get('operator')} [{', '.join(expression.get('values') or ())}]"
        for expression in expressions
    )
    return " and ".join(parts) or "(an empty term, which matches nothing)"


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    if effect and effect != taint.effect:
        return False
    if key and key != taint.key:
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return bool(key) and str(toleration.get("value") or "") == taint.value
