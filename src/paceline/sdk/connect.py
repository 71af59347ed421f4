"""Find a cluster and connect to it: the embedded one of this user, or the one a kubeconfig names."""

import os
from pathlib import Path

from paceline.client import kubeconfig as files
from paceline.client.sync import DirectCluster, ignore_warning
from paceline.sdk.client import Session
from paceline.sdk.connection import AttemptNumber, OnWarning, kubeconfig_in
from paceline.sdk.submission.manifest import read_file


def connect(
    home: str | Path | None = None,
    *,
    kubeconfig: str | Path | None = None,
    context: str = "",
    namespace: str = "",
    on_warning: OnWarning = ignore_warning,
) -> Session:
    """Connect to the cluster of `kubeconfig`, or else to the embedded one under `home` (PACELINE_HOME).

    `context` chooses one of several clusters; without a file, among those that kubectl knows.
    Nothing is sent yet: Unreached comes from the first call when nobody answers.
    """
    file = kubeconfig or ("" if context else kubeconfig_in(home))
    number = number_in(file, context=context, on_warning=on_warning)
    return Session(number.dial, namespace or number.namespace, read=read_file)


def number_in(kubeconfig: str | Path, *, context: str = "", on_warning: OnWarning = ignore_warning) -> AttemptNumber:
    """Read how to dial the cluster of a kubeconfig, JSON or YAML; without a file, find it as kubectl does."""
    if kubeconfig:
        access = files.load(Path(kubeconfig).expanduser(), Path.read_bytes, context=context)
    else:
        access = files.discover(os.environ, Path.home(), Path.read_bytes, context=context)
    return AttemptNumber(dial=lambda: DirectCluster(access, on_warning=on_warning), namespace=access.namespace)
