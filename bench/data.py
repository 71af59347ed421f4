"""Code in and results out, as ratios: a sync over a plain copy, and a start from git over a bare clone.

    .venv/bin/python -m bench.data

Everything is local: a folder stands for the bucket, a server on loopback for the repository.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paceline.porter.bucket import Where, open_bucket
from paceline.porter.sync import Sync
from paceline.testing.gitserver import git_server

ROUNDS = 5
LARGE, SMALL = (4, 32 * 1024 * 1024), (400, 16 * 1024)


def timed(work) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def fill(root: Path) -> int:
    for kind, (count, size) in {"large": LARGE, "small": SMALL}.items():
        for index in range(count):
            path = root / kind / f"{index:04}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
    return sum(count * size for count, size in (LARGE, SMALL))


def copy_ratio(place: Path) -> tuple[float, float, float]:
    root = place / "output"
    size = fill(root)
    plain, ours = [], []
    for index in range(ROUNDS):
        there, bucket = place / f"plain-{index}", place / f"bucket-{index}"
        plain.append(timed(lambda there=there: shutil.copytree(root, there)))

        def sync(bucket=bucket) -> None:
            Sync(root=root, bucket=open_bucket(Where(url=f"file://{bucket}", secret={})), job="bench").finish()

        ours.append(timed(sync))
        shutil.rmtree(there)
        shutil.rmtree(bucket)
    a, b = statistics.median(plain), statistics.median(ours)
    return size / a / 1e6, size / b / 1e6, a / b


def start_ratio(place: Path) -> tuple[float, float, float]:
    with git_server(place / "git") as server:
        files = {f"pkg/m{index}.py": f"x = {index}\n" * 200 for index in range(300)}
        commit = server.commit("code", {**files, "train.py": "print(1)\n"})
        bare, ours = [], []
        for index in range(ROUNDS):
            there = place / f"bare-{index}"
            words = ["git", "clone", "--quiet", server.url("code"), str(there)]
            bare.append(timed(lambda words=words: subprocess.run(words, check=True)))
            into, tools = place / f"into-{index}", place / f"tools-{index}"
            into.mkdir()
            tools.mkdir()
            step = [
                "clone",
                "--url",
                server.url("code"),
                "--commit",
                commit,
                "--into",
                str(into),
                "--tools",
                str(tools),
            ]
            program = [sys.executable, "-m", "paceline.porter", *step]
            ours.append(timed(lambda program=program: subprocess.run(program, check=True, stdout=subprocess.DEVNULL)))
    a, b = statistics.median(bare), statistics.median(ours)
    return a, b, b / a


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        plain, ours, ratio = copy_ratio(Path(place))
        print(f"sync     plain copy {plain:7.0f} MB/s   ours {ours:7.0f} MB/s   ratio {ratio:.2f} (goal at least 0.7)")
        bare, clone, times = start_ratio(Path(place))
        print(f"start    bare clone {bare:7.3f} s      ours {clone:7.3f} s      ratio {times:.2f} (goal at most 1.2)")


if __name__ == "__main__":
    main()
