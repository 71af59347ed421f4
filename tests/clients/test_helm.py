"""A real Helm installs, changes and removes a chart, and cannot tell our server from another."""

import json
import shutil
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, Ran, wait_until

CHART = str(Path(__file__).parent / "chart")
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture
def helm(cluster: Embedded, tmp_path: Path):
    program = shutil.which("helm")
    if program is None:
        pytest.skip("no helm: put the folder that `tools/setup helm` prints on PATH")
    homes = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}
    at_home = Embedded(home=cluster.home, env={**cluster.env, **homes})

    def run(*args: str, code: int = 0) -> Ran:
        ran = at_home.command(program, *args, stdin="", seconds=120)
        assert ran.code == code, (args, ran)
        return ran

    return run


def shown(cluster: Embedded, *args: str):
    ran = cluster.kubectl("get", *args, "-o", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def logged(cluster: Embedded, job: str) -> str:
    """What a job's pod has printed, once it has."""

    def look() -> str:
        return cluster.kubectl("logs", "-l", f"tensorstack.dev/owner-name={job}").out.strip()

    return wait_until(f"{job} prints", look)


def test_a_release_is_installed_upgraded_rolled_back_and_removed(cluster, helm):
    installed = helm("install", "hi", CHART, "--wait", "--timeout=60s")
    assert "STATUS: deployed" in installed.out
    assert "hello is revision 1." in installed.out
    assert logged(cluster, "hi-1") == "hello"
    assert cluster.kubectl("get", "pod", "hi-before").code == 1, "the hook's pod is removed when it has succeeded"
    assert shown(cluster, "service", "hi")["spec"]["ports"][0]["targetPort"] == 8080
    assert shown(cluster, "configmap", "hi")["data"]["kubernetes"].startswith("v1.")

    again = helm("install", "hi", CHART, code=1)
    assert "cannot re-use a name that is still in use" in again.err

    releases = json.loads(helm("list", "-o", "json").out)
    assert [(each["name"], each["revision"], each["status"]) for each in releases] == [("hi", "1", "deployed")]
    assert "kind: GenericJob" in helm("get", "manifest", "hi").out
    assert "helm.sh/hook: pre-install" in helm("get", "hooks", "hi").out

    upgraded = helm("upgrade", "hi", CHART, "--set", "greeting=bye", "--wait", "--timeout=60s")
    assert "bye is revision 2." in upgraded.out
    assert logged(cluster, "hi-2") == "bye"
    assert shown(cluster, "configmap", "hi")["data"]["greeting"] == "bye"
    assert cluster.kubectl("get", "gj", "hi-1").code == 1, "what the new revision does not have is removed"
    assert json.loads(helm("get", "values", "hi", "-o", "json").out) == {"greeting": "bye"}

    helm("rollback", "hi", "1", "--wait", "--timeout=60s")
    assert shown(cluster, "configmap", "hi")["data"]["greeting"] == "hello"
    status = json.loads(helm("status", "hi", "-o", "json").out)
    assert (status["version"], status["info"]["status"]) == (3, "deployed")
    history = json.loads(helm("history", "hi", "-o", "json").out)
    assert [each["status"] for each in history] == ["superseded", "superseded", "deployed"]

    removed = helm("uninstall", "hi", "--wait", "--timeout=60s")
    assert 'release "hi" uninstalled' in removed.out
    left = shown(cluster, "configmaps,secrets,services,genericjobs")
    assert [each["metadata"]["name"] for each in left["items"] if each["metadata"]["name"].startswith("hi")] == []
    missing = helm("status", "hi", code=1)
    assert "release: not found" in missing.err


def test_a_chart_is_checked_by_the_server_and_nothing_is_kept(cluster, helm):
    validated = helm("template", "dry", CHART, "--validate")
    assert "kind: GenericJob" in validated.out, "the server's kinds are known to the chart"
    dry = helm("install", "dry", CHART, "--dry-run=server")
    assert "STATUS: pending-install" in dry.out
    assert cluster.kubectl("get", "configmap", "dry").code == 1

    refused = helm("install", "dry", CHART, "--set", "replicas=-1", code=1)

    assert "replicas" in refused.err
    assert json.loads(helm("list", "--all", "-o", "json", "--filter", "dry").out)[0]["status"] == "failed"
    helm("uninstall", "dry")


def test_what_somebody_else_owns_is_not_taken_over(cluster, helm):
    made = cluster.kubectl("create", "configmap", "taken", "--from-literal=a=b")
    assert made.code == 0, made.err

    refused = helm("install", "taken", CHART, code=1)

    assert 'ConfigMap "taken" in namespace "default" exists and cannot be imported' in refused.err
    helm("install", "taken", CHART, "--take-ownership", "--no-hooks")
    helm("uninstall", "taken")
