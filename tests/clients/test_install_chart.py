"""charts/paceline by a real Helm: what `paceline kube manifests` prints, on a real kube-apiserver."""

import contextlib
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from paceline import __version__
from paceline.apimachinery.meta import Object, annotations_of, has_condition, name_of
from paceline.client.interface import CRDS, SECRETS, Collection
from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.cluster.installation.crd_marks import VERSION
from paceline.cluster.installation.manifests import definitions
from paceline.errors import NotFound
from paceline.testing.embedded import wait_until
from paceline.testing.real.kube import RealKube, real_kube
from tests.kubes import assets_or_skip
from tests.unit.kinds.manifests import generic

CHART = str(Path(__file__).parents[2] / "charts" / "paceline")
PACELINE = str(Path(sys.executable).with_name("paceline"))
pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]
# A Secret, in which Helm keeps a release, has 1 MiB; the definitions are still to grow.
MOST_RELEASE_BYTES = 700 * 1024
IMAGE = "registry.example/paceline:0.1.0"
SET = ("--set", f"image={IMAGE}")
HOME = ("--namespace", "paceline-system")
GENERIC_JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="genericjobs")
DEPLOYMENTS = Collection(group="apps", version="v1", plural="deployments")
VALUES = {
    "nothing but the image": "{}",
    "two namespaces": "namespaces: [team-a, team-b]",
    "no console, no policies": """
console: {enabled: false}
networkPolicy: false
controller: {podDisruptionBudget: false}
""",
    "a webhook": "webhook: {bindAddress: '0.0.0.0:9443'}",
    "a monitor": "metrics: {serviceMonitor: true, labels: {release: prometheus}}",
    "another image for the pods of jobs": "podtools: {image: 'x/y:1', pullPolicy: Always, pullSecrets: [a, b]}",
    "placement": """
imagePullPolicy: Always
imagePullSecrets: [{name: mirror}]
controller:
  replicas: 3
  priorityClassName: system-cluster-critical
  nodeSelector: {role: infra}
  tolerations: [{key: infra, operator: Exists}]
  resources: {limits: {memory: 2Gi}}
console: {replicas: 2, serviceType: NodePort}
""",
    "all definitions": "crds: {install: true}",
}
Helm = Callable[..., str]


@pytest.fixture(scope="module")
def kube() -> Iterator[RealKube]:
    """A real kube-apiserver that was never told of our kinds."""
    with real_kube(assets_or_skip()) as running:
        yield running


@pytest.fixture
def cluster(kube: RealKube) -> Iterator[DirectCluster]:
    with DirectCluster(load(kube.kubeconfig, Path.read_bytes)) as direct:
        yield direct


@pytest.fixture(scope="module")
def helm(kube: RealKube, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("no helm: put the folder that `tools/setup helm` prints on PATH")
    folder = tmp_path_factory.mktemp("helm")
    homes = {f"HELM_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
    env = {**os.environ, **homes, "KUBECONFIG": str(kube.kubeconfig)}

    def run(*args: str, code: int = 0) -> str:
        ran = subprocess.run([program, *args], env=env, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == code, (args, ran.stdout[-2000:], ran.stderr[-2000:])
        return ran.stdout if code == 0 else ran.stderr

    return run


def paceline(*args: str, code: int = 0) -> str:
    ran = subprocess.run([PACELINE, *args], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == code, ran.stderr
    return ran.stdout if code == 0 else ran.stderr


def by_name(text: str) -> dict[tuple[str, str, str], Object]:
    objects = [part for part in yaml.load_all(text, yaml.CSafeLoader) if part and part["kind"] != "Namespace"]
    for part in objects:
        # What Helm alone needs.
        (part["metadata"].get("annotations") or {}).pop("helm.sh/resource-policy", None)
    return {(part["kind"], part["metadata"].get("namespace", ""), name_of(part)): part for part in objects}


@pytest.mark.parametrize("values", VALUES.values(), ids=list(VALUES))
def test_helm_renders_what_the_command_prints(helm: Helm, tmp_path: Path, values: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(values)
    # Definitions are large; one case has them.
    options = (*SET, *HOME, "-f", str(file), *(() if "crds" in values else ("--set", "crds.install=false")))
    rendered = helm("template", "x", CHART, *options, "--kube-version=1.34.0")

    assert by_name(rendered) == by_name(paceline("kube", "manifests", *options))


def crds(cluster: DirectCluster) -> dict[str, Object]:
    return {name_of(item): item for item in cluster.list(CRDS).items}


def is_served(cluster: DirectCluster) -> bool:
    with contextlib.suppress(NotFound):
        return not cluster.list(GENERIC_JOBS).items
    return False


def chart_of_version(folder: Path, version: str) -> str:
    """Copy the chart, as another version of Paceline would be."""
    copy = folder / f"paceline-{version}"
    shutil.copytree(CHART, copy)
    for file in (copy / "Chart.yaml", *copy.glob("files/*.json")):
        file.write_text(file.read_text().replace(__version__, version))
    return str(copy)


def test_an_installation_lives_its_whole_life(cluster: DirectCluster, helm: Helm, tmp_path: Path) -> None:
    """Uninstalled, it leaves definitions and jobs behind; and an older chart does not replace newer definitions."""
    remove_all(cluster)
    notes = helm("install", "paceline", CHART, *SET, *HOME, "--create-namespace")
    assert "pod-security.kubernetes.io/enforce=restricted" in notes
    assert set(crds(cluster)) == {name_of(definition) for definition in definitions()}
    release = cluster.get(SECRETS, "paceline-system", "sh.helm.release.v1.paceline.v1")["data"]["release"]
    assert len(b64decode(release)) < MOST_RELEASE_BYTES
    wait_until("the kinds are served", lambda: is_served(cluster))
    cluster.create(GENERIC_JOBS, {**generic(), "metadata": {"name": "kept", "namespace": "default"}})

    newer = chart_of_version(tmp_path, "0.2.0")
    helm("upgrade", "paceline", newer, *SET, *HOME, "--set", "controller.replicas=3")
    assert {annotations_of(definition)[VERSION] for definition in crds(cluster).values()} == {"0.2.0"}
    refused = helm("upgrade", "paceline", CHART, *SET, *HOME, code=1)
    assert f"is of Paceline 0.2.0, which is newer than this chart ({__version__})" in refused
    assert {annotations_of(definition)[VERSION] for definition in crds(cluster).values()} == {"0.2.0"}

    helm("uninstall", "paceline", *HOME)
    with pytest.raises(NotFound):
        cluster.get(DEPLOYMENTS, "paceline-system", "paceline-controller")
    assert len(crds(cluster)) == len(definitions())
    assert name_of(cluster.get(GENERIC_JOBS, "default", "kept")) == "kept"

    helm("install", "paceline", newer, *SET, *HOME)
    helm("uninstall", "paceline", *HOME)


def test_a_definition_of_somebody_else_is_not_replaced(cluster: DirectCluster, helm: Helm) -> None:
    remove_all(cluster)
    theirs = definitions()[0]
    theirs = {**theirs, "metadata": {"name": name_of(theirs)}}
    cluster.create(CRDS, theirs)
    refused = helm("install", "paceline", CHART, *SET, *HOME, "--create-namespace", code=1)

    assert f"the CRD {name_of(theirs)} exists and is not marked as Paceline's" in refused
    assert set(crds(cluster)) == {name_of(theirs)}

    helm(
        "install", "paceline", CHART, *SET, *HOME, "--create-namespace", "--take-ownership", "--set", "crds.adopt=true"
    )
    assert len(crds(cluster)) == len(definitions())
    helm("uninstall", "paceline", *HOME)


def remove_all(cluster: DirectCluster) -> None:
    # The server deletes the objects of a definition first. Before it serves them that fails, and it retries ever later.
    wait_until(
        "all definitions are served", lambda: all(has_condition(crd, "Established") for crd in crds(cluster).values())
    )
    for name in crds(cluster):
        with contextlib.suppress(NotFound):
            cluster.delete(CRDS, ("", name))
    wait_until("the definitions are gone", lambda: not crds(cluster))


def test_a_typing_error_in_a_value_is_refused(helm: Helm, cluster: DirectCluster) -> None:
    remove_all(cluster)
    assert "'cosole'" in helm("install", "wrong", CHART, *SET, *HOME, "--set", "cosole.enabled=true", code=1)
    assert "replicas" in helm("install", "wrong", CHART, *SET, *HOME, "--set", "controller.replicas=two", code=1)
    assert "values.image: set the image" in helm("install", "wrong", CHART, *HOME, code=1)
    assert crds(cluster) == {}


def test_an_old_kubernetes_is_refused(helm: Helm) -> None:
    error = helm("template", "x", CHART, *SET, "--kube-version=1.28.15", code=1)

    assert "chart requires kubeVersion: >=1.29.0-0 which is incompatible with Kubernetes v1.28.15" in error


def install(kube: RealKube, *args: str, code: int = 0) -> str:
    return paceline("kube", "install", "--kubeconfig", str(kube.kubeconfig), *SET, *args, code=code)


@pytest.fixture
def untouched() -> Iterator[tuple[RealKube, DirectCluster]]:
    """A server of the test's own: Helm takes no objects that the command made."""
    with real_kube(assets_or_skip()) as running, DirectCluster(load(running.kubeconfig, Path.read_bytes)) as direct:
        yield running, direct


def test_the_command_installs_the_same_and_refuses_the_same(untouched: tuple[RealKube, DirectCluster]) -> None:
    kube, cluster = untouched
    theirs = {**definitions()[0], "metadata": {"name": name_of(definitions()[0])}}
    cluster.create(CRDS, theirs)
    refused = install(kube, code=1)
    assert f"not marked as Paceline's: {name_of(theirs)}" in refused
    assert "--set crds.adopt=true" in refused
    assert set(crds(cluster)) == {name_of(theirs)}

    install(kube, "--set", "crds.adopt=true")
    first = revisions(cluster)
    install(kube)
    assert revisions(cluster) == first, "the second time changes nothing"

    deployment = cluster.get(DEPLOYMENTS, "paceline-system", "paceline-controller")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert f"--podtools-image={IMAGE}" in container["command"]

    stored = crds(cluster)[name_of(theirs)]
    stored["metadata"]["annotations"][VERSION] = "0.9.1"
    cluster.replace(CRDS, stored)
    assert "the CRDs are of Paceline 0.9.1, which is newer" in install(kube, code=1)


def revisions(cluster: DirectCluster) -> dict[str, Any]:
    return {name: definition["metadata"]["generation"] for name, definition in crds(cluster).items()}


def test_a_pod_of_the_installation_is_admitted_by_the_strictest_level(cluster: DirectCluster) -> None:
    """The namespace that the command makes enforces it; a Deployment's template is only warned about, a pod refused."""
    printed = yaml.safe_load_all(paceline("kube", "manifests", *SET, "--set", "crds.install=false"))
    templates = [part["spec"]["template"] for part in printed if part["kind"] == "Deployment"]
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    cluster.create(Collection(group="", version="v1", plural="namespaces", namespaced=False), namespace)
    pods = Collection(group="", version="v1", plural="pods")
    for index, template in enumerate(templates):
        pod = {**template, "apiVersion": "v1", "kind": "Pod"}
        pod["metadata"] = {**template["metadata"], "name": f"pod-{index}", "namespace": "strict"}
        cluster.create(pods, pod)
    assert len(templates) == 2
