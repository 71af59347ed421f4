"""Rules for pods that their types do not express, in the order of Kubernetes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.container import containers_faults, identity_faults
from paceline.apimachinery.builtin.validation.storage import volumes_faults
from paceline.apimachinery.builtin.validation.values import (
    between,
    choice_faults,
    expression_faults,
    key_faults,
    name_faults,
    once,
    selector_faults,
)
from paceline.apimachinery.field_errors import changes, forbidden, invalid, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import (
    key_problem,
    label_problem,
    labels_faults,
    subdomain_problem,
    value_problem,
)
from paceline.errors import Fault

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HIGHEST_WEIGHT = 100
_LARGEST = 2**31 - 1
_MOST_SYSCTL = 253
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")

# The fields of a pod's spec that may change after it was created; the scheduler relied on all others.
_MUTABLE = (
    "containers[*].image",
    "initContainers[*].image",
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
)
_CHANGE = (
    "pod updates may not change fields other than images, activeDeadlineSeconds, terminationGracePeriodSeconds "
    "and additional tolerations"
)


def pod_faults(pod: Object) -> Iterator[Fault]:
    """Yield the faults of a pod."""
    spec = pod.get("spec") or {}
    volumes: set[str] = set()
    yield from volumes_faults(spec.get("volumes"), "spec.volumes", volumes)
    yield from containers_faults(spec, "spec", volumes)
    if spec.get("hostNetwork"):
        yield from _host_network_faults(spec)
    yield from choice_faults(spec.get("restartPolicy"), _RESTART_POLICIES, "spec.restartPolicy")
    yield from choice_faults(spec.get("dnsPolicy"), _DNS_POLICIES, "spec.dnsPolicy")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required("spec.dnsConfig", "must be set when `dnsPolicy` is None")
    yield from labels_faults(spec.get("nodeSelector") or {}, "spec.nodeSelector")
    context = spec.get("securityContext") or {}
    yield from identity_faults(context, "spec.securityContext")
    yield from _sysctl_faults(context, "spec.securityContext.sysctls")
    yield from _affinity_faults(spec.get("affinity") or {}, "spec.affinity")
    yield from _spread_faults(spec.get("topologySpreadConstraints"), "spec.topologySpreadConstraints")
    for field in ("serviceAccountName", "nodeName"):
        yield from name_faults(spec.get(field), f"spec.{field}", subdomain_problem, is_required=False)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        yield invalid("spec.activeDeadlineSeconds", deadline, between(1, _LARGEST))
    for field in ("hostname", "subdomain"):
        yield from name_faults(spec.get(field), f"spec.{field}", label_problem, is_required=False)
    yield from _tolerations_faults(spec.get("tolerations"), "spec.tolerations")
    class_name = spec.get("priorityClassName")
    yield from name_faults(class_name, "spec.priorityClassName", subdomain_problem, is_required=False)
    yield from choice_faults(spec.get("preemptionPolicy"), PREEMPTION_POLICIES, "spec.preemptionPolicy")


def _sysctl_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        where, name = f"{path}[{index}].name", sysctl.get("name") or ""
        if not name:
            yield required(where)
        elif not _SYSCTL.fullmatch(name):
            yield invalid(where, name, f"must have at most {_MOST_SYSCTL} characters and match {_SYSCTL.pattern}")
        else:
            yield from once(name, where, taken)


def _host_network_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("containerPort")
            if port.get("hostPort", number) != number:
                where = f"spec.containers[{index}].ports[{position}].hostPort"
                yield invalid(where, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def _tolerations_faults(tolerations: Any, path: str) -> Iterator[Fault]:
    for index, toleration in enumerate(tolerations or ()):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        yield from name_faults(key, f"{where}.key", key_problem, is_required=False)
        if not key and operator != "Exists":
            yield invalid(f"{where}.operator", operator, "must be Exists when `key` is empty, which matches all keys")
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield invalid(f"{where}.effect", effect, "must be 'NoExecute' when `tolerationSeconds` is set")
        if operator in {"", "Equal"}:
            if problem := value_problem(value):
                yield invalid(f"{where}.operator", value, problem)
        elif operator == "Exists":
            if value:
                yield invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        yield from choice_faults(effect, TAINT_EFFECTS, f"{where}.effect")


def _affinity_faults(affinity: Mapping[str, Any], path: str) -> Iterator[Fault]:
    yield from _node_affinity_faults(affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            yield from _pod_term_faults(term, f"{path}.{field}.{_REQUIRED}[{index}]")
        for index, choice in enumerate(terms.get(_PREFERRED) or ()):
            where = f"{path}.{field}.{_PREFERRED}[{index}]"
            yield from _weight_faults(choice, where)
            yield from _pod_term_faults(choice.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _node_affinity_faults(affinity: Mapping[str, Any], path: str) -> Iterator[Fault]:
    selector = affinity.get(_REQUIRED)
    if selector is not None:
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not selector.get("nodeSelectorTerms"):
            yield required(where, "must have at least one node selector term")
        for index, term in enumerate(selector.get("nodeSelectorTerms") or ()):
            yield from _node_term_faults(term, f"{where}[{index}]")
    for index, choice in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_faults(choice, where)
        yield from _node_term_faults(choice.get("preference") or {}, f"{where}.preference")


def _weight_faults(choice: Mapping[str, Any], path: str) -> Iterator[Fault]:
    weight = choice.get("weight") or 0
    if not 1 <= weight <= _HIGHEST_WEIGHT:
        yield invalid(f"{path}.weight", weight, f"must be in the range 1-{_HIGHEST_WEIGHT}")


def _node_term_faults(term: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, rule in enumerate(term.get("matchExpressions") or ()):
        yield from expression_faults(rule, f"{path}.matchExpressions[{index}]", compares=True)


def _pod_term_faults(term: Mapping[str, Any], path: str) -> Iterator[Fault]:
    yield from selector_faults(term.get("labelSelector") or {}, f"{path}.labelSelector")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_faults(key, f"{path}.topologyKey")


def _spread_faults(constraints: Any, path: str) -> Iterator[Fault]:
    for index, constraint in enumerate(constraints or ()):
        where = f"{path}[{index}]"
        skew, action = constraint.get("maxSkew") or 0, constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        if action not in _UNSATISFIABLE_ACTIONS:
            yield unsupported(f"{where}.whenUnsatisfiable", action, _UNSATISFIABLE_ACTIONS)
        yield from selector_faults(constraint.get("labelSelector") or {}, f"{where}.labelSelector")


def pod_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a pod."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    for field in ("containers", "initContainers"):
        if len(old_spec.get(field) or ()) != len(new_spec.get(field) or ()):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    old_deadline, deadline = old_spec.get("activeDeadlineSeconds"), new_spec.get("activeDeadlineSeconds")
    if old_deadline is not None and deadline is None:
        yield invalid("spec.activeDeadlineSeconds", None, "may not be removed once set")
    elif old_deadline is not None and deadline > old_deadline:
        yield invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to the previous value")
    tolerations = {_without_seconds(toleration) for toleration in new_spec.get("tolerations") or ()}
    if any(_without_seconds(toleration) not in tolerations for toleration in old_spec.get("tolerations") or ()):
        yield forbidden("spec.tolerations", "an existing toleration may change only its tolerationSeconds")
    if changed := changes(old_spec, new_spec, _MUTABLE):
        yield forbidden("spec", f"{_CHANGE}; changed: {', '.join(path for path, _ in changed)}")


def _without_seconds(toleration: Object) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")
