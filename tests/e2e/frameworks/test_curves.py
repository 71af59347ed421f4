"""Our figures are TensorBoard's own for the same files."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from paceline.podtools.files.curves import CurveReader
from paceline.podtools.files.volume import open_root
from tests.unit.podtools.files.event_files import event, event_file, simple, start, tensor

READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as PluginAccumulator
from tensorboard.util import tensor_util
plain = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}); plain.Reload()
curves = {tag: [[e.step, e.wall_time, e.value] for e in plain.Scalars(tag)] for tag in plain.Tags()["scalars"]}
other = PluginAccumulator(sys.argv[1], size_guidance={"tensors": 0}, tensor_size_guidance={"scalars": 0})
other.Reload()
for tag in other.PluginTagToContent("scalars"):
    value = lambda event: float(tensor_util.make_ndarray(event.tensor_proto).item())
    curves[tag] = [[event.step, event.wall_time, value(event)] for event in other.Tensors(tag)]
print(json.dumps(curves))
"""
# Written by TensorBoard's own writer.
WRITE = """
import sys
from tensorboard.summary import Writer
writer = Writer(sys.argv[1])
for step in range(1000):
    writer.add_scalar("written/loss", 1 / (step + 1), step)
writer.close()
"""


@pytest.mark.slow
def test_the_figures_are_those_of_tensorboard(tmp_path: Path) -> None:
    python = Path(os.environ["PACELINE_TENSORBOARD"]) / "bin" / "python"
    events = [
        event(
            step,
            simple("loss", 1 / (step + 1)),
            tensor("accuracy", step / 100, has_metadata=step == 0),
            time=1e9 + step,
        )
        for step in range(100)
    ]
    again = [event(step, simple("loss", step), time=2e9 + step) for step in range(50, 60)]
    (tmp_path / "events.out.tfevents.1.a").write_bytes(event_file(start(0), *events))
    (tmp_path / "events.out.tfevents.2.a").write_bytes(event_file(start(50), *again))
    subprocess.run([python, "-c", WRITE, tmp_path], check=True, capture_output=True, timeout=120)
    ran = subprocess.run([python, "-c", READ, tmp_path], check=True, capture_output=True, text=True, timeout=120)
    root = open_root(str(tmp_path))
    (run,) = CurveReader(root).read("")["runs"]
    os.close(root)
    ours = {
        series["tag"]: [list(point) for point in zip(series["steps"], series["times"], series["values"], strict=True)]
        for series in run["scalars"]
    }
    theirs = json.loads(ran.stdout.splitlines()[-1])
    assert ours.keys() == theirs.keys()
    for tag, points in theirs.items():
        assert ours[tag] == points, tag


@pytest.mark.slow
def test_the_figures_of_a_thinned_curve_are_those_of_tensorboard(tmp_path: Path) -> None:
    """A comparison has the last, least and largest of all points, and draws points that TensorBoard has."""
    python = Path(os.environ["PACELINE_TENSORBOARD"]) / "bin" / "python"
    events = [event(step, simple("loss", (step * 7919 % 10_007) / 10_007), time=1e9 + step) for step in range(10_000)]
    (tmp_path / "events.out.tfevents.1.a").write_bytes(event_file(start(0), *events))
    ran = subprocess.run([python, "-c", READ, tmp_path], check=True, capture_output=True, text=True, timeout=120)
    root = open_root(str(tmp_path))
    (run,) = CurveReader(root).read("", points=300)["runs"]
    os.close(root)

    (ours,) = run["scalars"]
    theirs = json.loads(ran.stdout.splitlines()[-1])["loss"]
    points = list(zip(ours["steps"], ours["times"], ours["values"], strict=True))
    ends = [(bucket + 1) * len(theirs) // 300 for bucket in range(300)]
    buckets = [[value for _, _, value in theirs[first:end]] for first, end in zip([0, *ends], ends, strict=False)]
    assert (ours["count"], len(points)) == (len(theirs), 300)
    assert set(points) <= {tuple(point) for point in theirs}
    assert (ours["low"], ours["high"]) == ([min(bucket) for bucket in buckets], [max(bucket) for bucket in buckets])
    for name, chosen in (
        ("last", theirs[-1]),
        ("min", min(theirs, key=lambda point: point[2])),
        ("max", max(theirs, key=lambda point: point[2])),
    ):
        assert [ours[name]["step"], ours[name]["time"], ours[name]["value"]] == chosen
