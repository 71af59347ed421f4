"""A cluster per module: the suite runs in one process (`make test-kube`)."""

from collections.abc import Iterator

import pytest

from paceline.testing.real.cluster import real_cluster
from tests.cluster.lab import IMAGE, Lab, controller, load_image
from tests.kube.realjob import grant
from tests.kubes import assets_or_skip


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with real_cluster(assets_or_skip()) as cluster:
        load_image(cluster, IMAGE)
        with controller(cluster, grant(cluster)):
            yield Lab(cluster=cluster)
