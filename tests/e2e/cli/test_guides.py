"""The guides are true: every command of the tutorials, and of the example that a guide starts with, is typed.

In     docs/guides/, one embedded cluster with two pretended GPUs.
Out    commands that fail, and output that is not what the page shows.
Never  needs a framework: the images of these pages are the machine's own programs.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, paceline_command, wait_until
from paceline.testing.git_server import git_server
from paceline.trainers import parameter_server
from tests.docs.blocks import Block, blocks_of, commands_of, opening_of
from tests.e2e.support.data_jobs import beside_pods

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "guides"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.slow]

# What a guide's opening example prints, command by command: parts of it.
OPENINGS = {
    "script-to-workers": {"paceline logs ranks --all": "worker-1 │ worker 1 of 2"},
    "gpus": {"paceline run gpus.yaml --all": "my GPU: 1"},
    "data": {"cat data/learn-1/worker-0/model.txt": "1 rows", "paceline results learn": "model.txt"},
    "resume": {"paceline logs steps": "going on from step 3", "paceline logs steps --previous": "lost"},
    "tensorboard": {"paceline get tensorboards": "curves", "paceline get notebooks": "desk"},
    "applications": {"paceline app history tune": "loss 2.0", "paceline app diff tune": "hyperparameters.lr"},
    "debug": {
        "paceline run typo.yaml || paceline describe typo": "Failure:",
        "paceline logs typo --all": "torchvisionn",
    },
    "kubernetes": {'grep -c "^kind: CustomResourceDefinition" paceline.yaml': "15"},
    "coming-from": {"paceline run job.yaml --all": "rank 1 of 2"},
    "images": {"paceline env list": "host"},
    "history": {"paceline logs gone-1": "this line stays"},
    "console": {"paceline ui": "/login"},
    "backup": {"paceline cluster verify monday.paceline": ""},
}
# The controller reads the metrics of a revision from its log a moment after the job has ended.
LATER = {"paceline app history tune"}
# Other pages that start with a job, which leaves its name free for the next one.
HELLO_PAGES = ("README", "architecture", "concepts/README")
# Of these, only the first block: what follows would download a framework, or names a job of the reader's.
FIRST_BLOCK = {"applications", "console"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    # A TensorBoard and a notebook are created by a guide, and need not run.
    images = [f"--image={image}*=host" for image in ("t9kpublic/tensorboard", "jupyter/minimal-notebook")]
    with embedded("--device", "nvidia.com/gpu=2", *images) as running:
        yield running


def type_commands(cluster: Embedded, blocks: list[Block], folder: Path, **variables: str) -> dict[str, str]:
    """Type every command of some blocks in a folder; give what each printed."""
    commands = [command for block in blocks for command in commands_of(block)]
    return {command: type_command(cluster, command, folder, **variables) for command in commands}


def type_command(cluster: Embedded, command: str, folder: Path, **variables: str) -> str:
    tools = f"{Path(paceline_command()).parent}:{cluster.environment()['PATH']}"
    reader = Embedded(home=cluster.home, env={**cluster.env, **variables, "PATH": tools})
    ran = reader.command("bash", "-c", f"cd {folder}\n{command}", stdin="", seconds=150)
    assert ran.code == 0, (command, ran)
    return ran.out


def prints(cluster: Embedded, folder: Path, command: str, part: str) -> bool:
    return part in type_command(cluster, command, folder)


def test_every_guide_starts_with_an_example():
    guides = {page.stem for page in FOLDER.glob("*.md")} - {"README"}
    tutorials = {"applications-values", "applications-code"}

    assert guides == {*OPENINGS, *tutorials}
    assert [name for name in OPENINGS if not any(map(commands_of, opening_of(FOLDER / f"{name}.md")))] == []


@pytest.mark.parametrize("name", OPENINGS)
def test_the_example_that_a_guide_starts_with_works(cluster, tmp_path, name):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = [block for block in opening_of(FOLDER / f"{name}.md") if block.info == "sh"]
    printed = type_commands(cluster, blocks[:1] if name in FIRST_BLOCK else blocks, tmp_path)

    for command, part in OPENINGS[name].items():
        if command in LATER:
            wait_until(f"{command} prints {part}", partial(prints, cluster, tmp_path, command, part))
        else:
            assert part in printed[command]


@pytest.mark.parametrize("name", HELLO_PAGES)
def test_the_example_of_an_overview_works(cluster, tmp_path, name):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = type_commands(cluster, opening_of(ROOT / "docs" / f"{name}.md"), tmp_path)
    cluster.paceline("delete", "hello", "--yes")

    assert "hello from worker 0 of 2" in printed["paceline run examples/02-hello/job.yaml"]


def test_the_tutorial_on_values_is_true(cluster, tmp_path):
    """H-01, H-20, H-29, H-30"""
    blocks = list(blocks_of(FOLDER / "applications-values.md"))
    printed = type_commands(cluster, blocks, tmp_path, SHARE=str(tmp_path / "share"))

    assert re.search(
        r"^hyperparameters.learningrate +0.01 +0.05$", printed["paceline app diff mnist 1 2"], re.MULTILINE
    )
    assert "Final Cost" in printed["paceline logs --tail 10 mnist"]
    assert "checkpoint.json" in printed["ls $SHARE/data/logs/mnist-2"]


def test_the_tutorial_on_code_of_ones_own_is_true(cluster, tmp_path):
    """S-01, S-02, S-06, S-09, S-12, S-36, S-49"""
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    blocks = list(blocks_of(FOLDER / "applications-code.md"))
    with git_server(tmp_path / "git", host=beside_pods(cluster)) as server:
        commit = server.commit("code", {"train.py": Path(parameter_server.__file__).read_text()})
        printed = type_commands(cluster, blocks, tmp_path, REPO=server.url("code"), BUCKET=str(bucket))

    assert "tf-train-tensorboard1" in printed["kubectl get tensorboards"]
    assert "worker-1 trains on shard 1 of 2" in printed["paceline logs tf-train --role worker --index 1"]
    assert re.search(rf"^commit +{commit[:12]} +{commit[:12]}$", printed["paceline app diff tf-train"], re.MULTILINE)
    assert "checkpoint.json" in printed["ls $BUCKET/tf-train-1/worker-0/training_logs"]
