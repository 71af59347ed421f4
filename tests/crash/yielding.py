"""The life of a job and of a pod alone that give way to somebody more important; the job runs again after it."""

from paceline.apimachinery.meta import Object
from paceline.client.interface import PODS, Collection
from paceline.kinds.kind_types import GROUP, VERSION
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.manifests import named, template

PYTORCH = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
# What the less important ones hold together, and the more important one asks for; the machine has two devices.
DEVICE = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
MEMORY = {"resources": {"requests": {"memory": "4Gi"}}}
BOTH = {"resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"memory": "5Gi"}}}


def job(name: str, replicas: int, pod: Object) -> Object:
    replica = {"type": "worker", "replicas": replicas, "template": pod}
    spec = {"replicaSpecs": [replica], "runPolicy": {"backoffLimit": 0}}
    return named("PyTorchTrainingJob", name, spec=spec) | {"apiVersion": f"{GROUP}/{VERSION}"}


async def give_way(stage: Stage) -> None:
    await stage.create(PYTORCH, job("modest", 2, template("pytorch", main=DEVICE)))
    await stage.create(PODS, named("Pod", "alone", **template("main", main=MEMORY)))
    await stage.until("modest runs", lambda now: now.phase("pytorchtrainingjobs", "modest") == "Running")
    await stage.until("alone runs", lambda now: now.phase("pods", "alone") == "Running")
    important = template("pytorch", main=BOTH, priorityClassName="system-cluster-critical")
    await stage.create(PYTORCH, job("urgent", 1, important))
    await stage.until("urgent succeeds", lambda now: now.phase("pytorchtrainingjobs", "urgent") == "Succeeded")
    await stage.until("modest succeeds", lambda now: now.phase("pytorchtrainingjobs", "modest") == "Succeeded")
    await stage.until("alone is gone", lambda now: now.find("pods", "alone") is None)


def give_way_course(_container: str, pod: str, _tried: int) -> Course:
    return Course() if pod in {"alone", "modest-worker-0", "modest-worker-1"} else Course(seconds=4)


GIVE_WAY = Life(name="give way", act=give_way, course=give_way_course)
