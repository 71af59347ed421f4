"""Connection factories: every thread opens its own connection to the cluster."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.client.http.transport import Unreachable
from paceline.client.rest_config import from_json
from paceline.client.sync import DirectCluster, ignore_warning
from paceline.errors import HostError

__all__ = ["ClusterConnection", "ConnectAddress", "Unreachable", "embedded_address", "kubeconfig_in"]

ClusterConnection = Callable[[], DirectCluster]
OnWarning = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectAddress:
    """How to connect to a cluster, and the default namespace of its kubeconfig."""

    dial: ClusterConnection
    namespace: str


def embedded_address(home: str | Path | None = None, *, on_warning: OnWarning = ignore_warning) -> ConnectAddress:
    """Return how to connect to the embedded cluster under `home`. Its kubeconfig is JSON and needs no YAML reader."""
    path = kubeconfig_in(home)
    access = from_json(path, Path.read_bytes)
    if access is None:
        raise HostError(
            f"{path} is not valid JSON; stop the cluster with `paceline down` and start it again to restore the file"
        )
    return ConnectAddress(dial=lambda: DirectCluster(access, on_warning=on_warning), namespace=access.namespace)


def kubeconfig_in(home: str | Path | None) -> Path:
    """Return the kubeconfig of the embedded cluster; raise Unreachable if it was never started."""
    folder = Path(home).expanduser() if home else home_from(os.environ)
    path = folder / "kubeconfig"
    if not path.exists():
        raise Unreachable(f"no cluster has been started in {folder}; start one with `paceline up -d`")
    return path


def home_from(env: Mapping[str, str]) -> Path:
    """Return the folder of the embedded cluster: PACELINE_HOME, or `paceline` in the user's data folder."""
    if chosen := env.get("PACELINE_HOME"):
        return Path(chosen).expanduser().absolute()
    data = env.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data).absolute() / "paceline"
