"""The examples that are opened in a browser serve their pages, with the real programs."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.api_caller import Door
from tests.e2e.support.frameworks import environment, reaches
from tests.e2e.support.shell_pods import show

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples" / "03-kinds"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    notebooks, curves = environment("jupyter"), environment("tensorboard")
    with embedded("--image", f"jupyter/*={notebooks}", "--image", f"t9kpublic/tensorboard*={curves}") as running:
        made = running.kubectl("create", "-f", str(EXAMPLES / "claim.yaml"))
        assert made.code == 0, made.err
        yield running


def created(cluster: Embedded, file: str) -> None:
    made = cluster.kubectl("create", "-f", str(EXAMPLES / file))
    assert made.code == 0, made.err


def test_the_notebook_opens_with_its_token(cluster: Embedded) -> None:
    created(cluster, "notebook.yaml")

    status = reaches(cluster, "notebook", "desk", "Running")
    token = b64decode(show(cluster, "secret", status["tokenSecret"])["data"]["token"]).decode()

    assert b"JupyterLab" in Door(cluster).read(f"{status['url']}?token={token}")


def test_the_tensorboard_opens_before_anything_is_logged(cluster: Embedded) -> None:
    created(cluster, "tensorboard.yaml")

    url = reaches(cluster, "tensorboard", "curves", "Running")["url"]

    assert b"TensorBoard" in Door(cluster).read(url)
