"""`python -m bench.compare`: how soon the console compares runs with long curves, in headless Chromium.

    .venv/bin/python -m bench.compare [--jobs N] [--points N] [--metrics N] [--rounds N]

Every round has jobs and event files that were never read before, and opens the page twice. Times begin at the
navigation and end with the frame that shows all curves; the load of the last minute ends each line. Needs
PACELINE_CHROMIUM (`tools/setup chromium`).
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from tests.unit.podtools.files.event_files import event, event_file, simple

from bench.console import show
from bench.console_pages import browser, logged_in, timed
from paceline.podtools.files.curves import CurveReader
from paceline.podtools.files.volume import open_root
from paceline.testing.embedded import embedded

CLAIM = "runs"
FILE = "events.out.tfevents.1700000000.host"
# Milliseconds after the navigation: the first request for curves, the last answer; bytes of all answers.
ANSWERS = """() => {
  const read = performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/curves/'));
  return [Math.min(...read.map((one) => one.startTime)), Math.max(...read.map((one) => one.responseEnd)),
    read.reduce((sum, one) => sum + one.encodedBodySize, 0)];
}"""


def job(name, folder):
    """Return a job that is paused, so that only its curves are there."""
    container = {"name": "pytorch", "image": "python:3", "command": ["true"]}
    worker = {"type": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    board = {"image": "none", "suspend": True, "trainingLogFilesets": [f"t9k://pvc/{CLAIM}/{folder}"]}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "runMode": {"pause": {"enabled": True}},
            "tensorboardSpec": board,
            "replicaSpecs": [worker],
        },
    }


def write_runs(folder, options):
    """Write the event files of one round: metrics in turn, as a training loop does."""
    for number in range(options.jobs):
        events = [
            event(step, simple(f"metric-{metric}", (number + 1) / (1 + step % 977)), time=1.7e9 + step / 10)
            for step in range(options.points // options.metrics)
            for metric in range(options.metrics)
        ]
        run = folder / f"run-{number:02}"
        run.mkdir(parents=True)
        (run / FILE).write_bytes(event_file(*events))


def bench_reading(folder, options):
    """What reading costs by itself."""
    root = open_root(str(folder))
    reader, began = CurveReader(root), time.process_time()
    answer = reader.read("", points=500)
    took = time.process_time() - began
    began = time.process_time()
    reader.read("", points=500)
    again = time.process_time() - began
    os.close(root)
    points = sum(scalar["count"] for run in answer["runs"] for scalar in run["scalars"])
    assert points == options.jobs * (options.points // options.metrics) * options.metrics, points
    show(f"reading {points} points by itself, CPU s; again", f"{took:.2f}; {again:.2f}")


def put(cluster, folder, options):
    """Create claim, files and jobs of all rounds."""
    run(cluster, "volume", "create", CLAIM, "--size", "2Gi")
    for number in range(options.rounds):
        run(cluster, "volume", "put", f"{folder}/", f"{CLAIM}:round-{number}")
        for index in range(options.jobs):
            manifest = job(f"r{number}-run-{index:02}", f"round-{number}/run-{index:02}")
            run(cluster, "submit", "-", stdin=json.dumps(manifest))


def run(cluster, *command, stdin=""):
    ran = cluster.paceline(*command, stdin=stdin)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def bench_page(page, address, number, options):
    """Open the page of one round; return the seconds until all curves are shown, and what its requests took."""
    jobs = ",".join(f"default/PyTorchTrainingJob/r{number}-run-{index:02}" for index in range(options.jobs))
    last = f"metric-{min(options.metrics, 12) - 1}"
    row = f"document.querySelectorAll('[data-table=results] tr[data-metric={last}] td')"
    numbers = f"[...{row}].filter((cell) => /[0-9]/.test(cell.textContent)).length"
    page.goto("about:blank")
    page.goto(f"{address}/compare?jobs={jobs}", wait_until="commit")
    shown = f"{numbers} === {options.jobs} && document.querySelector('.pl-curve[data-metric={last}] canvas')"
    seconds = timed(page, shown)
    first, answered, size = page.evaluate(ANSWERS)
    return seconds, first / 1000, answered / 1000, size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--points", type=int, default=100_000, help="of each run, all metrics together")
    parser.add_argument("--metrics", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("comparison of runs")
    print(f"  {'':58} {'':>14}   {'goal':23}   load")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as home:
        folder = Path(home) / "events"
        write_runs(folder, options)
        bench_reading(folder, options)
        with embedded() as cluster, browser() as chromium:
            put(cluster, folder, options)
            shutil.rmtree(folder)
            login = run(cluster, "ui", "--no-browser")
            page, address = logged_in(chromium, login), login.partition("/login")[0]
            bench_rounds(page, address, options)


def bench_rounds(page, address, options):
    runs = f"{options.jobs} runs of {options.points} points"
    for number in range(options.rounds):
        for state, goal in (("not read before", "≤ 2"), ("read before", "")):
            seconds, first, answered, size = bench_page(page, address, number, options)
            show(f"{runs}, {state}: on screen, s", f"{seconds:.2f}", goal)
            parts = f"{first:.2f} + {answered - first:.2f} + {seconds - answered:.2f}"
            show(f"  page + curves ({size / 1000:.0f} kB) + drawing, s", parts)


if __name__ == "__main__":
    main()
