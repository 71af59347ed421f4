"""Devices: nobody gets one that another has, and who has one keeps it over any death of the agent."""

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.client.interface import NODES
from paceline.node.devices import Devices, nodes, variables
from paceline.node.host_info import CannotStart, Device, DevicePool, Folders
from paceline.testing.sim.effects import sim_world
from paceline.testing.sim.processes import Course
from tests.unit.node.pods import HOST

GPUS = DevicePool(
    resource="nvidia.com/gpu",
    devices=tuple(Device(number=number, nodes=(f"/dev/nvidia{number}",)) for number in range(3)),
    nodes=("/dev/nvidiactl",),
)
FOLDERS = Folders(root=Path("/agent"))


def container(name="main", gpus=0, **more):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": name, "resources": {"limits": limits}, **more}


def pod(uid, *containers, first=()):
    spec = {"containers": list(containers), "initContainers": list(first)}
    return {"metadata": {"name": uid, "uid": uid}, "spec": spec}


@pytest.fixture
def files():
    made = sim_world().files
    made.make_folder(FOLDERS.pods)
    return made


@pytest.fixture
def devices(files):
    return agent(files)


def agent(files, *device_pools):
    made = Devices(files=files, folders=FOLDERS, pools=device_pools or (GPUS,))
    made.load()
    return made


def assigned(devices, pod, which=0):
    container = pod["spec"]["containers"][which]
    devices.assign(pod, container)
    return held(devices, pod, container)


def held(devices, pod, container):
    return [device.number for _, some in devices.of(pod, container) for device in some]


def test_two_pods_never_have_the_same_device(devices):
    assert assigned(devices, pod("a", container(gpus=2))) == [0, 1]
    assert assigned(devices, pod("b", container(gpus=1))) == [2]


def test_two_containers_of_one_pod_have_their_own(devices):
    both = pod("a", container("one", gpus=1), container("two", gpus=2))

    assert assigned(devices, both, 0) == [0]
    assert assigned(devices, both, 1) == [1, 2]


def test_who_asks_for_more_than_is_free_waits(devices):
    devices.assign(pod("a"), container(gpus=2))

    with pytest.raises(CannotStart, match=r"unavailable for nvidia.com/gpu\. Requested: 2, Available: 1"):
        devices.assign(pod("b"), container(gpus=2))


def test_a_container_that_starts_again_keeps_its_devices(devices):
    restarted = pod("b", container(gpus=1))
    assigned(devices, pod("a", container(gpus=1)))
    assert assigned(devices, restarted) == [1]
    devices.release("a")

    assert assigned(devices, restarted) == [1]


def test_the_next_agent_knows_who_has_what(files, devices):
    first = pod("a", container(gpus=2))
    assigned(devices, first)
    later = agent(files)

    assert held(later, first, first["spec"]["containers"][0]) == [0, 1]
    assert assigned(later, pod("b", container(gpus=1))) == [2]


def test_what_a_pod_gives_back_is_given_to_the_next(files, devices):
    assigned(devices, pod("a", container(gpus=3)))
    devices.release("a")

    assert assigned(devices, pod("b", container(gpus=3))) == [0, 1, 2]
    assert assigned(agent(files), pod("b", container(gpus=3))) == [0, 1, 2]


def test_the_devices_of_a_finished_first_step_are_taken_over(devices):
    steps = (container("one", gpus=2), container("two", gpus=1))
    stepped = pod("a", container(gpus=3), first=steps)
    for step in steps:
        devices.assign(stepped, step)

    assert [held(devices, stepped, step) for step in steps] == [[0, 1], [0]]
    assert assigned(devices, stepped) == [0, 1, 2]


def test_the_devices_of_a_sidecar_stay_its_own(devices):
    sidecar = container("side", gpus=1, restartPolicy="Always")
    sided = pod("a", container(gpus=1), first=(sidecar,))
    devices.assign(sided, sidecar)

    assert assigned(devices, sided) == [1]


def test_a_device_that_is_gone_is_not_replaced_behind_the_back_of_who_holds_it(files, devices):
    holder = pod("a", container(gpus=3))
    assigned(devices, holder)
    fewer = agent(files, DevicePool(resource="nvidia.com/gpu", devices=GPUS.devices[:2]))

    with pytest.raises(CannotStart, match=r"nvidia.com/gpu 2 is allocated to this container, but no longer exists"):
        assigned(fewer, holder)
    with pytest.raises(CannotStart, match="Requested: 3, Available: 0"):
        assigned(agent(files, DevicePool(resource="example.com/other", devices=())), holder)


def test_a_record_that_was_never_finished_holds_nothing(files):
    files.make_folder(FOLDERS.pod("a"))
    files.write(FOLDERS.pod("a") / "devices.json", b"{")

    assert assigned(agent(files), pod("b", container(gpus=3))) == [0, 1, 2]


def test_what_a_container_is_told_and_sees(devices):
    some = pod("a", container(gpus=2))
    assigned(devices, some)
    has = devices.of(some, some["spec"]["containers"][0])

    assert variables(has) == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "NVIDIA_VISIBLE_DEVICES": "0,1",
        "PACELINE_DEVICES_NVIDIA_COM_GPU": "0,1",
    }
    assert nodes(has) == ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1")


def test_a_container_that_asks_for_none_is_told_that_it_has_none(devices):
    has = devices.of(pod("a", container()), container())

    assert variables(has) == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    assert nodes(has) == ()


def test_devices_with_a_name_go_by_it(files):
    named = DevicePool(
        resource="nvidia.com/gpu", devices=(Device(number=0, name="GPU-1"), Device(number=1, name="GPU-2"))
    )
    devices = agent(files, named)
    some = pod("a", container(gpus=2))
    assigned(devices, some)

    assert variables(devices.of(some, container()))["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


def gpus_of(intent):
    """Give what a container was told of its devices when it was started."""
    words = list(intent["options"])
    return words[words.index("CUDA_VISIBLE_DEVICES") + 1].split(",")


@pytest.mark.parametrize("seed", range(4))
def test_agents_that_die_at_any_moment_never_give_one_device_to_two_pods(play, seed):
    """Four pods share two devices; whoever finds none waits, and all come to their ends."""

    async def story(place):
        place.host = replace(HOST, device_pools=(replace(GPUS, devices=GPUS.devices[:2]),))
        given = []

        def script(intent):
            others = [gpus_of(each) for each in place.sim.processes.running().values()]
            assert gpus_of(intent) not in others
            given.append(gpus_of(intent))
            return Course(seconds=0.3)

        place.sim.processes.script = script
        names = [f"p{number}" for number in range(4)]
        for name in names:
            await place.create(name, container={"resources": {"limits": {"nvidia.com/gpu": "1"}}})
        for turns in range(0, 300, 7):
            await place.short_lived_agent(turns)
        async with place.agent():
            for name in names:
                await place.phase("Succeeded", name=name)
        assert len(given) == len(names)
        assert {number for (number,) in given} <= {"0", "1"}
        assert not [name for name in names if place.sim.files.exists(FOLDERS.pod(name) / "devices.json")]

    play(story, seed)


def test_the_node_has_what_the_machine_has_now(play):
    async def story(place):
        seen = []
        for device_pools in ((GPUS,), ()):
            place.host = replace(HOST, device_pools=device_pools)
            async with place.agent():
                status = (await place.cluster.get(NODES, "", HOST.name))["status"]
                seen.append([status[part].get("nvidia.com/gpu") for part in ("capacity", "allocatable")])
        return seen

    assert play(story) == [["3", "3"], [None, None]]
