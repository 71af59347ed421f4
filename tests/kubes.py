"""Real kube-apiservers for tests that need one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.testing.definitions import define_kinds
from paceline.testing.real.kube import ALONE, RealKube, find_assets, real_kube


def assets_or_skip() -> Path:
    """Give the folder with the programs."""
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver: type `make kube`, or point KUBEBUILDER_ASSETS at one")
    return assets


@contextmanager
def kube_with_kinds(flags: Sequence[str] = ALONE) -> Iterator[RealKube]:
    """Run a fresh one that serves our kinds."""
    with real_kube(assets_or_skip(), flags) as kube:
        with DirectCluster(load(kube.kubeconfig, Path.read_bytes)) as cluster:
            define_kinds(cluster)
        yield kube
