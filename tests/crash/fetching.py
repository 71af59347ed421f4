"""A life with code from git: the commit is looked up by a pod of its own before any member is made."""

from paceline.client.interface import Collection
from paceline.kinds.kind_types import GROUP, VERSION
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.manifests import named, template

GENERIC = Collection(group=GROUP, version=VERSION, plural="genericjobs")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


async def fetch(stage: Stage) -> None:
    replica = {"type": "worker", "replicas": 1, "restartPolicy": {"policy": "Never"}, "template": template("main")}
    spec = {
        "successRules": [{"worker": [0]}],
        "failureRules": [{"worker": [0]}],
        "replicaSpecs": [replica],
        "source": {"git": {"url": "https://example.org/team/code.git", "revision": "main"}},
    }
    await stage.create(GENERIC, named("GenericJob", "fetch", spec=spec) | {"apiVersion": f"{GROUP}/{VERSION}"})
    await stage.until("fetch succeeds", lambda now: now.phase("genericjobs", "fetch") == "Succeeded")
    job = stage.find("genericjobs", "fetch") or {}
    assert job["status"]["source"] == {"commit": COMMIT}


def fetch_course(container: str, _pod: str, _tried: int) -> Course:
    match container:
        case "resolve":
            return Course(seconds=1, message=COMMIT)
        case "main":
            return Course(seconds=4)
    return Course(seconds=1)


FETCH = Life(name="fetch", act=fetch, course=fetch_course)
