"""Find a cluster and connect to it: the embedded one of this user, or the one a kubeconfig names."""

from pathlib import Path

from paceline.client import kubeconfig as files
from paceline.client.direct import DirectCluster, ignore_warning
from paceline.sdk.dial import Number, OnWarning, kubeconfig_in
from paceline.sdk.manifest import read_file
from paceline.sdk.session import Session


def connect(
    home: str | Path | None = None,
    *,
    kubeconfig: str | Path | None = None,
    namespace: str = "",
    on_warning: OnWarning = ignore_warning,
) -> Session:
    """Connect to the cluster of `kubeconfig`, or else to the embedded one under `home` (PACELINE_HOME).

    Nothing is sent yet: Unreached comes from the first call when nobody answers.
    """
    number = number_in(kubeconfig or kubeconfig_in(home), on_warning=on_warning)
    return Session(number.dial, namespace or number.namespace, read=read_file)


def number_in(kubeconfig: str | Path, *, on_warning: OnWarning = ignore_warning) -> Number:
    """Read how to dial the cluster of a kubeconfig, JSON or YAML."""
    found = files.load(Path(kubeconfig).expanduser(), Path.read_bytes)
    return Number(dial=lambda: DirectCluster(found, on_warning=on_warning), namespace=found.namespace)
