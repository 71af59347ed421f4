"""Use over time: what is measured is kept in ring files, through kills and deletion, and returned as series."""

import json
import math
import struct
import time
from datetime import timedelta
from itertools import pairwise

import pytest

from paceline.apimachinery.meta import uid_of
from paceline.effects import ProcessHandle
from paceline.host.effects import RealFiles
from paceline.node.devices import Devices
from paceline.node.host_info import Device, DevicePool, Folders
from paceline.node.logs.garbage_collection import sweep
from paceline.node.runtime import shim
from paceline.node.server.stats import IOCounters, Measurement, Sample, Usage
from paceline.node.usage.recorder import GPUUsage, UsageRecorder
from paceline.node.usage.ring_file import MINUTES, QUARTERS, SAMPLES, UNKNOWN, Counters, RingFile
from paceline.testing.sim.effects import sim_world
from tests.unit.node.pods import UID, container, pod
from tests.unit.node.test_kubelet_api import FOLDERS, ask, kubelet_over

MIB = 2**20
START = 1_900_000_800.0  # The start of a quarter of an hour.


@pytest.fixture
def ring(tmp_path):
    """A file on a real disk: in RAM every sample would copy all of it."""
    return RingFile(files=RealFiles(), path=tmp_path / "main")


def fill(ring, seconds, *, begin=START, cores=lambda _: 1.0, last=None):
    """Write samples five seconds apart of a program that uses so many cores."""
    cpu, end = 0.0, begin
    while end < begin + seconds:
        end += 5.0
        cpu += 5.0 * cores(end)
        values = (cpu, 100.0 * MIB, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        ring.append(Counters(time=end, process=int(begin - START), age_seconds=end - begin, values=values), last)
        last = end
    return last


def cpu_of(points):
    return [round(point.mean[0], 3) for point in points]


def test_a_rate_is_what_lies_between_two_samples(ring):
    ring.start()
    fill(ring, 60, cores=lambda time: 2.0 if time > START + 30 else 0.5)

    points = ring.points(START, START + 60, step=5)

    assert cpu_of(points) == [0.5] * 6 + [2.0] * 6
    assert {point.mean[1] for point in points} == {100.0 * MIB}
    assert all(math.isnan(point.mean[2]) for point in points)


def test_the_file_does_not_grow_and_old_samples_become_minutes_and_quarters(ring):
    ring.start()
    fill(ring, 50 * 3600, cores=lambda time: 3.0 if time <= START + 3600 else 1.0)

    end = START + 50 * 3600
    assert ring.files.size(ring.path) <= QUARTERS.limit
    raw = ring.points(end - 1800, end, step=5)
    assert (len(raw), set(cpu_of(raw))) == (360, {1.0})
    yesterday = ring.points(end - 24 * 3600, end - 20 * 3600, step=60)
    assert len(yesterday) == 240
    quarters = ring.points(START, end, step=900)
    assert cpu_of(quarters)[:4] == [3.0] * 4
    # What is not merged yet comes from the finer rings.
    assert len(quarters) == 199 + 14 + 12


def test_a_long_span_is_whole_whatever_the_step_is(ring):
    """Every second is covered once, from whichever ring has it."""
    ring.start()
    fill(ring, 30 * 3600)

    for step in (5, 60, 900):
        points = ring.points(START, START + 30 * 3600, step=step)
        assert sum(point.seconds for point in points) == pytest.approx(30 * 3600, rel=0.02)
        assert [point.end for point in points] == sorted({point.end for point in points})


def test_merged_records_keep_the_least_and_the_largest(ring):
    ring.start()
    fill(ring, 3 * 3600, cores=lambda time: 8.0 if START + 620 < time <= START + 630 else 1.0)

    (point,) = [point for point in ring.points(START, START + 3 * 3600, step=60) if point.most[0] > 1]

    assert (point.least[0], point.most[0]) == (1.0, 8.0)
    assert point.mean[0] == pytest.approx((50 + 2 * 40) / 60, abs=0.01)


def test_a_killed_agent_loses_no_sample_and_the_next_one_merges_what_is_left(ring):
    """T-10: the first one is killed after every sample, and never merges."""
    for number in range(400):
        values = (float(5 * number), 1.0, *(UNKNOWN,) * 6)
        end = START + 5 * (number + 1)
        ring.append(Counters(time=end, process=1, age_seconds=5.0 * (number + 1), values=values), None)
    last = ring.start()

    assert last == START + 2000
    assert len(ring.points(START, START + 2000, step=5)) == 400
    merged = ring.files.read_range(ring.path, MINUTES.place(START + 60), MINUTES.bytes)
    assert any(merged)
    assert any(ring.files.read_range(ring.path, QUARTERS.place(START + 900), QUARTERS.bytes))
    # The rate over the time without an agent is that between the two samples.
    ring.append(
        Counters(time=last + 60, process=1, age_seconds=2060.0, values=(1995.0 + 120, 1.0, *(UNKNOWN,) * 6)), last
    )
    assert ring.points(last, last + 60, step=5)[-1].mean[0] == 2.0


def test_a_minute_after_a_pause_has_the_mean_of_the_pause_and_not_of_the_whole_life(ring):
    """T-10: the agent was away when the minute began, or measured late; the container was busy before."""
    ring.start()
    last = fill(ring, 580, cores=lambda _: 8.0)
    cpu = 580 * 8.0
    for end in (START + 621, START + 626, START + 655, START + 661, START + 666):
        cpu += (end - last) * 0.5
        ring.append(Counters(time=end, process=0, age_seconds=end - START, values=(cpu, 1.0, *(UNKNOWN,) * 6)), last)
        last = end

    form = struct.Struct("<df4x24f")
    end, seconds, *values = form.unpack(ring.files.read_range(ring.path, MINUTES.place(START + 660), form.size))

    assert (end, seconds, values[8]) == (START + 660, 75.0, 0.5)


def test_a_record_that_was_cut_is_left_out(ring):
    ring.start()
    fill(ring, 60)
    ring.files.write_at(ring.path, SAMPLES.place(START + 30) + 8, b"\xff" * 20)

    assert len(ring.points(START, START + 60, step=5)) == 11


def test_a_restarted_container_begins_at_nothing(ring):
    ring.start()
    last = fill(ring, 60, cores=lambda _: 4.0)
    fill(ring, 60, begin=START + 60, last=last)

    assert cpu_of(ring.points(START, START + 120, step=5)) == [4.0] * 12 + [1.0] * 12


def test_a_hundred_pods_cost_less_than_a_third_of_a_percent_of_a_core(tmp_path):
    """A2: CPU time of two minutes of samples, with two merges."""
    files, folders, start = RealFiles(), Folders(root=tmp_path), sim_world().clock.now()
    subjects = [pod(container(), meta={"uid": f"u{number}"}) for number in range(100)]
    shims = [ProcessHandle(pid=number, start_ticks=number, boot_id="boot") for number in range(100)]
    for subject in subjects:
        files.make_folder(folders.usage(uid_of(subject)))
    recorder = UsageRecorder(files=files, folders=folders, devices=Devices(files=files, folders=folders, pools=()))
    recorder.start()
    pods = tuple((subject, {"main": shim}) for subject, shim in zip(subjects, shims, strict=True))

    def sample(seconds):
        io = IOCounters(name="eth0", received=7, sent=9)
        usage = Usage(cpu_seconds=seconds, memory_bytes=MIB, age_seconds=seconds, disk=io, network=io)
        measurement = Measurement(containers=dict.fromkeys(shims, usage), node=usage)
        return Sample(at=start + timedelta(seconds=seconds), moment=seconds, measurement=measurement, pods=pods)

    recorder.record(sample(5))
    began = time.thread_time()
    for number in range(2, 26):
        recorder.record(sample(5 * number))
    used = time.thread_time() - began

    assert used / 120 <= 0.003


class Place:
    """An agent with one running pod, whose use a test says."""

    def __init__(self):
        self.sim = sim_world()
        self.subject = pod(container(resources={"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}))
        self.subject["metadata"]["labels"] = {"tensorstack.dev/owner-name": "train"}
        self.pods = {("team", "demo"): self.subject}
        pools = (DevicePool(resource="nvidia.com/gpu", devices=(Device(number=0, name="GPU-0"),)),)
        self.recorder = UsageRecorder(
            files=self.sim.files,
            folders=FOLDERS,
            devices=Devices(files=self.sim.files, folders=FOLDERS, pools=pools),
            measure_gpus=lambda: {"GPU-0": GPUUsage(busy=0.5, memory_bytes=7)},
        )
        self.recorder.start()
        self.seconds = 0.0
        self.app = kubelet_over(self.sim, self.pods, measure=self.measure, record=self.recorder.record)

    def measure(self, shims):
        traffic = IOCounters(name="eth0", received=int(self.seconds) * 10, sent=int(self.seconds) * 20)
        disk = IOCounters(received=int(self.seconds) * 30, sent=int(self.seconds) * 40)
        container = Usage(
            cpu_seconds=self.seconds * 2, memory_bytes=3 * MIB, age_seconds=self.seconds, disk=disk, network=traffic
        )
        node = Usage(cpu_seconds=self.seconds * 3, memory_bytes=9 * MIB, age_seconds=self.seconds)
        return Measurement(containers=dict.fromkeys(shims, container), node=node)

    def measure_as(self, usage):
        """Measure what a function returns for the container."""
        node = Usage(cpu_seconds=1.0, memory_bytes=MIB, age_seconds=1.0)
        self.app.stats.measure = lambda shims: Measurement(containers=dict.fromkeys(shims, usage()), node=node)

    async def begin(self):
        folder = FOLDERS.attempt(UID, "main", 0)
        self.sim.files.make_folder(folder)
        self.app.archived.archive.write_metadata(self.subject)
        self.sim.files.write(folder / shim.INTENT, b"{}")
        await self.sim.processes.start(folder)

    async def run(self, seconds):
        for _ in range(seconds // 5):
            self.sim.clock.advance(5.0)
            self.seconds += 5.0
            await self.app.stats.sample()

    async def series(self, query="namespace=team&job=train&points=720"):
        code, body = await ask(self.app, "/stats/series", query)
        answer = json.loads(body)
        return answer if code == 200 else (code, answer["message"])

    def delete(self):
        for folder in ("main",):
            self.sim.processes.finish(FOLDERS.attempt(UID, folder, 0), 0)
        self.pods.clear()
        assert self.app.archived.archive.archive_or_remove(UID)


@pytest.fixture
async def place():
    place = Place()
    await place.begin()
    return place


async def test_a_container_is_told_with_its_requests_and_limits_and_the_pod_with_its_network(place):
    await place.run(60)

    network, main = sorted((await place.series())["items"], key=lambda item: item["container"])

    assert (main["container"], main["pod"], main["isGone"]) == ("main", "demo", False)
    assert (main["requests"], main["limits"]) == ({"cpu": 0.5}, {"memory": 2**30})
    assert main["values"]["cpu"]["mean"] == [2.0] * 12
    assert main["values"]["memory"]["max"] == [3 * MIB] * 12
    assert {name: main["values"][name]["mean"][-1] for name in ("diskRead", "diskWrite")} == {
        "diskRead": 30.0,
        "diskWrite": 40.0,
    }
    assert "networkIn" not in main["values"]
    assert network["container"] == ""
    assert (network["values"]["networkIn"]["mean"][-1], network["values"]["networkOut"]["mean"][-1]) == (10.0, 20.0)


@pytest.mark.parametrize("apart", [5.1, 6.7])
@pytest.mark.parametrize("points", [720, 7])
async def test_the_sum_of_a_series_is_what_was_used_however_far_apart_samples_are(place, apart, points):
    """T-10: bursts, one of them entirely between two samples, and a container that begins between two samples."""
    place.sim.clock.advance(1.7)
    place.seconds, used = 1.7, {"cpu": 0.0, "diskWrite": 0.0}
    usage = Usage(cpu_seconds=0.0, memory_bytes=MIB, age_seconds=1.7)
    place.measure_as(lambda: usage)
    for number in range(60):
        place.sim.clock.advance(apart)
        place.seconds += apart
        if number % 7 == 0:
            used = {"cpu": used["cpu"] + 4.0, "diskWrite": used["diskWrite"] + 90e6}
        disk = IOCounters(received=0, sent=int(used["diskWrite"]))
        usage = Usage(cpu_seconds=used["cpu"], memory_bytes=MIB, age_seconds=place.seconds, disk=disk)
        await place.app.stats.sample()

    items = (await place.series(f"namespace=team&job=train&points={points}"))["items"]
    (main,) = [item for item in items if item["container"]]

    for field, amount in used.items():
        rates = main["values"][field]["mean"]
        total = sum(rate * seconds for rate, seconds in zip(rates, main["seconds"], strict=True))
        assert total == pytest.approx(amount, rel=0.001)
    steps = {end - start for start, end in pairwise(main["times"])}
    assert len(steps) == 1
    assert set(main["values"]["memory"]["mean"]) == {MIB}


async def test_a_series_has_no_points_before_and_after_its_span(place):
    await place.run(120)
    now = place.sim.clock.now().timestamp()

    items = (await place.series(f"namespace=team&job=train&from={now - 92}&to={now - 38}&points=720"))["items"]

    (times,) = {tuple(item["times"]) for item in items}
    assert (times[0] - now, times[-1] - now, len(times)) == (-90, -35, 12)


async def test_the_node_is_told_with_what_it_has(place):
    await place.run(30)

    answer = await place.series("node=true")

    (node,) = answer["items"]
    assert node["values"]["cpu"]["mean"][-1] == 3.0
    assert node["values"]["gpu"]["mean"][-1] == 0.5
    assert node["limits"]["memory"] > 0
    assert answer["node"] == "box"


async def test_gpus_are_told_of_the_container_that_has_them(place):
    place.subject["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    place.recorder.devices.assign(place.subject, place.subject["spec"]["containers"][0])
    await place.run(10)

    items = {item["container"]: item["values"] for item in (await place.series())["items"]}

    assert items["main"]["gpu"]["mean"] == [0.5, 0.5]
    assert items["main"]["gpuMemory"]["mean"] == [7, 7]


async def test_points_are_as_few_as_requested(place):
    await place.run(600)

    answer = await place.series("namespace=team&pod=demo&points=10")

    assert answer["step"] == 360
    (main,) = [item for item in answer["items"] if item["container"]]
    assert len(main["times"]) in (2, 3)
    assert set(main["values"]["cpu"]["mean"]) == {2.0}


async def test_a_deleted_pods_series_is_still_there_until_its_logs_are_removed(place):
    await place.run(60)
    place.delete()

    gone = await place.series()
    assert {item["isGone"] for item in gone["items"]} == {True}
    (main,) = [item for item in gone["items"] if item["container"]]
    assert (len(main["times"]), main["requests"]) == (12, {"cpu": 0.5})

    place.sim.clock.advance(timedelta(days=31).total_seconds())
    assert sweep(place.app.archived.archive).pods == 1
    now = place.sim.clock.now().timestamp()
    assert (await place.series(f"namespace=team&job=train&from={now - 40 * 86400}"))["items"] == []


async def test_a_pod_that_is_deleted_while_it_is_measured_leaves_nothing_behind(place):
    await place.run(10)
    place.sim.files.remove(FOLDERS.pod(UID))

    await place.run(10)

    assert not place.sim.files.exists(FOLDERS.pod(UID))


async def test_a_new_agent_goes_on_in_the_same_file(place):
    await place.run(60)
    place.app.stats.record = UsageRecorder(
        files=place.sim.files, folders=FOLDERS, devices=place.recorder.devices
    ).record
    place.sim.clock.advance(30)
    place.seconds += 30
    await place.run(60)

    (main,) = [item for item in (await place.series())["items"] if item["container"]]

    assert set(main["values"]["cpu"]["mean"]) == {2.0}
    # Also the six points of the time without an agent, whose mean is known.
    assert len(main["times"]) == 30


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("job=train", "specify node=true, or namespace and, for deleted pods, one of job, pod and uid"),
        ("node=true&from=abc", "from must be a number, not 'abc'"),
        ("node=true&from=5&to=1", "from must be before to; from is 5, to is 1"),
        ("node=true&points=0", "points must be from 1 to 5000, not 0"),
        ("node=true&to=nan", "to must be a number, not 'nan'"),
    ],
)
async def test_a_wrong_query_is_refused(place, query, message):
    assert await place.series(query) == (400, message)


async def test_a_namespace_has_its_existing_pods_only(place):
    await place.run(10)
    assert len((await place.series("namespace=team&seconds=60"))["items"]) == 2

    place.delete()
    assert (await place.series("namespace=team"))["items"] == []


async def test_another_namespace_sees_nothing(place):
    await place.run(10)

    assert (await place.series("namespace=other&job=train"))["items"] == []
    assert (await place.series("namespace=../team&job=train"))["items"] == []
