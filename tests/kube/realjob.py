"""`make realjob`: a job of two members on a real node, run by `paceline kube controller` with its own rights."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from paceline.errors import HostError
from paceline.testing.real.cluster import RealCluster, real_node
from paceline.testing.real.kube import find_assets
from paceline.testing.real.python_image import write_python_archive

IMAGE = "docker.io/library/python:3.11"
PROGRAM = Path(__file__).parents[1] / "e2e" / "jobs" / "sum_by_name.py"
PATIENCE_SECONDS = 120.0


def job() -> dict:
    container = {
        "name": "pytorch",
        "image": "python:3.11",
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", PROGRAM.read_text()],
    }
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": "sum"},
        "spec": {"replicaSpecs": [{"type": "worker", "replicas": 2, "template": template}]},
    }


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def paceline(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((*_command(), *args), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def _command() -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("paceline")),)


def grant(node: RealCluster) -> Path:
    """Define the kinds, grant the controller its rights, and give the kubeconfig of its account."""
    manifests = paceline("kube", "manifests", "--set", "image=paceline:here").stdout
    parts = [part for part in yaml.safe_load_all(manifests) if part["kind"] != "Deployment"]
    node.run("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(parts))
    node.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    token = node.run("--namespace=paceline-system", "create", "token", "paceline-controller").strip()
    config = json.loads(node.kube.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = node.home / "controller.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@contextmanager
def controller(kubeconfig: Path) -> Iterator[None]:
    """Run `paceline kube controller` for the length of a block; return once it leads."""
    command = (*_command(), "kube", "controller", "--kubeconfig", str(kubeconfig))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        leads = threading.Event()

        def read() -> None:
            for line in process.stderr or ():
                say(f"  controller: {line.rstrip()}")
                if line.startswith("leading"):
                    leads.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            if not leads.wait(PATIENCE_SECONDS):
                raise HostError("the controller does not lead")
            yield
        finally:
            process.terminate()
            process.wait()
            reader.join()


def wait_gone(node: RealCluster) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := node.run("get", "pods,services", "-l", "tensorstack.dev/owner-name=sum", "-o", "name"):
        if time.monotonic() > deadline:
            raise HostError(f"still there: {left}")
        time.sleep(0.5)


def watch(node: RealCluster) -> int:
    """Run the job and show what became of it; give its exit code."""
    say("--- paceline run job.yaml")
    manifest = node.home / "job.yaml"
    manifest.write_text(yaml.safe_dump(job(), sort_keys=False))
    done = paceline("run", "--kubeconfig", str(node.kube.kubeconfig), str(manifest))
    say(done.stdout + done.stderr)
    for args in (
        ("get", "pytorchtrainingjobs"),
        ("get", "pods", "-o", "wide"),
        ("get", "endpointslices"),
        ("logs", "-l", "tensorstack.dev/owner-name=sum", "--prefix", "--tail=-1"),
        ("get", "pytorchtrainingjob", "sum", "-o", "jsonpath={.status.phase} {.status.aggregate}"),
        ("get", "events", "--field-selector=involvedObject.kind=PyTorchTrainingJob"),
    ):
        say(f"--- kubectl {' '.join(args)}\n{node.run(*args)}")
    say("--- kubectl delete pytorchtrainingjob sum")
    say(node.run("delete", "pytorchtrainingjob", "sum"))
    wait_gone(node)
    say("the cluster's garbage collector has taken its pods and its service")
    return done.returncode


def main() -> int:
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver; type: make kube")
    try:
        with real_node(assets) as node:
            archive = node.home / "python.tar"
            write_python_archive(archive, (IMAGE,))
            node.load(archive)
            archive.unlink()
            with controller(grant(node)):
                return watch(node)
    except HostError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    sys.exit(main())
