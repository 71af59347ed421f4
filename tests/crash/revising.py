"""The life of an application: two revisions, the first of which never ends by itself."""

from typing import Any

from paceline.apimachinery.meta import Object
from paceline.client.interface import Collection
from paceline.kinds.kind_types import OWN_API_VERSION, OWN_GROUP, VERSION
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.manifests import named

APPS = Collection(group=OWN_GROUP, version=VERSION, plural="trainingapps")


def app(name: str, **spec: Any) -> Object:
    return named("TrainingApp", name, spec=spec) | {"apiVersion": OWN_API_VERSION}


def values(board: str) -> Object:
    worker = {"number": 1, "gpuCount": 0, "image": "python:3"}
    # Nothing can be asked over HTTP in a simulated world: what has no environment is never asked whether it is ready.
    return {"worker": worker, "ps": {"number": 0}, "tensorboard": {"image": f"nobody/{board}:1"}}


async def revise(stage: Stage) -> None:
    told = {"template": {"name": "tensorflow-training"}, "revisionHistoryLimit": 0}
    await stage.create(APPS, app("curve", **told, values=values("knows")))
    await stage.until("it runs", lambda now: now.phase("trainingapps", "curve") == "Running")
    await stage.patch(APPS, "curve", {"spec": {"values": values("cares")}})
    await stage.until("the next has ended", lambda now: now.phase("trainingapps", "curve") == "Succeeded")
    await stage.until("the first is gone", lambda now: now.find("tensorflowtrainingjobs", "curve-1") is None)
    await stage.until("all is known", lambda now: "metrics" in (now.find("jobrecords", "curve-2") or {})["status"])
    await stage.delete(APPS, "curve")
    for plural, name in (("jobrecords", "curve-2"), ("tensorboards", "curve"), ("configmaps", "curve-trainer")):
        await stage.until(f"no {name} is left", lambda now, it=(plural, name): now.find(*it) is None)
    await stage.until("its claim too", lambda now: now.find("persistentvolumeclaims", "curve-data") is None)


def revise_course(_container: str, pod: str, _tried: int) -> Course:
    return Course() if pod.startswith("curve-1") else Course(seconds=3)


REVISE = Life(
    name="revise",
    act=revise,
    course=revise_course,
    may_say=frozenset({"FailedMount", "Unschedulable"}),
)
