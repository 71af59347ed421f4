"""What it takes to be let into a cluster, and the reading of kubeconfigs that are JSON.

Kept apart from kubeconfig.py so that a command that finds JSON never pays for YAML.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from paceline.apimachinery.field_errors import nearest
from paceline.errors import HostError

Read = Callable[[Path], bytes]

# What a user entry may hold that is not read yet, and what to do until then.
_LATER = {
    "exec": "log in with a token or a client certificate",
    "auth-provider": "log in with a token or a client certificate",
    "tokenFile": "write the token itself into the kubeconfig as `token`",
    "username": "log in with a token or a client certificate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a cluster is, how to know it, and how to be known there. Certificates and keys are PEM."""

    server: str
    ca: bytes = b""
    token: str = field(default="", repr=False)
    client_certificate: bytes = b""
    client_key: bytes = field(default=b"", repr=False)
    namespace: str = "default"
    is_insecure: bool = False
    tls_server_name: str = ""
    # Whether it is what a pod is given to reach its own cluster: its token is replaced in time.
    is_of_pod: bool = False


def from_json(path: Path, read: Read, *, context: str = "") -> Access | None:
    """Read a kubeconfig file that is written as JSON; None when it is not JSON."""
    config = parse_json(read_file(path, read))
    if config is None:
        return None
    return choose(located(config, path.parent), read, context=context)


def parse_json(data: bytes) -> dict[str, Any] | None:
    """Return the mapping a text holds as JSON; None when it holds something else."""
    try:
        config = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return config if isinstance(config, dict) else None


def read_file(path: Path, read: Read) -> bytes:
    """Read a file that a person has named; HostError says which one cannot be read."""
    try:
        return read(path)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> HostError:
    """Return the error for a file that cannot be read."""
    return HostError(f"cannot read {path}: {error.strerror or error}; is the path right?")


def located(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the config with its file names made absolute, as they stand relative to its own folder."""
    moved = dict(config)
    for part, inner in (("clusters", "cluster"), ("users", "user")):
        moved[part] = [{**entry, inner: _absolute(entry.get(inner), folder)} for entry in _entries(config, part)]
    return moved


def choose(config: Mapping[str, Any], read: Read, *, context: str = "") -> Access:
    """Return the access that a context names; without a name, the current one."""
    name = context or str(config.get("current-context") or "")
    if not name:
        names = _names(config, "contexts")
        raise HostError(f"the kubeconfig has no current-context; name one of these with --context: {names}")
    chosen = _find(config, "contexts", name)
    cluster = _find(config, "clusters", str(chosen.get("cluster") or ""))
    # A context may name no user: some clusters let everybody in.
    user_name = str(chosen.get("user") or "")
    user = _find(config, "users", user_name) if user_name else {}
    return _access(cluster, user, read, namespace=str(chosen.get("namespace") or "default"))


def _access(cluster: Mapping[str, Any], user: Mapping[str, Any], read: Read, *, namespace: str) -> Access:
    if cluster.get("proxy-url"):
        raise HostError("the kubeconfig asks for a proxy-url, which is not supported yet")
    for name, instead in _LATER.items():
        # kubectl, too, prefers a token that is spelled out.
        if user.get(name) and not user.get("token"):
            message = f"the kubeconfig's user has `{name}`, which is not supported yet; {instead}"
            raise HostError(message)
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        message = f"the kubeconfig's server is {server!r}; a URL such as https://10.0.0.1:6443 is needed"
        raise HostError(message)
    return Access(
        server=server.rstrip("/"),
        ca=_data(cluster, "certificate-authority", read),
        token=str(user.get("token") or ""),
        client_certificate=_data(user, "client-certificate", read),
        client_key=_data(user, "client-key", read),
        namespace=namespace,
        is_insecure=cluster.get("insecure-skip-tls-verify") is True,
        tls_server_name=str(cluster.get("tls-server-name") or ""),
    )


def _data(entry: Mapping[str, Any], name: str, read: Read) -> bytes:
    """Return what stands in the entry itself as base64, or else in the file that it names."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise HostError(f"the kubeconfig's {name}-data is not base64: {error}") from error
    path = entry.get(name)
    return read_file(Path(path), read) if path else b""


def _absolute(entry: Any, folder: Path) -> dict[str, Any]:
    files = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    mapping = entry if isinstance(entry, dict) else {}
    return {name: str(folder / value) if name in files and value else value for name, value in mapping.items()}


def _find(config: Mapping[str, Any], part: str, name: str) -> Mapping[str, Any]:
    for entry in _entries(config, part):
        if entry.get("name") == name:
            inner = entry.get(part.removesuffix("s"))
            return inner if isinstance(inner, dict) else {}
    names = [str(entry.get("name")) for entry in _entries(config, part)]
    suggestion = nearest(name, names)
    hint = f"did you mean {suggestion!r}? It has: " if suggestion else "it has: "
    raise HostError(f"the kubeconfig has no {part.removesuffix('s')} named {name!r}; {hint}{_names(config, part)}")


def _names(config: Mapping[str, Any], part: str) -> str:
    return ", ".join(str(entry.get("name")) for entry in _entries(config, part)) or "none"


def _entries(config: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    entries = config.get(part) or []
    if not isinstance(entries, list):
        raise HostError(f"the kubeconfig's `{part}` is not a list; is it a kubeconfig?")
    return [entry for entry in entries if isinstance(entry, dict)]
