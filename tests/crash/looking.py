"""The life of TensorBoards and Notebooks.

A notebook that ends by itself, a paused job with a TensorBoard that waits, one whose TensorBoard nobody can make, and
a TensorBoard and an application that an older version let in.
"""

from paceline.apimachinery.meta import Object
from paceline.client.interface import Collection
from paceline.kinds.kind_types import GROUP, OWN_GROUP, SERVICE_GROUP, VERSION
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.manifests import named, template
from tests.crash.revising import APPS, app

PYTORCH = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")
NOTEBOOKS = Collection(group=SERVICE_GROUP, version=VERSION, plural="notebooks")


def service(kind: str, name: str, spec: Object) -> Object:
    return named(kind, name, spec=spec) | {"apiVersion": f"{SERVICE_GROUP}/{VERSION}"}


def with_board(name: str, spec: Object) -> Object:
    replica = {"type": "worker", "template": template("pytorch")}
    body = {"replicaSpecs": [replica], "tensorboardSpec": spec, "runMode": {"pause": {"enabled": True}}}
    return named("PyTorchTrainingJob", name, spec=body) | {"apiVersion": f"{GROUP}/{VERSION}"}


BARE = with_board("bare", {"logDir": {"pvc": [{"name": "gone"}]}})
OLD_BOARD = service("TensorBoard", "old", {"logDir": {}})
OLD_APP = app("old", template={"name": "forgotten"})
for number, each in enumerate((OLD_BOARD, BARE, OLD_APP), start=2):
    each["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "generation": 1,
        "creationTimestamp": "2029-12-31T00:00:00Z",
    }


async def look_in(stage: Stage) -> None:
    # Nothing can be asked over HTTP in a simulated world: what has no environment is never asked whether it is ready.
    logs = {"image": "nobody/knows:1", "logDir": {"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://b/log"]}}}
    probe = {"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 60}}
    desk = {"template": template("notebook", main={"command": None, **probe})}
    await stage.create(NOTEBOOKS, service("Notebook", "desk", desk))
    await stage.create(PYTORCH, with_board("shown", logs))
    await stage.until("its TensorBoard waits", lambda now: "nobody/knows" in told_by(now, "tensorboards", "shown"))
    await stage.until("old is refused", lambda now: "logDir" in told_by(now, "tensorboards", "old"))
    await stage.until("so is the old application", lambda now: "forgotten" in told_by(now, "trainingapps", "old"))
    await stage.until("bare has none", lambda now: "gone" in told_by(now, "pytorchtrainingjobs", "bare"))
    await stage.until("the notebook rests", lambda now: now.phase("notebooks", "desk") == "Paused")
    for where, name in ((APPS, "old"), (BOARDS, "old"), (NOTEBOOKS, "desk"), (PYTORCH, "shown"), (PYTORCH, "bare")):
        await stage.delete(where, name)
    for plural in ("pods", "tensorboards", "notebooks", "secrets"):
        await stage.until(f"no {plural} are left", lambda now, plural=plural: not any_of(now, plural))
    await stage.until("nothing leads to them", lambda now: now.find("services", "nb-desk") is None)


def told_by(stage: Stage, plural: str, name: str) -> str:
    return str((stage.find(plural, name) or {}).get("status"))


def any_of(stage: Stage, plural: str) -> bool:
    return any(key.split("/")[2] == plural for key in stage.oracle.objects)


def look_in_course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=3)


LOOK_IN = Life(
    name="look in",
    act=look_in,
    course=look_in_course,
    stored=(
        (f"/{SERVICE_GROUP}/tensorboards/default/old", OLD_BOARD),
        (f"/{GROUP}/pytorchtrainingjobs/default/bare", BARE),
        (f"/{OWN_GROUP}/trainingapps/default/old", OLD_APP),
    ),
)
