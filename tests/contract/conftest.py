"""The clusters that the contract is held against: ours without and with a wire, and a real kube-apiserver."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.client.access import Access
from paceline.client.direct import DirectCluster
from paceline.client.kubeconfig import load
from paceline.testing.contract.subject import OpenSubject
from paceline.testing.definitions import define_kinds
from paceline.testing.realkube import find_assets, real_kube


@pytest.fixture(scope="session")
def real_access() -> Iterator[Access]:
    """A real kube-apiserver that serves our job kinds."""
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver: type `make kube`, or point KUBEBUILDER_ASSETS at one")
    with real_kube(assets) as kube:
        access = load(kube.kubeconfig, Path.read_bytes)
        with DirectCluster(access) as cluster:
            define_kinds(cluster)
        yield access


# The first of them waits until a server runs and has taken in all our kinds.
REAL = (pytest.mark.kube, pytest.mark.timeout(120))


@pytest.fixture(params=["in-process", "http", pytest.param("real", marks=REAL)])
def open_subject(request: pytest.FixtureRequest, tmp_path: Path) -> OpenSubject:
    # Only here: the other contracts need no API server.
    from tests.contract import subjects

    if request.param == "in-process":
        return subjects.local_subject
    if request.param == "http":
        return lambda: subjects.http_subject(tmp_path)
    access = request.getfixturevalue("real_access")
    return lambda: subjects.real_subject(access)
