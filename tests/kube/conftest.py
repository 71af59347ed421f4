"""The servers that the controllers are run beside: ours in the same process, and a real kube-apiserver."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.client.kubeconfig import load
from paceline.testing.real.kube import ALONE, RealKube
from tests.kube.stage import OpenTransport, embedded_transport, real_transport
from tests.kubes import kube_with_kinds

REAL = (pytest.mark.kube, pytest.mark.timeout(180))
# Whoever names an owner that is to wait for it must be allowed to; some clusters ask for it.
FLAGS = (*ALONE, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")


@pytest.fixture(scope="session")
def real() -> Iterator[RealKube]:
    """A real kube-apiserver that serves our kinds."""
    with kube_with_kinds(FLAGS) as kube:
        yield kube


@pytest.fixture
def opens_real(real: RealKube) -> OpenTransport:
    """Opens the way to the real one."""
    return real_transport(load(real.kubeconfig, Path.read_bytes))


@pytest.fixture(params=["embedded", pytest.param("real", marks=REAL)])
def opens(request: pytest.FixtureRequest) -> OpenTransport:
    """Opens the way to each of them."""
    if request.param == "embedded":
        return embedded_transport
    found: OpenTransport = request.getfixturevalue("opens_real")
    return found
