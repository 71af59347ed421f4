"""Connect to a cluster: the embedded one of this user, or one from a kubeconfig."""

import os
from pathlib import Path

from paceline.client import kubeconfig as files
from paceline.client.sync import DirectCluster, ignore_warning
from paceline.kinds import registry
from paceline.sdk.client import Session
from paceline.sdk.connection import ConnectAddress, OnWarning, kubeconfig_in
from paceline.sdk.submission.manifest import read_file


def connect(
    home: str | Path | None = None,
    *,
    kubeconfig: str | Path | None = None,
    context: str = "",
    namespace: str = "",
    on_warning: OnWarning = ignore_warning,
) -> Session:
    """Return a session with the cluster of `kubeconfig`, or with the embedded one under `home` (PACELINE_HOME).

    `context` selects one of several clusters; without a file, one of those in kubectl's kubeconfig.
    Nothing is sent yet: the first call raises Unreachable if the cluster does not respond.
    """
    file = kubeconfig or ("" if context else kubeconfig_in(home))
    number = address_in(file, context=context, on_warning=on_warning)
    return Session(number.dial, namespace or number.namespace, read=read_file, find_claim_faults=registry.claim_faults)


def address_in(kubeconfig: str | Path, *, context: str = "", on_warning: OnWarning = ignore_warning) -> ConnectAddress:
    """Return how to connect to the cluster of a kubeconfig; without a file, look for one as kubectl does."""
    if kubeconfig:
        access = files.load(Path(kubeconfig).expanduser(), Path.read_bytes, context=context)
    else:
        access = files.discover(os.environ, Path.home(), Path.read_bytes, context=context)
    return ConnectAddress(dial=lambda: DirectCluster(access, on_warning=on_warning), namespace=access.namespace)
