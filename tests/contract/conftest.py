"""The clusters that the contract is held against: ours without and with a wire, and a real kube-apiserver."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.client.kubeconfig import load
from paceline.client.rest_config import Access
from paceline.testing.contract.target import OpenSubject
from tests.kubes import kube_with_kinds


@pytest.fixture(scope="session")
def real_access() -> Iterator[Access]:
    """A real kube-apiserver that serves our job kinds."""
    with kube_with_kinds() as kube:
        yield load(kube.kubeconfig, Path.read_bytes)


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
