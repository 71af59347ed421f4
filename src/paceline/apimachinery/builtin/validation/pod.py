"""Rules for pods that their types cannot say, in the words and the order of Kubernetes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.affinity import affinity_faults, spread_faults, tolerations_faults
from paceline.apimachinery.builtin.validation.container import containers_faults, identity_faults
from paceline.apimachinery.builtin.validation.values import between, choice_faults
from paceline.apimachinery.builtin.validation.volume import volumes_faults
from paceline.apimachinery.field_errors import duplicate, forbidden, invalid, required
from paceline.apimachinery.immutable_fields import changes
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import label_problem, labels_faults, subdomain_problem
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LARGEST = 2**31 - 1
_MOST_SYSCTL = 253
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_HOST_NETWORK_PORT = "must match `containerPort` when `hostNetwork` is true"

# What of a pod may change after it was created; everything else was decided when it was placed.
_MUTABLE = (
    "containers[*].image",
    "initContainers[*].image",
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
)
_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_faults(pod: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a pod."""
    return tuple(pod_spec_faults(pod.get("spec") or {}, "spec"))


def pod_spec_faults(spec: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with what a pod runs; also for the template of a pod, wherever it lies."""
    volumes: set[str] = set()
    yield from volumes_faults(spec.get("volumes"), f"{path}.volumes", volumes)
    yield from containers_faults(spec, path, volumes)
    if spec.get("hostNetwork"):
        yield from _host_network_faults(spec, path)
    yield from choice_faults(spec.get("restartPolicy"), _RESTART_POLICIES, f"{path}.restartPolicy")
    yield from choice_faults(spec.get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy")
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    yield from labels_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    yield from identity_faults(spec.get("securityContext") or {}, f"{path}.securityContext")
    yield from _sysctl_faults(spec.get("securityContext") or {}, f"{path}.securityContext.sysctls")
    yield from affinity_faults(spec.get("affinity") or {}, f"{path}.affinity")
    yield from spread_faults(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field) and (wrong := subdomain_problem(spec[field])):
            yield invalid(f"{path}.{field}", spec[field], wrong)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, between(1, _LARGEST))
    for field in ("hostname", "subdomain"):
        if spec.get(field) and (wrong := label_problem(spec[field])):
            yield invalid(f"{path}.{field}", spec[field], wrong)
    yield from tolerations_faults(spec.get("tolerations"), f"{path}.tolerations")
    if spec.get("priorityClassName") and (wrong := subdomain_problem(spec["priorityClassName"])):
        yield invalid(f"{path}.priorityClassName", spec["priorityClassName"], wrong)
    yield from choice_faults(spec.get("preemptionPolicy"), _PREEMPTION_POLICIES, f"{path}.preemptionPolicy")


def _sysctl_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, each in enumerate(context.get("sysctls") or ()):
        name = each.get("name") or ""
        if not name:
            yield required(f"{path}[{index}].name")
        elif not _SYSCTL.fullmatch(name):
            hint = f"must have at most {_MOST_SYSCTL} characters and match regex {_SYSCTL.pattern}"
            yield invalid(f"{path}[{index}].name", name, hint)
        elif name in taken:
            yield duplicate(f"{path}[{index}].name", name)
        taken.add(name)


def _host_network_faults(spec: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for index, container in enumerate(spec.get("containers") or ()):
        for at, port in enumerate(container.get("ports") or ()):
            number = port.get("containerPort")
            if port.get("hostPort", number) != number:
                where = f"{path}.containers[{index}].ports[{at}].hostPort"
                yield invalid(where, port["hostPort"], _HOST_NETWORK_PORT)


def pod_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a pod."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for field in ("containers", "initContainers"):
        if len(before.get(field) or ()) != len(after.get(field) or ()):
            hint = "pod updates may not add or remove containers"
            return (forbidden(f"spec.{field}", hint),)
    found: list[Fault] = []
    then, now = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if then is not None and now is None:
        hint = "must not update from a positive integer to nil value"
        found.append(invalid("spec.activeDeadlineSeconds", None, hint))
    elif then is not None and now is not None and now > then:
        found.append(invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value"))
    kept = {_but_seconds(each) for each in after.get("tolerations") or ()}
    if any(_but_seconds(each) not in kept for each in before.get("tolerations") or ()):
        hint = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden("spec.tolerations", hint))
    changed = changes(before, after, _MUTABLE)
    if changed:
        found.append(forbidden("spec", f"{_CHANGE}; changed: {', '.join(path for path, _ in changed)}"))
    return tuple(found)


def _but_seconds(toleration: Object) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")
