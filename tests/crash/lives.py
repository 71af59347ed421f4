"""The lives that the crash tests go through: together they make every write of store/, node/ and control/."""

import contextlib
from typing import Any

from paceline.apimachinery.builtin.storage_annotations import BOUND_BY_CONTROLLER, FOLDERS, WAITING
from paceline.apimachinery.meta import Object, owned_by
from paceline.client.interface import (
    CLAIMS,
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    SERVICES,
    STORAGE_CLASSES,
    VOLUMES,
    Collection,
)
from paceline.errors import NotFound
from paceline.kinds.kind_types import GROUP, VERSION
from paceline.node.network.network import SHARED_NETWORK
from paceline.node.network.pod_hosts import StableName, preferred_index
from paceline.store.backend import StoreLimits
from paceline.testing.sim.backend import DiskFault
from paceline.testing.sim.processes import Course
from paceline.testing.sim.scenario import Life, Stage
from tests.crash.exposing import EXPOSE
from tests.crash.fetching import FETCH
from tests.crash.looking import LOOK_IN
from tests.crash.manifests import named, template
from tests.crash.revising import REVISE
from tests.crash.yielding import GIVE_WAY

GENERIC = Collection(group=GROUP, version=VERSION, plural="genericjobs")
PYTORCH = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
MPI = Collection(group=GROUP, version=VERSION, plural="mpijobs")
SECRETS = Collection(group="", version="v1", plural="secrets")


def generic(name: str, *, replicas: int = 1, limit: int = 0, spec: Object | None = None, **pod: Any) -> Object:
    replica = {
        "type": "worker",
        "replicas": replicas,
        "restartPolicy": {"policy": "OnFailure", "limit": limit},
        "template": template("main", **pod),
    }
    rules = {"successRules": [{"worker": list(range(replicas))}], "failureRules": [{"worker": [0]}]}
    body = {"replicaSpecs": [replica], **rules, **(spec or {})}
    return named("GenericJob", name, spec=body) | {"apiVersion": f"{GROUP}/{VERSION}"}


def mpi(name: str) -> Object:
    replica = {"type": "worker", "replicas": 1, "template": template("worker")}
    spec = {"replicaSpecs": [replica], "mpiConfig": {"script": ["python3", "train.py"]}}
    return named("MPIJob", name, spec=spec) | {"apiVersion": f"{GROUP}/{VERSION}"}


def pause(*, enabled: bool) -> Object:
    return {"spec": {"runMode": {"pause": {"enabled": enabled}}}}


def waits_for(stage: Stage, job: str) -> str:
    return str(((stage.find("genericjobs", job) or {}).get("status") or {}).get("waiting") or "")


# A claim, and a gang that mounts it: one member fails, all are tried again, and the job succeeds.


async def train(stage: Stage) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    await stage.create(CLAIMS, named("PersistentVolumeClaim", "data", spec=spec))
    replica = {
        "type": "worker",
        "replicas": 2,
        "restartPolicy": "OnFailure",
        "template": template(
            "pytorch",
            main={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        ),
    }
    job = named("PyTorchTrainingJob", "train", spec={"replicaSpecs": [replica]})
    await stage.create(PYTORCH, job | {"apiVersion": f"{GROUP}/{VERSION}"})
    await stage.until("train succeeds", lambda now: now.phase("pytorchtrainingjobs", "train") == "Succeeded")


def train_course(_container: str, pod: str, _tried: int) -> Course:
    match pod:
        case "train-worker-1":
            return Course(seconds=3, exit_code=1)
        case "train-worker-0-r1":
            return Course(seconds=8)
        case "train-worker-1-r1":
            return Course(seconds=5)
    return Course()


# Members with a device and a token each, that are tried again alone; all pods go in the end. Beside them a pod that
# has to go because its files outgrow what they may: a container's own records are more than a byte.


async def sweep(stage: Stage) -> None:
    pod = {
        "main": {
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
            "volumeMounts": [{"name": "token", "mountPath": "/token"}],
        },
        "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    }
    await stage.create(GENERIC, generic("sweep", replicas=2, limit=2, spec={"cleanUpPolicy": "All"}, **pod))
    small = {"resources": {"limits": {"ephemeral-storage": "1"}}}
    await stage.create(PODS, named("Pod", "large", **template("main", main=small)))
    await stage.until("sweep succeeds", lambda now: now.phase("genericjobs", "sweep") == "Succeeded")
    await stage.until("the large pod is evicted", lambda now: now.phase("pods", "large") == "Failed")
    await stage.delete(PODS, "large")
    await stage.until("its pods are gone", lambda now: not now.oracle.pods())


def sweep_course(_container: str, pod: str, _tried: int) -> Course:
    if pod == "large":
        return Course()
    return Course(seconds=2, exit_code=1) if pod == "sweep-worker-1" else Course(seconds=6)


# A job that is paused and goes on, and one that is deleted while it runs and does not want to stop.


async def rest(stage: Stage) -> None:
    await stage.create(GENERIC, generic("nap"))
    await stage.create(GENERIC, generic("stubborn"))
    for name in ("nap", "stubborn"):
        await stage.until(f"{name} runs", lambda now, name=name: now.phase("genericjobs", name) == "Running")
    await stage.patch(GENERIC, "nap", pause(enabled=True))
    await stage.delete(GENERIC, "stubborn")
    await stage.until("nap is paused", lambda now: now.phase("genericjobs", "nap") == "Paused")
    await stage.until("all pods are gone", lambda now: not now.oracle.pods())
    await stage.patch(GENERIC, "nap", pause(enabled=False))
    await stage.until("nap succeeds", lambda now: now.phase("genericjobs", "nap") == "Succeeded")


def rest_course(_container: str, pod: str, _tried: int) -> Course:
    match pod:
        case "stubborn-worker-0":
            return Course(on_term=None)
        case "nap-worker-0-r1":
            return Course(seconds=4)
    return Course()


# A job that goes after its pods, one that goes without them, and one that goes by itself.


async def leave(stage: Stage) -> None:
    await stage.create(GENERIC, generic("parent"))
    await stage.create(MPI, mpi("first"))
    await stage.create(GENERIC, generic("brief", spec={"runPolicy": {"ttlSecondsAfterFinished": 3}}))
    await stage.until("parent succeeds", lambda now: now.phase("genericjobs", "parent") == "Succeeded")
    await stage.until("first runs", lambda now: now.phase("mpijobs", "first") == "Running")
    await stage.delete(MPI, "first", policy="Foreground")
    await stage.delete(GENERIC, "parent", policy="Orphan")
    await stage.until("all are gone", lambda now: not now.oracle.jobs())


def leave_course(_container: str, pod: str, _tried: int) -> Course:
    return Course() if pod.startswith("first-") else Course(seconds=5)


# Jobs that cannot start, each for its own reason, and one that asks for more CPUs than there are.


async def wait(stage: Stage) -> None:
    await stage.create(GENERIC, generic("alien", image="nobody/knows:1"))
    await stage.create(GENERIC, generic("giant", main={"resources": {"requests": {"memory": "1Ti"}}}))
    await stage.create(GENERIC, generic("greedy", main={"resources": {"requests": {"cpu": "100"}}}))
    await stage.until("alien says why it waits", lambda now: "nobody/knows" in waits_for(now, "alien"))
    await stage.until("giant says why it waits", lambda now: "memory" in waits_for(now, "giant"))
    await stage.delete(GENERIC, "alien")
    await stage.delete(GENERIC, "giant")
    await stage.until("greedy succeeds", lambda now: now.phase("genericjobs", "greedy") == "Succeeded")
    await stage.until("the others are gone", lambda now: len(now.oracle.pods()) == 1)


def wait_course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=6)


# Pods without a job: volumes of every sort, containers that are tried again, names that want the same address.


def cousins(*pods: str) -> tuple[str, str]:
    """Give host names for two pods that fall on the same address."""
    count = SHARED_NETWORK.subnet.num_addresses - 2
    seen: dict[int, dict[str, str]] = {}
    number = 0
    while True:
        for pod in pods:
            name = StableName("default", "", f"cousin-{number}", pod)
            found = seen.setdefault(preferred_index(name, count), {})
            found[pod] = name.hostname
            if len(found) > 1:
                return found[pods[0]], found[pods[1]]
        number += 1


FIRST, SECOND = cousins("lost", "again")


async def pods(stage: Stage) -> None:
    await stage.create(CONFIG_MAPS, named("ConfigMap", "settings", data={"a": "1"}))
    volumes = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": "/sim/host", "type": "DirectoryOrCreate"}},
    ]
    mounts = [
        {"name": "settings", "mountPath": "/settings"},
        {"name": "scratch", "mountPath": "/scratch", "subPath": "deep/below"},
        {"name": "host", "mountPath": "/host"},
    ]
    # In this order: after a restart the agent hears of them in the order of their names.
    await stage.create(PODS, named("Pod", "lost", **template("main", hostname=FIRST, restartPolicy="Never")))
    init = [{"name": "first", "image": "python:3", "command": ["true"]}]
    own = {"hostname": SECOND, "restartPolicy": "OnFailure", "initContainers": init, "volumes": volumes}
    await stage.create(PODS, named("Pod", "again", **template("main", main={"volumeMounts": mounts}, **own)))
    await stage.until("lost runs", lambda now: now.phase("pods", "lost") == "Running")
    stage.lose_shim("lost")
    await stage.until("lost has failed", lambda now: now.phase("pods", "lost") == "Failed")
    await stage.until("again succeeds", lambda now: now.phase("pods", "again") == "Succeeded")
    await stage.delete(PODS, "again")
    await stage.until("again is gone", lambda now: now.find("pods", "again") is None)


def pods_course(container: str, pod: str, tried: int) -> Course:
    if container == "first":
        return Course(seconds=0)  # Over before anybody can look.
    if pod == "lost":
        return Course()
    return Course(seconds=2, exit_code=1 if tried < 2 else 0)


# A job that an older version let in and this one refuses; a history so short that it is cleared away all the time; and
# a disk that does what it is asked, once, and says that it did not.

OLD = generic("old", spec={"successRules": [{"worker": [7]}]})
OLD["metadata"] |= {
    "uid": "00000000-0000-4000-8000-000000000001",
    "generation": 1,
    "creationTimestamp": "2029-12-31T00:00:00Z",
}


async def refuse(stage: Stage) -> None:
    def is_refused(now: Stage) -> bool:
        conditions = ((now.find("genericjobs", "old") or {}).get("status") or {}).get("conditions") or ()
        return any(each["reason"] == "Invalid" for each in conditions)

    await stage.until("old is refused", is_refused)
    stage.cluster.log.fail("append", DiskFault.LOST_REPLY)
    await stage.create(GENERIC, generic("short"))
    await stage.until("short succeeds", lambda now: now.phase("genericjobs", "short") == "Succeeded")
    await stage.delete(GENERIC, "old")
    await stage.until("old is gone", lambda now: now.find("genericjobs", "old") is None)


def refuse_course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=3)


# A namespace that comes and goes with what is in it; an owner in another namespace than what it owns; a service that
# leads to a pod, then to none, and goes; and an authority that somebody meddles with.


async def settle(stage: Stage) -> None:
    authority = "/core/configmaps/default/kube-root-ca.crt"
    await stage.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    await stage.create(CONFIG_MAPS, named("ConfigMap", "note") | {"metadata": {"name": "note", "namespace": "other"}})
    await stage.until("the note is there", lambda now: "/core/configmaps/other/note" in now.oracle.objects)
    note = stage.oracle.objects["/core/configmaps/other/note"]
    stray = named("ConfigMap", "stray")
    stray["metadata"] |= {"ownerReferences": [owned_by(note)]}
    await stage.create(CONFIG_MAPS, stray)
    await stage.until("what has its owner elsewhere is gone", lambda now: now.find("configmaps", "stray") is None)
    spec = {"selector": {"app": "web"}, "clusterIP": "None", "ports": [{"port": 80}]}
    await stage.create(SERVICES, named("Service", "web", spec=spec))
    pod = named("Pod", "web", **template("main", restartPolicy="Never"))
    pod["metadata"] |= {"labels": {"app": "web"}}
    await stage.create(PODS, pod)
    await stage.until("the service leads to the pod", lambda now: leads_to(now, "web"))
    await stage.until("the pod ends", lambda now: now.phase("pods", "web") == "Succeeded")
    await stage.until("the service leads nowhere", lambda now: not leads_to(now, "web"))
    await stage.delete(SERVICES, "web")
    await stage.until("nothing tells where it led", lambda now: now.find("endpointslices", "web-0") is None)
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    await stage.create(CLAIMS, named("PersistentVolumeClaim", "spare", spec=spec))
    await stage.until("the claim is bound", lambda now: now.phase("persistentvolumeclaims", "spare") == "Bound")
    await stage.delete(CLAIMS, "spare")
    await stage.until("the claim is gone", lambda now: now.find("persistentvolumeclaims", "spare") is None)
    await stage.until("the authority is there", lambda now: authority in now.oracle.objects)
    await stage.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "another"}})
    await stage.until("it is put right", lambda now: now.oracle.objects[authority].get("data") == {"ca.crt": ""})
    await stage.delete(NAMESPACES, "other")
    await stage.until("the namespace is gone", lambda now: now.find("namespaces", "other") is None)


def leads_to(stage: Stage, service: str) -> bool:
    return bool((stage.find("endpoints", service) or {}).get("subsets"))


# Pods that are looked after: a sidecar that is stopped last, hooks at both ends, one that fails, and a probe that does.


async def care(stage: Stage) -> None:
    beside = {"name": "beside", "image": "python:3", "command": ["true"], "restartPolicy": "Always"}
    own = {"restartPolicy": "Never", "initContainers": [beside]}
    await stage.create(PODS, named("Pod", "pair", **template("main", **own)))
    naps = {"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 1}}}
    await stage.create(
        PODS, named("Pod", "polite", **template("main", main={"lifecycle": naps}, restartPolicy="Never"))
    )
    # Nothing runs commands in a simulated container: these fail, each in its own way.
    command = {"exec": {"command": ["true"]}}
    hooks = {"postStart": command, "preStop": command}
    await stage.create(PODS, named("Pod", "rude", **template("main", main={"lifecycle": hooks}, restartPolicy="Never")))
    probe = {**command, "periodSeconds": 1, "failureThreshold": 1}
    sick = template("main", main={"livenessProbe": probe}, restartPolicy="Never")
    await stage.create(PODS, named("Pod", "sick", **sick))
    await stage.until("the pair is done", lambda now: now.phase("pods", "pair") == "Succeeded")
    for name in ("rude", "sick"):
        await stage.until(f"{name} has failed", lambda now, name=name: now.phase("pods", name) == "Failed")
    await stage.delete(PODS, "polite")
    await stage.until("polite is gone", lambda now: now.find("pods", "polite") is None)


def care_course(container: str, pod: str, _tried: int) -> Course:
    return Course(seconds=3) if (pod, container) == ("pair", "main") else Course()


def settle_course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=3)


# Claims of every sort: one that gets the volume it fits, grows or waits; volumes that are kept, freed and removed; and
# a pod whose volumes are made of other objects, which change while it runs.


def asking(name: str, class_name: str, *, size: str = "1Gi", **spec: Any) -> Object:
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return named("PersistentVolumeClaim", name, spec={**wish, "storageClassName": class_name, **spec})


def offering(name: str, **spec: Any) -> Object:
    has = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/sim/{name}"}}
    body = {**has, "storageClassName": "", **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


async def keep(stage: Stage) -> None:
    swift = {"provisioner": FOLDERS, "reclaimPolicy": "Delete", "allowVolumeExpansion": True}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "swift"}}
    await stage.create(STORAGE_CLASSES, {**kind, **swift})
    await stage.create(CLAIMS, asking("plain", ""))
    await stage.until("plain says why it waits", lambda now: WAITING in marks(now, "plain"))
    await stage.create(VOLUMES, offering("rusty", persistentVolumeReclaimPolicy="Recycle"))
    await stage.until("plain is bound", lambda now: now.phase("persistentvolumeclaims", "plain") == "Bound")
    await stage.create(CLAIMS, asking("swift", "swift"))
    await stage.until("swift is bound", lambda now: now.phase("persistentvolumeclaims", "swift") == "Bound")
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    await stage.patch(CLAIMS, "swift", bigger)
    await stage.until("swift has grown", lambda now: size_of(now, "swift") == "2Gi")
    mine = stage.find("persistentvolumeclaims", "swift") or {}
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "swift"}
    spare = offering("spare", claimRef={**reference, "uid": mine["metadata"]["uid"]})
    spare["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    await stage.create(VOLUMES, spare)
    await stage.until("the spare volume is free", lambda now: now.phase("persistentvolumes", "spare") == "Available")
    for name in ("plain", "swift"):
        await stage.delete(CLAIMS, name)
    await stage.until("rusty has failed", lambda now: now.phase("persistentvolumes", "rusty") == "Failed")
    volume = str(mine["spec"]["volumeName"])
    await stage.until("swift's volume is gone", lambda now: now.find("persistentvolumes", volume) is None)
    await stage.create(CLAIMS, asking("lost", ""))
    await stage.until("lost is bound", lambda now: now.phase("persistentvolumeclaims", "lost") == "Bound")
    await stage.delete(VOLUMES, "spare")
    # Whoever asks again because the answer was lost finds it gone.
    with contextlib.suppress(NotFound):
        await stage.patch(VOLUMES, "spare", {"metadata": {"finalizers": []}})
    await stage.until("lost is lost", lambda now: now.phase("persistentvolumeclaims", "lost") == "Lost")


def marks(stage: Stage, claim: str) -> dict[str, str]:
    return dict((stage.find("persistentvolumeclaims", claim) or {}).get("metadata", {}).get("annotations") or {})


def size_of(stage: Stage, claim: str) -> str:
    status = (stage.find("persistentvolumeclaims", claim) or {}).get("status") or {}
    return str((status.get("capacity") or {}).get("storage"))


def keep_course(_container: str, _pod: str, _tried: int) -> Course:
    return Course(seconds=3)


async def fill(stage: Stage) -> None:
    await stage.create(CONFIG_MAPS, named("ConfigMap", "words", data={"a": "1", "b": "2"}))
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [
        {"name": "words", "configMap": {"name": "words"}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "file", "hostPath": {"path": "/sim/host/file", "type": "FileOrCreate"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": wish}}},
        {"name": "above", "hostPath": {"path": "/sim/host", "type": "DirectoryOrCreate"}},
    ]
    mounts = [{"name": each["name"], "mountPath": f"/mnt/{each['name']}"} for each in volumes]
    body = {"volumes": volumes, "securityContext": {"fsGroup": 1000}, "restartPolicy": "OnFailure"}
    body |= {"hostAliases": [{"ip": "10.0.0.9", "hostnames": ["nine"]}], "dnsConfig": {"searches": ["example.com"]}}
    late = [{"name": "LATE", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "a"}}}]
    main = {"volumeMounts": mounts, "env": late}
    await stage.create(PODS, named("Pod", "full", **template("main", main=main, **body)))
    lacking = "CreateContainerConfigError"
    await stage.until("full lacks a variable", lambda now: lacking in str(now.find("pods", "full")))
    await stage.create(CONFIG_MAPS, named("ConfigMap", "late", data={"a": "1"}))
    await stage.until("full runs", lambda now: now.phase("pods", "full") == "Running")
    await stage.patch(CONFIG_MAPS, "words", {"data": {"a": "one", "b": None, "c": "3"}})
    await stage.until("full succeeds", lambda now: now.phase("pods", "full") == "Succeeded")
    await stage.delete(PODS, "full")
    await stage.until("full is gone", lambda now: now.find("pods", "full") is None)
    await stage.until("its claim too", lambda now: now.find("persistentvolumeclaims", "full-own") is None)


def fill_course(_container: str, _pod: str, _tried: int) -> Course:
    # Long enough for the agent to look at the config map again, also when it was killed meanwhile.
    return Course(seconds=60)


LIVES = {
    life.name: life
    for life in (
        Life(name="train", act=train, course=train_course, may_say=frozenset({"FailedMount", "Unschedulable"})),
        Life(name="sweep", act=sweep, course=sweep_course),
        Life(name="rest", act=rest, course=rest_course),
        Life(name="leave", act=leave, course=leave_course),
        Life(name="wait", act=wait, course=wait_course, may_say=frozenset({"ErrImagePull", "ImagePullBackOff"})),
        Life(name="pods", act=pods, course=pods_course),
        Life(name="care", act=care, course=care_course),
        Life(name="settle", act=settle, course=settle_course),
        Life(name="keep", act=keep, course=keep_course),
        Life(name="fill", act=fill, course=fill_course),
        LOOK_IN,
        EXPOSE,
        REVISE,
        FETCH,
        GIVE_WAY,
        Life(
            name="refuse",
            act=refuse,
            course=refuse_course,
            stored=((f"/{GROUP}/genericjobs/default/old", OLD),),
            limits=StoreLimits(history=24, slack=4),
        ),
    )
}
