"""Code in and results out, as ratios: a sync over plain copies, and a second start from git over a bare clone.

    .venv/bin/python -m bench.data

Everything is local: a server on loopback takes results, and another has the repository. Both sides take turns; medians.
The folder is that of TMPDIR: on a disk that others write to, the disk is what is measured.
"""

import contextlib
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore

from paceline.environments.cache import cache_folder, find_uv
from paceline.kinds.pod_injection import CACHE, FIND_REQUIREMENTS, TOOLS
from paceline.podtools.install_tools import INSTALLERS
from paceline.podtools.object_store import BucketConfig, BucketFolder, open_bucket
from paceline.podtools.uploader import MAX_TRANSFERS, OutputSync
from paceline.testing.git_server import GitServer, git_server

ROUNDS = 9
LARGE, SMALL = (4, 32 * 1024 * 1024), (400, 16 * 1024)
KEYS = {"accessKeyId": "AKIABENCH", "accessKeySecret": "bench-bench-bench"}
MEGABYTES = sum(count * size for count, size in (LARGE, SMALL)) / 1e6


class Turns:
    """Seconds and CPU of this process, for two ways to do the same, the one after the other."""

    def __init__(self, **ways) -> None:
        self.ways = ways
        self.seconds = {name: [] for name in ways}
        self.cpu = {name: [] for name in ways}

    def take(self) -> "Turns":
        for index in range(ROUNDS):
            for name, way in self.ways.items():
                begun, used = time.perf_counter(), cpu()
                way(index)
                self.seconds[name].append(time.perf_counter() - begun)
                self.cpu[name].append(cpu() - used)
        return self

    def middle(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, one: str, other: str) -> float:
        return self.middle(one) / self.middle(other)

    def cpu_ratio(self, one: str, other: str) -> float:
        return statistics.median(self.cpu[one]) / statistics.median(self.cpu[other])


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fill(root: Path) -> list[str]:
    for kind, (count, size) in {"large": LARGE, "small": SMALL}.items():
        for index in range(count):
            path = root / kind / f"{index:04}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
    return [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]


def put_all(root: Path, names: list[str], bucket: BucketFolder) -> None:
    """Put every file with the same client, as many side by side, and nothing else."""
    with ThreadPoolExecutor(MAX_TRANSFERS) as pool:
        for _ in pool.map(lambda name: obstore.put(bucket.store, name, root / name), names):
            pass


@contextlib.contextmanager
def sink():
    with subprocess.Popen([sys.executable, "-m", "bench.sink"], stdout=subprocess.PIPE) as server:
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def copies(place: Path) -> None:
    root = place / "output"
    names = fill(root)

    def sync(bucket: BucketFolder) -> None:
        OutputSync(root=root, bucket=bucket, job="bench").finish()

    with sink() as address:

        def there(name: str) -> BucketFolder:
            return open_bucket(BucketConfig(url=f"s3://bench/{name}", endpoint=address, secret=KEYS))

        def plain(index: int) -> None:
            put_all(root, names, there(f"plain-{index}"))

        show("to a server", Turns(plain=plain, ours=lambda index: sync(there(f"ours-{index}"))).take())

    def folder(index: int) -> BucketFolder:
        return open_bucket(BucketConfig(url=f"file://{place}/ours-{index}", secret={}))

    def copy(index: int) -> None:
        shutil.copytree(root, place / f"plain-{index}")

    # Neither waits for the disk. What was written is removed at the end: a disk is slower where files have just gone.
    show("to a folder", Turns(plain=copy, ours=lambda index: sync(folder(index))).take())


def show(where: str, turns: Turns) -> None:
    plain, ours = MEGABYTES / turns.middle("plain"), MEGABYTES / turns.middle("ours")
    ratios = f"ratio {turns.ratio('plain', 'ours'):.2f}, by CPU {turns.cpu_ratio('plain', 'ours'):.2f}"
    print(f"sync {where}   plain {plain:5.0f} MB/s   ours {ours:5.0f} MB/s   {ratios} (goal at least 0.7)")


def wheel(file: Path) -> None:
    about = "tiny-1.0.dist-info"
    file.parent.mkdir(parents=True)
    with zipfile.ZipFile(file, "w") as held:
        held.writestr("tiny.py", "x = 1\n")
        held.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        held.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        held.writestr(f"{about}/RECORD", "")


class Starts:
    """Starts of one job: the steps before its command, as a pod has them, in folders of their own."""

    def __init__(self, server: GitServer, place: Path) -> None:
        wheel(server.root / "work" / "code" / "wheels" / "tiny-1.0-py3-none-any.whl")
        files = {f"pkg/m{index}.py": f"x = {index}\n" * 200 for index in range(300)}
        files["requirements.txt"] = "--no-index\n--find-links wheels\ntiny==1.0\n"
        self.commit, self.url, self.place = server.commit("code", files), server.url("code"), place
        uv = find_uv(cache_folder(os.environ), os.environ.get("PATH"))
        assert uv is not None, "there is no uv; type: tools/setup uv"
        self.env = {**os.environ, "PATH": f"{Path(uv).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(self, *words: str, cwd: Path | None = None) -> None:
        subprocess.run(words, env=self.env, cwd=cwd, check=True, stdout=subprocess.DEVNULL)

    def bare(self, index: int) -> None:
        self.run("git", "clone", "--quiet", self.url, str(self.place / f"bare-{index}"))

    def clone(self, name: str, *more: str) -> tuple[Path, Path]:
        into, tools = self.place / f"into-{name}", self.place / f"tools-{name}"
        into.mkdir()
        tools.mkdir()
        where = ("--url", self.url, "--commit", self.commit, "--into", str(into), "--tools", str(tools))
        self.run(sys.executable, "-m", "paceline.podtools", "clone", *where, *more)
        return into, tools

    def alone(self, index: int) -> None:
        self.clone(f"alone-{index}")

    def cached(self, index: int | str) -> None:
        cache = self.place / "cache"
        cache.mkdir(exist_ok=True)
        requirements = self.place / f"into-{index}" / "requirements.txt"
        into, tools = self.clone(str(index), "--packages", str(requirements), "--cache", str(cache))
        # A pod has these folders at fixed places.
        for file in INSTALLERS:
            (tools / file.name).write_text(moved(file.read_text(), cache, tools))
        find = moved(FIND_REQUIREMENTS, cache, tools)
        self.run("sh", "-c", find, "sh", "must", str(requirements), cwd=into)
        assert (tools / "said").read_text().startswith("found" if isinstance(index, int) else "installed")


def moved(text: str, cache: Path, tools: Path) -> str:
    places = {CACHE: cache, TOOLS: tools, "/dev/termination-log": tools / "said"}
    return re.sub("|".join(places), lambda found: str(places[found[0]]), text)


def starts(place: Path) -> None:
    with git_server(place / "git") as server:
        job = Starts(server, place)
        job.cached("first")
        turns = Turns(bare=job.bare, alone=job.alone, cached=job.cached).take()
    for name, what in {"alone": "clone without a cache ", "cached": "clone and environment "}.items():
        seconds = f"bare clone {turns.middle('bare'):.3f} s   ours {turns.middle(name):.3f} s"
        goal = " (second start, goal at most 1.2)" if name == "cached" else ""
        print(f"{what}  {seconds}   ratio {turns.ratio(name, 'bare'):.2f}{goal}")


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place:
        copies(Path(place))
    with tempfile.TemporaryDirectory() as place:
        starts(Path(place))
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
