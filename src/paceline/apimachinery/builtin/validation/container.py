"""Rules for containers: their ports, variables, mounts, resources and probes."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import (
    at_least,
    between,
    data_key_problem,
    path_faults,
    port_faults,
    port_name_faults,
    port_or_name_faults,
)
from paceline.apimachinery.field_errors import (
    FieldFault,
    Problem,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import key_problem, label_problem, subdomain_problem
from paceline.apimachinery.quantity import parse
from paceline.errors import Fault

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_STANDARD = ("cpu", "ephemeral-storage", "memory")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_HIGHEST_ID = 2**31 - 1
_VARIABLE = re.compile(r"[ -<>-~]+")
_VARIABLE_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
# Known fields of a pod that no variable may have.
_OTHER_PATHS = ("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase")
_SUBSCRIPT = re.compile(r"metadata\.(annotations|labels)\['[^']+'\]")


def containers_faults(spec: Mapping[str, Any], path: str, volumes: Collection[str]) -> Iterator[Fault]:
    """Find what is wrong with the containers of a pod, those that run first too."""
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    taken: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}.containers[{index}]"
        yield from _container_faults(container, where, volumes)
        yield from _once(container, where, taken)
        yield from _life_faults(container, where)
    yield from _host_port_faults(containers, f"{path}.containers")
    for index, container in enumerate(spec.get("initContainers") or ()):
        where = f"{path}.initContainers[{index}]"
        yield from _container_faults(container, where, volumes)
        yield from _first_faults(container, where)
        yield from _once(container, where, taken)


def _once(container: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    name = container.get("name") or ""
    if name in taken:
        yield duplicate(f"{path}.name", name)
    elif name:
        taken.add(name)


def _container_faults(container: Object, path: str, volumes: Collection[str]) -> Iterator[Fault]:
    name = container.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif wrong := label_problem(name):
        yield invalid(f"{path}.name", name, wrong)
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy")
    if policy and policy not in _MESSAGE_POLICIES:
        yield unsupported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    ports: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port_faults(port, f"{path}.ports[{index}]", ports)
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _variables_faults(source, f"{path}.envFrom[{index}]")
    yield from _mount_faults(container, path, volumes)
    pull = container.get("imagePullPolicy")
    if pull and pull not in _PULL_POLICIES:
        yield unsupported(f"{path}.imagePullPolicy", pull, _PULL_POLICIES)
    yield from resources_faults(container.get("resources") or {}, f"{path}.resources")
    context = container.get("securityContext") or {}
    yield from identity_faults(context, f"{path}.securityContext")
    yield from _power_faults(context, f"{path}.securityContext")


def identity_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find users and groups that cannot be."""
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        number = context.get(field)
        if number is not None and not 0 <= number <= _HIGHEST_ID:
            yield invalid(f"{path}.{field}", number, between(0, _HIGHEST_ID))
    if (profile := context.get("seccompProfile")) is not None:
        yield from _profile_faults(profile, f"{path}.seccompProfile")


def _profile_faults(profile: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with the choice of a system call filter."""
    kind, file = profile.get("type"), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{path}.type", kind, _PROFILES)
    if kind == "Localhost":
        if not file:
            yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        elif file.startswith("/"):
            yield invalid(f"{path}.localhostProfile", file, "must be a relative path")
        elif ".." in file.split("/"):
            yield invalid(f"{path}.localhostProfile", file, "must not contain '..'")
    elif file is not None:
        yield invalid(f"{path}.localhostProfile", file, "can only be set when seccomp type is Localhost")


def _power_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what contradicts itself in what a container may do."""
    if (mount := context.get("procMount")) and mount not in _PROC_MOUNTS:
        yield unsupported(f"{path}.procMount", mount, _PROC_MOUNTS)
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        hint = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(path, context, hint)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        hint = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid(path, context, hint)


def _first_faults(container: Object, path: str) -> Iterator[Fault]:
    """Find what a container that runs before the others may not have, unless it runs on beside them."""
    policy = container.get("restartPolicy")
    if policy == "Always":
        yield from _life_faults(container, path)
        return
    if policy and policy not in {"Never", "OnFailure"}:
        yield unsupported(f"{path}.restartPolicy", policy, ("Always",))
    for field in ("lifecycle", *_PROBES):
        if container.get(field) is not None:
            yield forbidden(f"{path}.{field}", "may not be set for init containers without restartPolicy=Always")


def _life_faults(container: Object, path: str) -> Iterator[Fault]:
    for moment in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(moment)
        if handler is not None:
            yield from _handler_faults(handler, f"{path}.lifecycle.{moment}")
    for field in _PROBES:
        probe = container.get(field)
        if probe is None:
            continue
        where = f"{path}.{field}"
        yield from _handler_faults(probe, where)
        for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
            if (probe.get(name) or 0) < 0:
                yield invalid(f"{where}.{name}", probe[name], at_least(0))
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and field == "readinessProbe":
            hint = "must not be set for readinessProbes"
            yield invalid(f"{where}.terminationGracePeriodSeconds", grace, hint)
        elif grace is not None and grace <= 0:
            yield invalid(f"{where}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if field != "readinessProbe" and probe.get("successThreshold", 1) != 1:
            yield invalid(f"{where}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_faults(handler: Mapping[str, Any], path: str) -> Iterator[Fault]:
    found = [name for name in _HANDLERS if handler.get(name) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    for name in found[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    action, where = handler[found[0]], f"{path}.{found[0]}"
    match found[0]:
        case "exec":
            if not action.get("command"):
                yield required(f"{where}.command")
        case "httpGet":
            yield from port_or_name_faults(action.get("port", 0), f"{where}.port")
            scheme = action.get("scheme") or "HTTP"
            if scheme not in {"HTTP", "HTTPS"}:
                yield unsupported(f"{where}.scheme", scheme, ("HTTP", "HTTPS"))
        case "tcpSocket":
            yield from port_or_name_faults(action.get("port", 0), f"{where}.port")
        case "grpc":
            yield from port_faults(action.get("port", 0), f"{where}.port")


def _port_faults(port: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    name = port.get("name") or ""
    wrong = tuple(port_name_faults(name, f"{path}.name")) if name else ()
    yield from wrong
    if name in taken:
        yield duplicate(f"{path}.name", name)
    elif name and not wrong:
        taken.add(name)
    if not port.get("containerPort"):
        yield required(f"{path}.containerPort")
    else:
        yield from port_faults(port["containerPort"], f"{path}.containerPort")
    if port.get("hostPort"):
        yield from port_faults(port["hostPort"], f"{path}.hostPort")
    protocol = port.get("protocol") or "TCP"
    if protocol not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", protocol, PROTOCOLS)


def _host_port_faults(containers: Collection[Object], path: str) -> Iterator[Fault]:
    """Find ports of the machine that two containers of one pod want."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            wanted = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if wanted in taken:
                yield duplicate(f"{path}[{index}].ports[{at}].hostPort", wanted)
            taken.add(wanted)


def _variable_faults(variable: Object, path: str) -> Iterator[Fault]:
    name = variable.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif not _VARIABLE.fullmatch(name):
        yield invalid(f"{path}.name", name, _VARIABLE_RULE)
    source = variable.get("valueFrom")
    if source is None:
        return
    where = f"{path}.valueFrom"
    found = [each for each in _SOURCES if source.get(each) is not None]
    for each in found:
        yield from _source_faults(each, source[each], f"{where}.{each}")
    if not found:
        hint = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(where, "", hint)
    elif variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield invalid(where, "", "may not have more than one field specified at a time")


def _field_path_faults(at: str, path: str) -> Iterator[Fault]:
    if not at:
        yield required(path)
    elif at in _OTHER_PATHS:
        listed = ", ".join(f'"{each}"' for each in _FIELD_PATHS)
        yield FieldFault(path, at, f"supported values: {listed}", Problem.UNSUPPORTED)
    elif at not in _FIELD_PATHS and not _SUBSCRIPT.fullmatch(at):
        yield invalid(path, at, f"error converting fieldPath: field label not supported: {at}")


def _source_faults(name: str, source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    match name:
        case "fieldRef":
            yield from _field_path_faults(source.get("fieldPath") or "", f"{path}.fieldPath")
        case "resourceFieldRef":
            if not source.get("resource"):
                yield required(f"{path}.resource")
        case "configMapKeyRef" | "secretKeyRef":
            if wrong := subdomain_problem(source.get("name") or ""):
                yield invalid(f"{path}.name", source.get("name") or "", wrong)
            key = source.get("key") or ""
            if not key:
                yield required(f"{path}.key")
            elif wrong := data_key_problem(key):
                yield invalid(f"{path}.key", key, wrong)


def _variables_faults(source: Object, path: str) -> Iterator[Fault]:
    prefix = source.get("prefix") or ""
    if prefix and not _VARIABLE.fullmatch(prefix):
        yield invalid(f"{path}.prefix", prefix, _VARIABLE_RULE)
    found = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
    for each in found:
        if not source[each].get("name"):
            yield required(f"{path}.{each}.name")
    if not found:
        # Kubernetes leaves the index out here.
        yield invalid(path.rpartition("[")[0], "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(found) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _mount_faults(container: Object, path: str, volumes: Collection[str]) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{index}]"
        name, at = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found(f"{where}.name", name)
        if not at:
            yield required(f"{where}.mountPath")
        if at in taken:
            yield invalid(f"{where}.mountPath", at, "must be unique")
        taken.add(at)
        for field in ("subPath", "subPathExpr"):
            # Kubernetes leaves the index out here.
            yield from path_faults(mount.get(field) or "", f"{path}.volumeMounts.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            hint = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{where}.subPathExpr", mount["subPathExpr"], hint)


def resources_faults(resources: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find what is wrong with what a container asks for."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for which, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            where = f"{path}.{which}[{name}]"
            yield from _resource_name_faults(name, where)
            yield from _amount_faults(name, amount, where)
            if which == "requests":
                yield from _request_faults(name, amount, limits, path)


def _resource_name_faults(name: str, path: str) -> Iterator[Fault]:
    if wrong := key_problem(name):
        yield invalid(path, name, wrong)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, "must be a standard resource for containers")


def _amount_faults(name: str, amount: Any, path: str) -> Iterator[Fault]:
    value = parse(amount)
    if value < 0:
        yield invalid(path, str(amount), at_least(0))
    if "/" in name and value != value.to_integral_value():
        yield invalid(path, str(amount), "must be an integer")


def _request_faults(name: str, amount: Any, limits: Mapping[str, Any], path: str) -> Iterator[Fault]:
    may_differ = "/" not in name and not name.startswith("hugepages-")
    if name not in limits:
        if not may_differ:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    asked, limit = parse(amount), parse(limits[name])
    if asked != limit and not may_differ:
        yield invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limits[name]}")
    elif asked > limit:
        hint = f"must be less than or equal to {name} limit of {limits[name]}"
        yield invalid(f"{path}.requests", str(amount), hint)
