"""The real kubectl works on the embedded cluster without special care."""

import json
import subprocess
import sys

from paceline.testing.embedded import Embedded
from tests.e2e.support.manifests import pytorch, text

COUNTING = "import time\nfor i in range(20): print('line', i, flush=True); time.sleep(0.05)"


def test_one_job_by_kubectl_alone(cluster: Embedded) -> None:
    job = pytorch("kube", command=["python", "-c", COUNTING], workers=2)

    created = cluster.kubectl("create", "-f", "-", stdin=text(job))
    assert (created.code, created.out.strip()) == (0, "pytorchtrainingjob.batch.tensorstack.dev/kube created")

    again = cluster.kubectl("create", "-f", "-", stdin=text(job))
    assert again.code == 1
    assert "already exists" in again.err

    running = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pj/kube", "--timeout=60s")
    assert running.code == 0, running.err
    pods = json.loads(cluster.kubectl("get", "pods", "-l", "tensorstack.dev/owner-name=kube", "-o", "json").out)
    names = sorted(pod["metadata"]["name"] for pod in pods["items"])
    assert [name.rpartition("-worker-")[2] for name in names] == ["0", "1"]

    followed = cluster.kubectl("logs", "-f", names[0])
    assert followed.out.splitlines() == [f"line {i}" for i in range(20)]
    assert cluster.kubectl("logs", names[1], "--tail=3").out.splitlines() == ["line 17", "line 18", "line 19"]

    done = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pj/kube", "--timeout=60s")
    assert done.code == 0, done.err
    table = cluster.kubectl("get", "pytorchtrainingjobs").out.splitlines()
    assert table[0].split()[:2] == ["NAME", "PHASE"]
    assert any(row.split()[:2] == ["kube", "Succeeded"] for row in table[1:])
    shown = cluster.kubectl("get", "pj", "kube", "-o", "yaml").out
    assert "phase: Succeeded" in shown
    described = cluster.kubectl("describe", "pj", "kube")
    assert described.code == 0, described.err
    assert "Succeeded" in described.out
    assert "NewReplica" in described.out

    deleted = cluster.kubectl("delete", "pj", "kube")
    assert deleted.code == 0, deleted.err
    assert 'pytorchtrainingjob.batch.tensorstack.dev "kube" deleted' in deleted.out
    assert cluster.kubectl("get", "pj", "kube").code == 1


def test_a_watch_shows_every_phase_as_it_comes(cluster: Embedded) -> None:
    """H-05"""
    program = [sys.executable, "-c", "import shutil; print(shutil.which('kubectl'))"]
    kubectl = subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()
    watch = subprocess.Popen(
        [kubectl, "get", "pytorchtrainingjobs", "-w", "-o", 'jsonpath={.metadata.name} {.status.phase}{"\\n"}'],
        stdout=subprocess.PIPE,
        text=True,
        env=cluster.environment(),
    )
    assert watch.stdout is not None
    try:
        job = pytorch("watched", command=["python", "-c", "import time; time.sleep(0.5)"], workers=1)
        assert cluster.kubectl("create", "-f", "-", stdin=text(job)).code == 0
        phases: list[str] = []
        for line in watch.stdout:
            name, _, phase = line.strip().partition(" ")
            if name == "watched" and phase and phase not in phases[-1:]:
                phases.append(phase)
            if phase in ("Succeeded", "Failed"):
                break
    finally:
        watch.kill()
        watch.wait()
        watch.stdout.close()
    assert phases == ["Pending", "Running", "Succeeded"]


def test_explain_knows_the_fields_of_a_job_down_to_the_container(cluster: Embedded) -> None:
    explained = cluster.kubectl("explain", "pj.spec.replicaSpecs.template.spec.containers.command")

    assert explained.code == 0, explained.err
    assert "FIELD: command" in explained.out


def test_a_foreground_delete_waits_for_what_the_job_owns(cluster: Embedded) -> None:
    job = pytorch("fore", command=["python", "-c", "import time; time.sleep(1000)"], workers=2)
    assert cluster.kubectl("create", "-f", "-", stdin=text(job)).code == 0
    running = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pj/fore", "--timeout=60s")
    assert running.code == 0, running.err

    deleted = cluster.kubectl("delete", "pj", "fore", "--cascade=foreground", "--timeout=60s")

    assert deleted.code == 0, deleted.err
    left = cluster.kubectl("get", "pods", "-l", "tensorstack.dev/owner-name=fore", "-o", "name")
    assert left.out == ""


def test_an_orphaned_pod_outlives_its_job(cluster: Embedded) -> None:
    job = pytorch("orphan", command=["python", "-c", "import time; time.sleep(1000)"], workers=1)
    assert cluster.kubectl("create", "-f", "-", stdin=text(job)).code == 0
    running = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pj/orphan", "--timeout=60s")
    assert running.code == 0, running.err

    deleted = cluster.kubectl("delete", "pj", "orphan", "--cascade=orphan", "--timeout=60s")

    assert deleted.code == 0, deleted.err
    selected = ("-l", "tensorstack.dev/owner-name=orphan")
    left = json.loads(cluster.kubectl("get", "pods", *selected, "-o", "json").out)["items"]
    assert [(pod["status"]["phase"], pod["metadata"].get("ownerReferences")) for pod in left] == [("Running", None)]
    assert cluster.kubectl("delete", "pods", *selected, "--now").code == 0
