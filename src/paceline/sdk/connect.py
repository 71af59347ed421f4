"""Find a cluster and connect to it: the embedded one of this user, or the one a kubeconfig names."""

from collections.abc import Callable
from pathlib import Path

from paceline.client import kubeconfig as files
from paceline.client.direct import DirectCluster, ignore_warning
from paceline.sdk.embedded import kubeconfig_in
from paceline.sdk.manifest import read_file
from paceline.sdk.session import Session


def connect(
    home: str | Path | None = None,
    *,
    kubeconfig: str | Path | None = None,
    namespace: str = "",
    on_warning: Callable[[str], None] = ignore_warning,
) -> Session:
    """Connect to the cluster of `kubeconfig`, or else to the embedded one under `home` (PACELINE_HOME).

    Nothing is sent yet: Unreached comes from the first call when nobody answers.
    """
    path = Path(kubeconfig).expanduser() if kubeconfig else kubeconfig_in(home)
    found = files.load(path, Path.read_bytes)
    return Session(
        lambda: DirectCluster(found, on_warning=on_warning),
        namespace or found.namespace,
        read=read_file,
    )
