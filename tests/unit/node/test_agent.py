"""The node agent from a pod's first sight to its end, and over its own deaths."""

import asyncio
import json
from pathlib import Path

import pytest

from paceline.client.interface import CLAIMS, CONFIG_MAPS, LEASES, NODES, PODS, VOLUMES
from paceline.node.runtime import shim
from paceline.testing.sim.processes import Course
from tests.unit.node.conftest import FOLDERS, always


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_runs_and_its_end_is_reported(play, code, phase):
    async def story(place):
        async with place.agent():
            await place.create()
            pod = await place.phase("Running")
            assert pod["status"]["podIP"].startswith("127.")
            place.sim.processes.finish(place.folder(), code)
            pod = await place.phase(phase)
            assert terminated(pod)["exitCode"] == code
            await asyncio.sleep(1)
        assert await place.events() == {"Pulled": 1, "Created": 1, "Started": 1}

    play(story)


class Counted:
    """A cluster that counts who patches what."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.patched = []

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    async def patch(self, where, key, patch, **how):
        self.patched.append((where.plural, key[1]))
        return await self._cluster.patch(where, key, patch, **how)


def test_a_pod_is_reported_when_there_is_news_and_not_at_every_look(play):
    async def story(place):
        place.cluster = counted = Counted(place.cluster)
        async with place.agent() as agent:
            uid = (await place.create())["metadata"]["uid"]
            await place.phase("Running")
            for _ in range(5):
                await agent.reconcile(uid)
            await asyncio.sleep(1)
        assert counted.patched.count(("pods", "demo")) == 1

    play(story)


def test_a_program_that_is_not_there_was_never_running(play):
    async def story(place):
        place.sim.processes.script = always(Course(start_error="train: not found"))
        async with place.agent():
            await place.create()
            pod = await place.phase("Running", "Failed")
            assert terminated(pod)["reason"] == "StartError"
            assert terminated(pod)["message"] == "train: not found"
            await asyncio.sleep(1)
            assert set(await place.events()) == {"Pulled", "Created", "Failed"}

    play(story)


def test_a_pod_that_is_taken_away_by_force_is_ended_at_once(play):
    async def story(place):
        async with place.agent():
            await place.create()
            await place.phase("Running")
            await place.delete(grace=0)
            await asyncio.sleep(1)
        assert place.sim.processes.running() == {}
        assert place.sim.files.names(FOLDERS.pods) == ()

    play(story)


def test_a_pod_that_went_while_the_agent_was_dead_is_ended_by_the_next(play):
    async def story(place):
        async with place.agent():
            await place.create()
            await place.phase("Running")
        await place.delete(grace=0)
        async with place.agent():
            await asyncio.sleep(1)
        assert place.sim.processes.running() == {}
        assert place.sim.files.names(FOLDERS.pods) == ()

    play(story)


def test_a_new_pod_by_the_same_name_is_another_pod(play):
    async def story(place):
        place.sim.processes.script = always(Course(on_term=None))
        async with place.agent():
            first = await place.create()
            await place.phase("Running")
            await place.delete(grace=0)
            second = await place.create()
            await place.phase("Running")
            await asyncio.sleep(1)
            (intent,) = place.sim.processes.running().values()
            assert intent["pod"]["uid"] == second["metadata"]["uid"] != first["metadata"]["uid"]

    play(story)


def test_what_ends_while_the_agent_is_dead_is_reported_by_the_next(play):
    async def story(place):
        place.sim.processes.script = always(Course(seconds=30, exit_code=7))
        async with place.agent():
            await place.create()
            await place.phase("Running")
        await asyncio.sleep(600)
        async with place.agent():
            pod = await place.phase("Failed")
        ended = terminated(pod)
        assert (ended["exitCode"], ended["finishedAt"]) == (7, "2030-01-01T00:00:30Z")
        assert len(place.sim.processes.ledger) == 1

    play(story)


def test_what_runs_on_is_followed_by_the_next_agent(play):
    async def story(place):
        async with place.agent():
            await place.create()
            await place.phase("Running")
        async with place.agent():
            await asyncio.sleep(1)
            place.sim.processes.finish(place.folder(), 0)
            await place.phase("Succeeded")
        assert len(place.sim.processes.ledger) == 1
        assert await place.events() == {"Pulled": 1, "Created": 1, "Started": 1}

    play(story)


@pytest.mark.parametrize("seed", range(6))
def test_an_agent_that_dies_at_any_moment_starts_nothing_twice(play, seed):
    """Agents die one after the other, each a little later in its work; the pods come to their ends all the same."""

    async def story(place):
        place.sim.processes.script = always(Course(seconds=0.2))
        names = [f"p{number}" for number in range(8)]
        for turns in range(0, 400, 5):
            if turns % 50 == 0:
                await place.create(names[turns // 50])
            await place.short_lived_agent(turns)
        async with place.agent():
            for name in names:
                await place.phase("Succeeded", name=name)
        assert len(place.sim.processes.ledger) == len(set(place.sim.processes.ledger)) == len(names)
        for name in names:
            assert set((await place.events(name)).values()) <= {1}

    play(story, seed)


def test_a_killed_shim_is_an_end_with_a_reason(play):
    async def story(place):
        async with place.agent():
            await place.create()
            await place.phase("Running")
            place.sim.processes.lose(place.folder())
            pod = await place.phase("Failed")
            assert (terminated(pod)["exitCode"], terminated(pod)["reason"]) == (137, "ShimLost")

    play(story)


def test_a_power_cut_ends_every_try_with_that_reason(play):
    async def story(place):
        async with place.agent():
            await place.create()
            await place.phase("Running")
        place.sim.files.crash()
        place.sim.processes.reboot()
        async with place.agent():
            pod = await place.phase("Failed")
        assert terminated(pod)["reason"] == "NodeRebooted"
        assert len(place.sim.processes.ledger) == 1

    play(story)


def test_a_crash_loop_backs_off(play):
    async def story(place):
        place.sim.processes.script = always(Course(seconds=1, exit_code=1))
        async with place.agent():
            await place.create(restartPolicy="Always")
            await place.waits("CrashLoopBackOff")
            await asyncio.sleep(600)
            pod = await place.pod()
        # At once, then after 10, 20, 40, 80, 160 and 300 seconds: seven starts in ten minutes and a bit.
        assert len(place.sim.processes.ledger) == 7
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 6
        assert pod["status"]["phase"] == "Running"
        uid = pod["metadata"]["uid"]
        # Only the last try and the one before it, whose log people ask for, are kept.
        assert place.sim.files.names(FOLDERS.container(uid, "main")) == ("5", "6")

    play(story)


def test_init_containers_run_before_the_others(play):
    async def story(place):
        place.sim.processes.script = always(Course(seconds=1))
        init = [{"name": name, "image": "python", "command": ["x"]} for name in ("one", "two")]
        async with place.agent():
            await place.create(initContainers=init)
            pod = await place.phase("Succeeded")
        assert [folder.parent.name for folder in place.sim.processes.ledger] == ["one", "two", "main"]
        assert [each["ready"] for each in pod["status"]["initContainerStatuses"]] == [True, True]

    play(story)


def test_without_a_sandbox_the_pod_waits_and_starts_when_it_is_there(play):
    async def story(place):
        place.sandbox = None
        async with place.agent():
            await place.create()
            said = await place.waits("SandboxMissing")
            assert "apt-get install bubblewrap" in said
            assert (await place.pod())["status"]["phase"] == "Pending"
            node = await place.cluster.get(NODES, "", "box")
            ready = {each["type"]: each["status"] for each in node["status"]["conditions"]}
            assert ready["SandboxReady"] == "False"
            place.sandbox = "/usr/bin/bwrap"
            await place.phase("Running")
            await asyncio.sleep(15)
            node = await place.cluster.get(NODES, "", "box")
            ready = {each["type"]: each["status"] for each in node["status"]["conditions"]}
            assert ready["SandboxReady"] == "True"
        assert (await place.events())["FailedCreatePodSandBox"] == 1

    play(story)


def test_an_image_that_maps_to_nothing_waits_for_its_row(play):
    async def story(place):
        async with place.agent():
            await place.create(container={"image": "acme/train:1"})
            assert "paceline up --image 'acme/train:1=host'" in await place.waits("ErrImagePull")
            assert "paceline up --image 'acme/train:1=host'" in await place.waits("ImagePullBackOff")
        assert place.sim.processes.ledger == []
        place.images = (("acme/*", "host"),)
        async with place.agent():
            await place.phase("Running")

    play(story)


def test_a_claim_is_waited_for_and_then_mounted(play):
    async def story(place):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        mounts = {"volumeMounts": [{"name": "data", "mountPath": "/mnt/data"}]}
        async with place.agent():
            await place.create(container=mounts, volumes=volumes)
            assert await place.lacks("FailedMount") == 'persistentvolumeclaim "data" not found'
            assert await place.waits("ContainerCreating") is None
            assert (await place.events())["FailedMount"] >= 1
            # It has waited so long that the next look would be a minute away, were it not for the claim.
            await asyncio.sleep(1000)
            began = asyncio.get_running_loop().time()
            await make_claim(place)
            await place.phase("Running")
            assert asyncio.get_running_loop().time() - began < 1
        options = next(iter(place.sim.processes.running().values()))["options"]
        at = options.index("/mnt/data")
        assert options[at - 2 : at] == ["--bind", "/disk/data"]
        assert place.sim.files.exists(FOLDERS.root / "/disk/data")

    play(story)


async def make_claim(place):
    size = {"storage": "1Gi"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"capacity": size, "accessModes": ["ReadWriteMany"], "hostPath": {"path": "/disk/data"}},
    }
    await place.cluster.create(VOLUMES, volume)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": size}, "volumeName": "pv"},
    }
    await place.cluster.create(CLAIMS, claim)
    bound = {"status": {"phase": "Bound"}}
    await place.cluster.patch(CLAIMS, ("default", "data"), bound, subresource="status")


def test_values_from_a_config_map_reach_the_container(play):
    async def story(place):
        wire = [
            {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "lr"}}},
            {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]
        async with place.agent():
            await place.create(container={"env": wire, "command": ["train", "--lr=$(LR)"]})
            assert await place.waits("CreateContainerConfigError") == 'configmap "settings" not found'
            settings = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"lr": "0.1"}}
            await place.cluster.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **settings})
            pod = await place.phase("Running")
        (intent,) = place.sim.processes.running().values()
        assert intent["argv"][-2:] == ["train", "--lr=0.1"]
        at = intent["options"].index("ME")
        assert intent["options"][at + 1] == pod["status"]["podIP"]

    play(story)


@pytest.mark.parametrize("seed", range(8))
def test_peers_are_known_before_the_first_of_them_starts(play, seed):
    """H-58"""

    async def story(place):
        def starts(intent):
            at = intent["options"].index("/etc/hosts")
            texts.append(place.sim.files.read(Path(intent["options"][at - 1])).decode())
            return Course()

        texts, place.sim.processes.script = [], starts
        async with place.agent():
            # The second is not bound to any node yet.
            await place.create("w-1", subdomain="job", nodeName="")
            await place.create("w-0", subdomain="job")
            await place.phase("Running", name="w-0")
        assert "w-1.job.default.svc.cluster.local" in texts[0]
        assert "w-0.job" in texts[0]

    play(story, seed)


def test_pods_of_other_nodes_are_left_alone(play):
    async def story(place):
        async with place.agent():
            await place.create("elsewhere", nodeName="another")
            await place.create()
            await place.phase("Running")
        assert len(place.sim.processes.ledger) == 1
        assert (await place.pod("elsewhere"))["status"]["phase"] == "Pending"

    play(story)


def test_a_shim_that_cannot_begin_is_tried_again_later(play):
    async def story(place):
        class Exhausted(type(place.sim.processes)):
            failures = 3

            async def start(self, folder):
                if self.failures:
                    self.failures -= 1
                else:
                    await super().start(folder)

        place.sim.processes.__class__ = Exhausted
        async with place.agent():
            await place.create()
            await place.phase("Running")
        assert len(place.sim.processes.ledger) == 1

    play(story)


def test_the_node_says_what_it_has_and_that_it_lives(play):
    async def story(place):
        async with place.agent():
            node = await place.cluster.get(NODES, "", "box")
            assert node["status"]["allocatable"] == {"cpu": "2", "memory": "8Gi", "pods": "1k"}
            assert {"type": "Ready", "status": "True"}.items() <= node["status"]["conditions"][-1].items()
            await asyncio.sleep(1)
            first = await place.cluster.get(LEASES, "kube-node-lease", "box")
            await asyncio.sleep(15)
            later = await place.cluster.get(LEASES, "kube-node-lease", "box")
            assert later["spec"]["renewTime"] > first["spec"]["renewTime"]
            await place.cluster.delete(NODES, ("", "box"))
            # With the next report, which comes every five minutes when there is nothing new to say.
            await asyncio.sleep(320)
            assert (await place.cluster.get(NODES, "", "box"))["status"]["capacity"]["cpu"] == "2"

    play(story)


def test_pods_may_come_once_the_node_is_ready_and_what_people_say_of_it_stays(play):
    async def story(place):
        not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        theirs = {"key": "mine", "effect": "NoSchedule"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "box"}, "spec": {"taints": [theirs]}}
        assert (await place.cluster.create(NODES, node))["spec"]["taints"] == [theirs, not_ready]

        async with place.agent():
            assert (await place.cluster.get(NODES, "", "box"))["spec"]["taints"] == [theirs]
            await place.cluster.delete(NODES, ("", "box"))
            await asyncio.sleep(320)
            assert "taints" not in (await place.cluster.get(NODES, "", "box"))["spec"]

    play(story)


def test_labels_that_people_put_on_the_node_stay(play):
    async def story(place):
        async with place.agent():
            await place.cluster.patch(NODES, ("", "box"), {"metadata": {"labels": {"zone": "a"}}})
        async with place.agent():
            node = await place.cluster.get(NODES, "", "box")
            assert node["metadata"]["labels"]["zone"] == "a"

    play(story)


def test_the_intent_is_for_its_owner_only_and_gone_after_the_start(play):
    async def story(place):
        async with place.agent():
            await place.create(container={"env": [{"name": "TOKEN", "value": "canary"}]})
            await place.phase("Running")
        path = place.folder() / shim.INTENT
        assert place.sim.files.modes[path] == 0o600
        assert not place.sim.files.exists(path)
        assert "canary" not in json.dumps((await place.pod())["status"])

    play(story)


def test_nothing_is_written_when_nothing_has_changed(play):
    async def story(place):
        async with place.agent():
            await place.create()
            before = await place.phase("Running")
            await place.cluster.patch(PODS, ("default", "demo"), {"metadata": {"labels": {"touched": "yes"}}})
            await asyncio.sleep(5)
            after = await place.pod()
        assert before["status"] == after["status"]
        assert int(after["metadata"]["resourceVersion"]) - int(before["metadata"]["resourceVersion"]) < 8

    play(story)
