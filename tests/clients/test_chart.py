"""The chart of a template, by a real Helm: it renders what `paceline app template render` prints."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from paceline.apimachinery.yaml_reader import read_documents
from paceline.cli.main import main
from paceline.testing.embedded import Embedded, Ran, wait_until

ROOT = Path(__file__).parents[2]
CHART = str(ROOT / "charts" / "tensorflow-training")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
QUICK = "worker.gpuCount=0,worker.number=1,ps.number=1,hyperparams.epochs=2,worker.memory=64Mi,ps.memory=64Mi"


@pytest.fixture
def program() -> str:
    found = shutil.which("helm")
    if found is None:
        pytest.skip("no helm: put the folder that `tools/setup helm` prints on PATH")
    return found


def homes(folder: Path) -> dict[str, str]:
    return {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}


GPU = """\
worker: {number: 2, gpuCount: 1, image: 'example/tf-mnist-k8s:gpu', imagePullPolicy: IfNotPresent, port: 8000}
ps: {number: 2, image: 'example/tf-mnist-k8s:cpu', imagePullPolicy: IfNotPresent, port: 9000}
hyperparams: {epochs: 100, batchsize: 20, learningrate: 0.001}
tensorboard: {image: 'example/tensorboard:1.1.0', serviceType: LoadBalancer}
mountPath: /data
persistence: {pvc: {storage: 5Gi, matchLabels: {train: mnist}}}
"""
VALUES = {
    "nothing": ("", ()),
    "the GPU sample, put right": (GPU, ()),
    "the GPU sample with settings over it": (GPU, ("worker.gpuCount=0", "worker.number=3,ps.number=1")),
    "the other spelling of mountPath": ("persistence: {mountPath: /results}", ()),
    "a small learning rate": ("hyperparams: {learningrate: 0.00001}", ()),
    "a large number": ("hyperparams: {epochs: 1000000}", ()),
    "a number as text": ('hyperparams: {learningrate: "0.0005"}', ()),
    "a fraction by setting": ("", ("hyperparams.learningrate=0.0005",)),
    "zero": ("hyperparams: {epochs: 0, batchsize: 0, learningrate: 0}", ()),
    "no parameter servers": ("ps: {number: 0}", ()),
    "variables": ("worker: {env: {A: '1', B: 'true', C: ''}}", ("ps.env.D=x y",)),
    "a comma in a setting": ("", (r"worker.env.LIST=a\,b",)),
    "a dot in a name": ("", (r"persistence.pvc.matchLabels.example\.com/train=mnist",)),
    "a command": ("command: [python3, main.py, '--flag={{ x }}']", ()),
    "a command by setting": ("", ("command={python3,main.py}",)),
    "an entry of a list": ("", ("command[0]=python3,command[1]=main.py",)),
    "an emptied default": ("persistence: {pvc: {matchLabels: null}}", ()),
    "a default taken away by a setting": ("", ("tensorboard.image=null",)),
    "true and false as text": ("worker: {env: {A: 'yes'}}", ()),
    "quantities as numbers": ("worker: {cpu: 2}\nps: {cpu: 0.5}", ()),
    "an anchor": ("worker: &all {gpuCount: 0, port: 7000}\nps: {<<: *all, port: 7001}", ()),
    "letters of other languages": ("worker: {env: {NAME: 训练}}", ()),
}


@pytest.mark.parametrize(("text", "settings"), VALUES.values(), ids=VALUES)
def test_helm_and_paceline_render_the_same(text, settings, program, tmp_path, capfd):
    file = tmp_path / "values.yaml"
    file.write_text(text)
    given = ["-f", str(file), *(word for each in settings for word in ("--set", each))]
    alone = Embedded(home=tmp_path, env=homes(tmp_path))

    charted = alone.command(program, "template", "mnist", CHART, *given, stdin="", seconds=60)
    code = main(["app", "template", "render", "mnist", "tensorflow-training", *given])
    rendered = capfd.readouterr().out

    assert (charted.code, code) == (0, 0), charted.err
    (theirs,), (ours,) = (list(read_documents(each, "rendered")) for each in (charted.out, rendered))
    assert theirs.value == ours.value


WRONG = {
    "an unknown value": ("worker: {numbr: 2}", "numbr"),
    "no workers": ("worker: {number: 0}", "number"),
    "a fraction of a GPU": ("worker: {gpuCount: 0.5}", "gpuCount"),
    "a wrong word": ("worker: {imagePullPolicy: Sometimes}", "imagePullPolicy"),
    "lost indentation": ("worker:\nnumber: 2\n", "number"),
    "no number": ("hyperparams: {learningrate: fast}", "learningrate"),
}


@pytest.mark.parametrize(("text", "named"), WRONG.values(), ids=WRONG)
def test_helm_and_paceline_refuse_the_same(text, named, program, tmp_path, capfd):
    file = tmp_path / "values.yaml"
    file.write_text(text)
    alone = Embedded(home=tmp_path, env=homes(tmp_path))

    charted = alone.command(program, "template", "mnist", CHART, "-f", str(file), stdin="", seconds=60)
    code = main(["app", "template", "render", "mnist", "tensorflow-training", "-f", str(file)])

    assert (charted.code, code) == (1, 2)
    assert named in charted.err
    assert named in capfd.readouterr().err


@pytest.fixture
def helm(cluster: Embedded, program: str, tmp_path: Path):
    at_home = Embedded(home=cluster.home, env={**cluster.env, **homes(tmp_path)})

    def run(*args: str, code: int = 0) -> Ran:
        ran = at_home.command(program, *args, stdin="", seconds=120)
        assert ran.code == code, (args, ran)
        return ran

    return run


def app(cluster: Embedded, name: str):
    ran = cluster.kubectl("get", "trainingapp", name, "-o", "json")
    return json.loads(ran.out) if ran.code == 0 else None


def comes_to(cluster: Embedded, name: str, revision: int, phase: str):
    def look():
        status = (app(cluster, name) or {}).get("status") or {}
        return status if (status.get("revision"), status.get("phase")) == (revision, phase) else None

    return wait_until(f"revision {revision} of {name} is {phase}", look, seconds=120)


def test_a_release_is_one_application_whose_upgrades_are_revisions(cluster, helm):
    installed = helm("install", "digits", CHART, "--set", QUICK)
    assert "STATUS: deployed" in installed.out
    assert "paceline logs -f digits" in installed.out
    comes_to(cluster, "digits", 1, "Succeeded")
    assert helm("get", "manifest", "digits").out.count("kind:") == 1

    helm("upgrade", "digits", CHART, "--reuse-values", "--set", "hyperparams.learningrate=0.2")
    comes_to(cluster, "digits", 2, "Succeeded")
    helm("rollback", "digits", "1")
    status = comes_to(cluster, "digits", 3, "Succeeded")

    assert [each["job"] for each in status["history"]] == ["digits-3", "digits-2", "digits-1"]
    told = [
        yaml.safe_load(cluster.kubectl("get", "jobrecord", f"digits-{number}", "-o", "yaml").out)["spec"]
        for number in (1, 2, 3)
    ]
    assert [each["hyperparameters"]["learningrate"] for each in told] == ["0.001", "0.2", "0.001"]
    assert json.loads(helm("list", "-o", "json", "--filter", "digits").out)[0]["chart"] == "tensorflow-training-0.1.0"
    assert json.loads(helm("status", "digits", "-o", "json").out)["info"]["status"] == "deployed"

    helm("uninstall", "digits")
    for kind, name in (("trainingapp", "digits"), ("tensorflowtrainingjob", "digits-3"), ("pvc", "digits-data")):
        wait_until(f"{kind} {name} is gone", lambda it=(kind, name): cluster.kubectl("get", *it).code == 1)


def test_two_releases_stand_side_by_side(cluster, helm):
    """H-73"""
    for name in ("left", "right"):
        helm("install", name, CHART, "--set", QUICK)

    for name in ("left", "right"):
        comes_to(cluster, name, 1, "Succeeded")
        helm("uninstall", name)
