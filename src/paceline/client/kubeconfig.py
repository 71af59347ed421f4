"""Kubeconfigs as people have them: YAML, several files merged, or the files given to every pod."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from paceline.client.rest_config import Access, Read, choose, located, parse_json, read_file, unreadable
from paceline.errors import HostError

_POD_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")
POD_CA = _POD_FILES / "ca.crt"
_TOKEN = _POD_FILES / "token"
_LISTS = ("clusters", "users", "contexts")


def load(path: Path, read: Read, *, context: str = "") -> Access:
    """Read one kubeconfig file."""
    return choose(_parse(path, read_file(path, read)), read, context=context)


def discover(environ: Mapping[str, str], home: Path, read: Read, *, context: str = "") -> Access:
    """Find a cluster as kubectl does: KUBECONFIG, then ~/.kube/config, then the pod we run in."""
    listed = [Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part]
    configs = [
        config for path in listed or [home / ".kube" / "config"] if (config := _read_if_there(path, read)) is not None
    ]
    if configs:
        return choose(merge(configs), read, context=context)
    # Who names a context means a file.
    if environ.get("KUBERNETES_SERVICE_HOST") and not context:
        return in_cluster(environ, read)
    where = environ.get("KUBECONFIG") or home / ".kube" / "config"
    raise HostError(f"no cluster is known: there is no {where}; set KUBECONFIG to a kubeconfig file")


def merge(configs: list[dict[str, Any]]) -> dict[str, Any]:
    """Make one config of several: of entries with one name, the first file's wins."""
    merged: dict[str, Any] = {}
    for config in configs:
        for part in _LISTS:
            names = {entry.get("name") for entry in merged.get(part, [])}
            new = [entry for entry in config.get(part) or [] if entry.get("name") not in names]
            merged[part] = [*merged.get(part, []), *new]
        for name, value in config.items():
            if name not in _LISTS and not merged.get(name):
                merged[name] = value
    return merged


def in_cluster(environ: Mapping[str, str], read: Read) -> Access:
    """Use the files that Kubernetes puts into every pod.

    The token runs out within the hour: whoever lives longer asks for the next one with `token_in_cluster`.
    """
    return Access(
        server=server_in_cluster(environ),
        ca=read_file(POD_CA, read),
        token=token_in_cluster(read),
        namespace=read_file(_POD_FILES / "namespace", read).decode().strip() or "default",
        is_of_pod=True,
    )


def server_in_cluster(environ: Mapping[str, str]) -> str:
    """Return the address of the API server that Kubernetes tells every pod; empty outside of a pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}" if host else ""


def token_in_cluster(read: Read) -> str:
    """Read the token that Kubernetes gives to the pod we run in."""
    return read_file(_TOKEN, read).decode().strip()


def _read_if_there(path: Path, read: Read) -> dict[str, Any] | None:
    try:
        return _parse(path, read(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    config = parse_json(data)
    return located(_parse_yaml(path, data) if config is None else config, path.parent)


def _parse_yaml(path: Path, data: bytes) -> dict[str, Any]:
    try:
        config = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise HostError(f"{path} is neither JSON nor YAML: {error}") from error
    if not isinstance(config, dict):
        raise HostError(f"{path} holds no mapping; is it a kubeconfig?")
    return config
