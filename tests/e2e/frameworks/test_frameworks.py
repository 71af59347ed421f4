"""What a framework's image promises to the command that runs in it."""

from collections.abc import Iterator

import pytest

from paceline.kinds.apps.templates.model_training import FRAMEWORKS
from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import environment
from tests.e2e.support.shell_pods import run_pod, shell

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    rows = [f"{name}/{name}*={environment(name)}" for name in ("tensorflow", "pytorch")]
    with embedded(*(word for row in rows for word in ("--image", row))) as running:
        yield running


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_s30_python3_is_called_by_its_name_and_python_is_the_same(cluster: Embedded, framework: str) -> None:
    _, _, image = FRAMEWORKS[framework]
    script = 'python3 -V && python -V && python3 -c "import sys; print(sys.version_info[0])"'

    first, second, major = run_pod(cluster, framework, {**shell(script), "image": image})

    assert first.startswith("Python 3.")
    assert (second, major) == (first, "3")
