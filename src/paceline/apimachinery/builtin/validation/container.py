"""Rules for containers: their ports, variables, mounts, resources and probes."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from paceline.apimachinery.builtin.validation.values import (
    PROTOCOLS,
    at_least,
    between,
    choice_faults,
    data_key_problem,
    name_faults,
    once,
    path_faults,
    port_faults,
    port_name_faults,
    port_or_name_faults,
)
from paceline.apimachinery.field_errors import forbidden, invalid, not_found, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import key_problem, label_problem, subdomain_problem
from paceline.apimachinery.quantity import parse
from paceline.errors import Fault

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_STANDARD = ("cpu", "ephemeral-storage", "memory")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_HIGHEST_ID = 2**31 - 1
_VARIABLE = re.compile(r"[ -<>-~]+")
_VARIABLE_RULE = "a variable's name must consist of printable ASCII characters other than '='"
_ONE_FIELD = "may not have more than one field specified at a time"
_FIELD_PATHS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
# Fields of a pod that exist, but that no variable may refer to.
_OTHER_PATHS = ("metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase")
_SUBSCRIPT = re.compile(r"metadata\.(annotations|labels)\['[^']+'\]")


def containers_faults(spec: Mapping[str, Any], path: str, volumes: Collection[str]) -> Iterator[Fault]:
    """Yield the faults of a pod's containers and init containers."""
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    taken: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}.containers[{index}]"
        yield from _container_faults(container, where, volumes)
        yield from _name_faults(container, where, taken)
        yield from _lifecycle_faults(container, where)
    yield from _host_port_faults(containers, f"{path}.containers")
    for index, container in enumerate(spec.get("initContainers") or ()):
        where = f"{path}.initContainers[{index}]"
        yield from _container_faults(container, where, volumes)
        yield from _init_faults(container, where)
        yield from _name_faults(container, where, taken)


def _name_faults(container: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    if name := container.get("name"):
        yield from once(name, f"{path}.name", taken)


def _container_faults(container: Object, path: str, volumes: Collection[str]) -> Iterator[Fault]:
    yield from name_faults(container.get("name"), f"{path}.name", label_problem)
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy")
    yield from choice_faults(policy, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    ports: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port_faults(port, f"{path}.ports[{index}]", ports)
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _env_from_faults(source, f"{path}.envFrom[{index}]")
    yield from _mount_faults(container, path, volumes)
    yield from choice_faults(container.get("imagePullPolicy"), _PULL_POLICIES, f"{path}.imagePullPolicy")
    yield from _resources_faults(container.get("resources") or {}, f"{path}.resources")
    context = container.get("securityContext") or {}
    yield from identity_faults(context, f"{path}.securityContext")
    yield from _privilege_faults(context, f"{path}.securityContext")


def identity_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Yield the faults of the users, groups and seccomp profile of a security context."""
    for field in ("runAsUser", "runAsGroup", "fsGroup"):
        number = context.get(field)
        if number is not None and not 0 <= number <= _HIGHEST_ID:
            yield invalid(f"{path}.{field}", number, between(0, _HIGHEST_ID))
    if (profile := context.get("seccompProfile")) is not None:
        yield from _profile_faults(profile, f"{path}.seccompProfile")


def _profile_faults(profile: Mapping[str, Any], path: str) -> Iterator[Fault]:
    kind, file = profile.get("type"), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "must be set when seccompProfile is set")
    yield from choice_faults(kind, _PROFILES, f"{path}.type")
    if kind == "Localhost":
        if not file:
            yield required(f"{path}.localhostProfile", "must be set when the type is Localhost")
        yield from path_faults(file or "", f"{path}.localhostProfile")
    elif file is not None:
        yield invalid(f"{path}.localhostProfile", file, "may be set only when the type is Localhost")


def _privilege_faults(context: Mapping[str, Any], path: str) -> Iterator[Fault]:
    yield from choice_faults(context.get("procMount"), _PROC_MOUNTS, f"{path}.procMount")
    if context.get("allowPrivilegeEscalation") is not False:
        return
    conflict = "`allowPrivilegeEscalation` may not be false when"
    if context.get("privileged"):
        yield invalid(path, context, f"{conflict} `privileged` is true")
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        yield invalid(path, context, f"{conflict} `capabilities.add` contains CAP_SYS_ADMIN")


def _init_faults(container: Object, path: str) -> Iterator[Fault]:
    """Yield the faults of fields that only sidecars may have among the init containers."""
    policy = container.get("restartPolicy")
    if policy == "Always":
        yield from _lifecycle_faults(container, path)
        return
    if policy not in {None, "", "Never", "OnFailure"}:
        yield unsupported(f"{path}.restartPolicy", policy, ("Always",))
    for field in ("lifecycle", *_PROBES):
        if container.get(field) is not None:
            yield forbidden(f"{path}.{field}", "may not be set for init containers without restartPolicy=Always")


def _lifecycle_faults(container: Object, path: str) -> Iterator[Fault]:
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            yield from _handler_faults(handler, f"{path}.lifecycle.{hook}")
    for field in _PROBES:
        if container.get(field) is not None:
            yield from _probe_faults(container[field], f"{path}.{field}", is_readiness=field == "readinessProbe")


def _probe_faults(probe: Mapping[str, Any], path: str, *, is_readiness: bool) -> Iterator[Fault]:
    yield from _handler_faults(probe, path)
    for name in _PROBE_NUMBERS:
        if (probe.get(name) or 0) < 0:
            yield invalid(f"{path}.{name}", probe[name], at_least(0))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and is_readiness:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if not is_readiness and probe.get("successThreshold", 1) != 1:
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_faults(handler: Mapping[str, Any], path: str) -> Iterator[Fault]:
    names = [name for name in _HANDLERS if handler.get(name) is not None]
    if not names:
        yield required(path, "must specify a handler type")
        return
    for name in names[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    action, where = handler[names[0]], f"{path}.{names[0]}"
    match names[0]:
        case "exec":
            if not action.get("command"):
                yield required(f"{where}.command")
        case "httpGet":
            yield from port_or_name_faults(action.get("port", 0), f"{where}.port")
            yield from choice_faults(action.get("scheme"), ("HTTP", "HTTPS"), f"{where}.scheme")
        case "tcpSocket":
            yield from port_or_name_faults(action.get("port", 0), f"{where}.port")
        case "grpc":
            yield from port_faults(action.get("port", 0), f"{where}.port")


def _port_faults(port: Object, path: str, taken: set[str]) -> Iterator[Fault]:
    name = port.get("name") or ""
    name_problems = tuple(port_name_faults(name, f"{path}.name")) if name else ()
    yield from name_problems
    if name and not name_problems:
        yield from once(name, f"{path}.name", taken)
    if not port.get("containerPort"):
        yield required(f"{path}.containerPort")
    else:
        yield from port_faults(port["containerPort"], f"{path}.containerPort")
    if port.get("hostPort"):
        yield from port_faults(port["hostPort"], f"{path}.hostPort")
    yield from choice_faults(port.get("protocol"), PROTOCOLS, f"{path}.protocol")


def _host_port_faults(containers: Collection[Object], path: str) -> Iterator[Fault]:
    """Yield a fault for every host port that is used twice in one pod."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                identity = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port['hostPort']}"
                yield from once(identity, f"{path}[{index}].ports[{position}].hostPort", taken)


def _variable_faults(variable: Object, path: str) -> Iterator[Fault]:
    yield from name_faults(variable.get("name"), f"{path}.name", _variable_problem)
    source = variable.get("valueFrom")
    if source is None:
        return
    where = f"{path}.valueFrom"
    names = [name for name in _SOURCES if source.get(name) is not None]
    for name in names:
        yield from _source_faults(name, source[name], f"{where}.{name}")
    if not names:
        hint = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(where, "", hint)
    elif variable.get("value"):
        yield invalid(where, "", "may not be specified when `value` is not empty")
    elif len(names) > 1:
        yield invalid(where, "", _ONE_FIELD)


def _variable_problem(name: str) -> str:
    return "" if _VARIABLE.fullmatch(name) else _VARIABLE_RULE


def _source_faults(name: str, source: Mapping[str, Any], path: str) -> Iterator[Fault]:
    match name:
        case "fieldRef":
            yield from _field_path_faults(source.get("fieldPath") or "", f"{path}.fieldPath")
        case "resourceFieldRef":
            if not source.get("resource"):
                yield required(f"{path}.resource")
        case "configMapKeyRef" | "secretKeyRef":
            if problem := subdomain_problem(source.get("name") or ""):
                yield invalid(f"{path}.name", source.get("name") or "", problem)
            yield from name_faults(source.get("key"), f"{path}.key", data_key_problem)


def _field_path_faults(field_path: str, path: str) -> Iterator[Fault]:
    if not field_path:
        yield required(path)
    elif field_path in _OTHER_PATHS:
        yield unsupported(path, field_path, _FIELD_PATHS)
    elif field_path not in _FIELD_PATHS and not _SUBSCRIPT.fullmatch(field_path):
        yield invalid(path, field_path, "is not a field of a pod that a variable may refer to")


def _env_from_faults(source: Object, path: str) -> Iterator[Fault]:
    yield from name_faults(source.get("prefix"), f"{path}.prefix", _variable_problem, is_required=False)
    names = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
    for name in names:
        if not source[name].get("name"):
            yield required(f"{path}.{name}.name")
    if not names:
        # Kubernetes leaves the index out here.
        yield invalid(path.rpartition("[")[0], "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(names) > 1:
        yield invalid(path, "", _ONE_FIELD)


def _mount_faults(container: Object, path: str, volumes: Collection[str]) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{index}]"
        name, mount_path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found(f"{where}.name", name)
        if not mount_path:
            yield required(f"{where}.mountPath")
        if mount_path in taken:
            yield invalid(f"{where}.mountPath", mount_path, "must be unique")
        taken.add(mount_path)
        for field in ("subPath", "subPathExpr"):
            # Kubernetes leaves the index out here.
            yield from path_faults(mount.get(field) or "", f"{path}.volumeMounts.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield invalid(f"{where}.subPathExpr", mount["subPathExpr"], "may not be set together with subPath")


def _resources_faults(resources: Mapping[str, Any], path: str) -> Iterator[Fault]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            where = f"{path}.{field}[{name}]"
            yield from _amount_faults(name, amount, where)
            if field == "requests":
                yield from _request_faults(name, amount, limits, path)


def _amount_faults(name: str, amount: Any, path: str) -> Iterator[Fault]:
    if problem := key_problem(name):
        yield invalid(path, name, problem)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(path, name, f"must be {', '.join(_STANDARD)} or a name with a domain, such as nvidia.com/gpu")
    value = parse(amount)
    if value < 0:
        yield invalid(path, str(amount), at_least(0))
    if "/" in name and value != value.to_integral_value():
        yield invalid(path, str(amount), "must be an integer")


def _request_faults(name: str, amount: Any, limits: Mapping[str, Any], path: str) -> Iterator[Fault]:
    may_differ = "/" not in name and not name.startswith("hugepages-")
    if name not in limits:
        if not may_differ:
            yield required(f"{path}.limits", f"must be set for {name}, which may not be overcommitted")
        return
    request, limit = parse(amount), parse(limits[name])
    if request != limit and not may_differ:
        yield invalid(f"{path}.requests", str(amount), f"must be equal to {name} limit of {limits[name]}")
    elif request > limit:
        hint = f"must be less than or equal to {name} limit of {limits[name]}"
        yield invalid(f"{path}.requests", str(amount), hint)
