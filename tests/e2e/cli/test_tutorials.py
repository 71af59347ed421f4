"""Every command of the tutorials is run, in their order, as a reader would."""

import re
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, paceline_command
from paceline.testing.git_server import git_server
from paceline.trainers import parameter_server
from tests.e2e.support.data_jobs import beside_pods

FOLDER = Path(__file__).parents[3] / "docs" / "guides"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def commands_of(page: str) -> list[str]:
    """The commands of a page: lines behind a $, with what follows them up to the end of a here-document."""
    text = (FOLDER / page).read_text()
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [each.strip() for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE) if each.strip()]


def read_through(cluster: Embedded, page: str, folder: Path, **variables: str) -> dict[str, str]:
    """Type every command of a page; give what each printed."""
    tools = f"{Path(paceline_command()).parent}:{cluster.environment()['PATH']}"
    reader = Embedded(home=cluster.home, env={**cluster.env, **variables, "PATH": tools})
    said: dict[str, str] = {}
    for command in commands_of(page):
        ran = reader.command("bash", "-c", f"cd {folder}\n{command}", stdin="", seconds=150)
        assert ran.code == 0, (command, ran)
        said[command] = ran.out
    return said


def test_the_tutorial_on_values_is_true(cluster, tmp_path):
    """H-01, H-20, H-29, H-30"""
    said = read_through(cluster, "applications-values.md", tmp_path, SHARE=str(tmp_path / "share"))

    assert re.search(r"^hyperparameters.learningrate +0.01 +0.05$", said["paceline app diff mnist 1 2"], re.MULTILINE)
    assert "Final Cost" in said["paceline logs --tail 10 mnist"]
    assert "checkpoint.json" in said["ls $SHARE/data/logs/mnist-2"]


def test_the_tutorial_on_code_of_ones_own_is_true(cluster, tmp_path):
    """S-01, S-02, S-06, S-09, S-12, S-36, S-49"""
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    with git_server(tmp_path / "git", host=beside_pods(cluster)) as server:
        commit = server.commit("code", {"train.py": Path(parameter_server.__file__).read_text()})
        said = read_through(cluster, "applications-code.md", tmp_path, REPO=server.url("code"), BUCKET=str(bucket))

    assert "tf-train-tensorboard1" in said["kubectl get tensorboards"]
    assert "worker-1 trains on shard 1 of 2" in said["paceline logs tf-train --role worker --index 1"]
    assert re.search(rf"^commit +{commit[:12]} +{commit[:12]}$", said["paceline app diff tf-train"], re.MULTILINE)
    assert "checkpoint.json" in said["ls $BUCKET/tf-train-1/worker-0/training_logs"]
