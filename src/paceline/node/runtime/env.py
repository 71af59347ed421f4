"""The environment variables and the command of a container, computed as a kubelet does."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import container_named
from paceline.apimachinery.quantity import parse, whole
from paceline.node.host_info import ADDRESS, CannotStart, Host
from paceline.node.volumes.references import Sources

CONFIG_ERROR = "CreateContainerConfigError"
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable's value; `$$` is a dollar sign, and unknown names stay."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else env.get(match[1], match[0]), text)


def env_of(
    pod: Object,
    container: Object,
    sources: Sources,
    host: Host | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables in a container's spec; each may refer to earlier ones and to the defaults.

    There are no variables for services: their addresses do not work on this machine.
    """
    env: dict[str, str] = {}
    for block in container.get("envFrom") or ():
        env.update(_block(block, sources))
    for entry in container.get("env") or ():
        if "valueFrom" not in entry:
            env[str(entry["name"])] = expand(str(entry.get("value") or ""), {**(defaults or {}), **env})
        elif (value := _value(entry["valueFrom"], pod, container, (sources, host))) is not None:
            env[str(entry["name"])] = value
    if any("\0" in text for pair in env.items() for text in pair):
        raise CannotStart(CONFIG_ERROR, "an environment variable must not contain a NUL character")
    return env


def command_of(container: Object, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command and arguments of a container; an environment has no entry point to fall back on."""
    argv = (*(container.get("command") or ()), *(container.get("args") or ()))
    if not argv:
        problem = f"container {str(container.get('name') or '')!r} has no command"
        raise CannotStart("CreateContainerError", f"{problem}; an environment has no entry point: set `command`")
    return tuple(expand(str(argument), env) for argument in argv)


def _block(block: Mapping[str, Any], sources: Sources) -> Iterable[tuple[str, str]]:
    prefix = str(block.get("prefix") or "")
    for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
        if reference := block.get(field):
            data = sources.text(kind, reference["name"])
            if data is None and not reference.get("optional"):
                raise CannotStart(CONFIG_ERROR, f'{kind} "{reference["name"]}" not found')
            return [(prefix + key, value.decode(errors="replace")) for key, value in (data or {}).items()]
    return []


def _value(wire: Mapping[str, Any], pod: Object, container: Object, lookup: tuple[Sources, Host | None]) -> str | None:
    """Return the value of a `valueFrom`; None when it is optional and missing."""
    sources, host = lookup
    if reference := wire.get("fieldRef"):
        return field_of(pod, str(reference["fieldPath"]))
    if reference := wire.get("resourceFieldRef"):
        return resource_of(container_named(pod, reference.get("containerName")) or container, reference, host)
    for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if reference := wire.get(field):
            return _key(sources, kind, reference, namespace_of(pod))
    raise CannotStart(CONFIG_ERROR, f"valueFrom with {', '.join(wire) or 'nothing in it'} is not supported")


def _key(sources: Sources, kind: str, reference: Mapping[str, Any], namespace: str) -> str | None:
    data = sources.text(kind, reference["name"])
    value = None if data is None else data.get(reference["key"])
    if value is not None:
        return value.decode(errors="replace")
    if reference.get("optional"):
        return None
    if data is None:
        raise CannotStart(CONFIG_ERROR, f'{kind} "{reference["name"]}" not found')
    where = f"{'ConfigMap' if kind == 'configmap' else 'Secret'} {namespace}/{reference['name']}"
    raise CannotStart(CONFIG_ERROR, f"couldn't find key {reference['key']} in {where}")


def field_of(pod: Object, path: str) -> str:
    """Return a field of a pod that the downward API exposes."""
    maps = {"labels": labels_of, "annotations": annotations_of}
    if keyed := _KEYED.fullmatch(path):
        return maps[keyed[1]](pod).get(keyed[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        entries = sorted(maps[path.partition(".")[2]](pod).items())
        return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in entries)
    if path not in _FIELDS:
        supported = ", ".join(sorted(_FIELDS))
        raise CannotStart(CONFIG_ERROR, f"fieldRef {path!r} is not supported; supported are {supported}")
    return _FIELDS[path](pod)


def _in_status(name: str, default: str = "") -> Callable[[Object], str]:
    return lambda pod: str((pod.get("status") or {}).get(name) or default)


def _in_spec(name: str, default: str = "") -> Callable[[Object], str]:
    return lambda pod: str((pod.get("spec") or {}).get(name) or default)


_FIELDS: dict[str, Callable[[Object], str]] = {
    "metadata.name": name_of,
    "metadata.namespace": namespace_of,
    "metadata.uid": uid_of,
    "spec.nodeName": _in_spec("nodeName"),
    "spec.serviceAccountName": _in_spec("serviceAccountName", "default"),
    "status.hostIP": _in_status("hostIP", ADDRESS),
    "status.hostIPs": _in_status("hostIP", ADDRESS),
    "status.podIP": _in_status("podIP"),
    "status.podIPs": _in_status("podIP"),
}


def resource_of(container: Object, reference: Mapping[str, Any], host: Host | None) -> str:
    """Return a request or limit of a container, rounded up to whole divisors.

    A missing limit is the machine's capacity, and a missing request is 0.
    """
    kind, _, name = str(reference["resource"]).partition(".")
    amount = ((container.get("resources") or {}).get(kind) or {}).get(name)
    if amount is None and kind == "requests":
        amount = 0
    elif amount is None and host is not None:
        capacity = {"cpu": host.cpus, "memory": host.memory_bytes, "ephemeral-storage": host.disk_bytes or None}
        amount = capacity.get(name)
    if amount is None:
        name = str(container.get("name") or "")
        problem = f"container {name!r} has no such resource, and neither has the node"
        raise CannotStart(CONFIG_ERROR, f"resourceFieldRef {reference['resource']!r}: {problem}")
    # Kubernetes writes a divisor of zero when there is none.
    return str(whole(parse(amount) / (parse(reference.get("divisor") or "1") or 1)))
