"""The environment and the command of a container, as a kubelet works them out."""

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


def expand(text: str, known: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by what is known; `$$` is a dollar sign, and an unknown name stays as it is."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else known.get(name, found[0])

    return _REFERENCE.sub(put, text)


def env_of(
    pod: Object,
    container: Object,
    sources: Sources,
    host: Host | None = None,
    *,
    told: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Work out the variables a container asks for; each may refer to those before it, and to what it is told anyway.

    Services are not among them: their addresses lead nowhere on this machine. The API server is told of elsewhere.
    """
    env: dict[str, str] = {}
    for block in container.get("envFrom") or ():
        env.update(_block(block, sources))
    for entry in container.get("env") or ():
        if "valueFrom" not in entry:
            env[str(entry["name"])] = expand(str(entry.get("value") or ""), {**(told or {}), **env})
        elif (value := _value(entry["valueFrom"], pod, container, (sources, host))) is not None:
            env[str(entry["name"])] = value
    if any("\0" in text for pair in env.items() for text in pair):
        said = "a variable of the environment holds a NUL character, which no program can be given"
        raise CannotStart(CONFIG_ERROR, said)
    return env


def command_of(container: Object, env: Mapping[str, str]) -> tuple[str, ...]:
    """Work out what is executed; without an image, a container must say so itself."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    if not words:
        said = f"container {name_in(container)!r} has no command"
        hint = "an environment has no entry point of its own: say what to run in `command`"
        raise CannotStart("CreateContainerError", f"{said}; {hint}")
    return tuple(expand(str(word), env) for word in words)


def name_in(container: Object) -> str:
    """Give a container's name."""
    return str(container.get("name") or "")


def _block(block: Mapping[str, Any], sources: Sources) -> Iterable[tuple[str, str]]:
    prefix = str(block.get("prefix") or "")
    for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
        if reference := block.get(field):
            data = sources.text(kind, reference["name"])
            if data is None and not reference.get("optional"):
                raise CannotStart(CONFIG_ERROR, f'{kind} "{reference["name"]}" not found')
            return [(prefix + key, value.decode(errors="replace")) for key, value in (data or {}).items()]
    return []


def _value(wire: Mapping[str, Any], pod: Object, container: Object, found: tuple[Sources, Host | None]) -> str | None:
    """Look a value up; None when it is optional and not there."""
    sources, host = found
    if reference := wire.get("fieldRef"):
        return field_of(pod, str(reference["fieldPath"]))
    if reference := wire.get("resourceFieldRef"):
        return resource_of(container_named(pod, reference.get("containerName")) or container, reference, host)
    for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if reference := wire.get(field):
            return _key(sources, kind, reference, namespace_of(pod))
    raise CannotStart(CONFIG_ERROR, f"valueFrom with {', '.join(wire) or 'nothing in it'} is not offered")


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
    """Read one of the fields that a pod may be told about itself."""
    if keyed := _KEYED.fullmatch(path):
        told = labels_of(pod) if keyed[1] == "labels" else annotations_of(pod)
        return told.get(keyed[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        told = labels_of(pod) if path == "metadata.labels" else annotations_of(pod)
        return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(told.items()))
    if path not in _FIELDS:
        said = f"fieldRef {path!r} is not offered; offered are {', '.join(sorted(_FIELDS))}"
        raise CannotStart(CONFIG_ERROR, said)
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
    """Read what a container asks for or may have, rounded up to whole divisors.

    No limit is all that the machine has, and no request is none.
    """
    kind, _, name = str(reference["resource"]).partition(".")
    amount = ((container.get("resources") or {}).get(kind) or {}).get(name)
    if amount is None and kind == "requests":
        amount = 0
    elif amount is None and host is not None:
        has = {"cpu": host.cpus, "memory": host.memory_bytes, "ephemeral-storage": host.disk_bytes or None}
        amount = has.get(name)
    if amount is None:
        said = f"resourceFieldRef {reference['resource']!r}: container {name_in(container)!r} does not say it"
        raise CannotStart(CONFIG_ERROR, said)
    # A divisor of zero is what Kubernetes writes for none.
    return str(whole(parse(amount) / (parse(reference.get("divisor") or "1") or 1)))
