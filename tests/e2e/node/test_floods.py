"""Floods of output: every line is there, once and in order, up to what is kept, whoever reads and whoever is killed."""

import contextlib
import logging
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paceline.node.runtime.cri_log import FILE_BYTES, FILES
from paceline.testing.embedded import Embedded, paceline_command, wait_until
from tests.e2e.support.manifests import generic
from tests.e2e.support.shell_pods import create, ended, make_pod, shell

pytestmark = pytest.mark.slow

log = logging.getLogger(__name__)

SCRIPT = (Path(__file__).parents[1] / "jobs" / "flood.py").read_text()
BLOCK = 20_000
HEAD_BYTES = 40
# Seconds' worth of lines in `make test` and in `make soak`.
FEW, MANY = 3, 10
# How many pods at once, and how many lines a second each of them prints.
SHAPES = ((1, 200_000), (4, 50_000))


def rounds() -> list[Any]:
    few = [(pods, rate, FEW) for pods, rate in SHAPES]
    return [*few, *(pytest.param(pods, rate, MANY, marks=pytest.mark.soak) for pods, rate in SHAPES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """One job of one pod that prints numbered lines."""

    cluster: Embedded
    rate: int
    seconds: float
    name: str

    @property
    def count(self) -> int:
        return int(self.rate * self.seconds)

    def job(self) -> dict[str, Any]:
        return generic(self.name, command=["python", "-c", SCRIPT, str(self.rate), str(self.seconds)])

    @property
    def pod(self) -> str:
        return self._of_pod("name")

    def folder(self) -> Path | None:
        """Where the container's log lies, once it has begun."""
        found = self.cluster.settings.agent / "pods" / self._of_pod("uid") / "containers/main/0"
        return found if (found / "log").exists() else None

    def _of_pod(self, field: str) -> str:
        """A field of the only pod's metadata; nothing when there is none yet."""
        words = ("-l", f"tensorstack.dev/owner-name={self.name}", "-o", f"jsonpath={{.items[*].metadata.{field}}}")
        return self.cluster.kubectl("get", "pods", *words).out

    def wait(self) -> None:
        waited = self.cluster.kubectl(
            *("wait", "--for=jsonpath={.status.phase}=Succeeded", f"gj/{self.name}", "--timeout=240s"), seconds=250
        )
        assert waited.code == 0, waited.err


def floods(cluster: Embedded, pods: int, rate: int, seconds: float) -> tuple[Flood, ...]:
    names = [f"flood-{uuid.uuid4().hex[:6]}" for _ in range(pods)]
    found = tuple(Flood(cluster=cluster, rate=rate, seconds=seconds, name=name) for name in names)
    create(cluster, *(each.job() for each in found))
    return found


def talking(found: tuple[Flood, ...]) -> list[Path]:
    """Wait until all of them talk, and give where their logs lie."""
    return [wait_until(f"{each.name} talks", each.folder) for each in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A command that writes what it reads into a file."""

    process: subprocess.Popen[bytes]
    file: Path

    def said(self) -> Path:
        """Wait for its end, and give what it wrote."""
        assert self.process.wait(timeout=240) == 0, self.file.with_suffix(".err").read_text()
        return self.file


@contextlib.contextmanager
def reading(cluster: Embedded, folder: Path, *commands: list[str]) -> Iterator[list[Reader]]:
    """Run commands side by side; none of them is left behind."""
    readers = []
    try:
        for words in commands:
            file = folder / uuid.uuid4().hex
            with file.open("wb") as out, file.with_suffix(".err").open("wb") as err:
                process = subprocess.Popen(words, env=cluster.environment(), stdout=out, stderr=err)
            readers.append(Reader(process=process, file=file))
        yield readers
    finally:
        for each in readers:
            each.process.kill()
            each.process.wait()


def lines(first: int, last: int) -> bytes:
    return b"".join(b"%09d the quick brown fox jumps over the dog\n" % number for number in range(first, last))


def assert_all_lines(file: Path, count: int, *, first: int = 0) -> None:
    """The lines are all there, each once, in order; the last one tells how many there were."""
    with file.open("rb") as said:
        for begin in range(first, count, BLOCK):
            expected = lines(begin, min(begin + BLOCK, count))
            found = said.read(len(expected))
            assert found == expected, difference(found, expected)
        last = said.read()
    assert last.startswith(b"%d lines in " % count), last[:200]
    assert last.count(b"\n") == 1
    log.info("%s", last.decode().strip())


def difference(found: bytes, expected: bytes) -> str:
    pairs = zip(found.splitlines(), expected.splitlines(), strict=False)
    wrong = next(((ours, theirs) for ours, theirs in pairs if ours != theirs), ("nothing", f"{len(expected)} bytes"))
    return f"{wrong[0]!r} instead of {wrong[1]!r}"


def kubectl(cluster: Embedded, *words: str) -> list[str]:
    return ["kubectl", f"--cache-dir={cluster.home / 'kubectl-cache'}", *words]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("pods", "rate", "seconds"), rounds())
def test_every_line_of_a_flood_is_there_for_all_who_follow_it(
    cluster: Embedded, tmp_path: Path, pods: int, rate: int, seconds: int
) -> None:
    found = floods(cluster, pods, rate, seconds)
    talking(found)
    commands = [kubectl(cluster, "logs", "-f", each.pod) for each in found]
    commands += [[paceline_command(), "logs", "-f", each.name] for each in found]
    # One that comes to the last lines only, and stays for those that follow.
    commands += [kubectl(cluster, "logs", "-f", "--tail=1", found[0].pod)]

    with reading(cluster, tmp_path, *commands) as readers:
        said = [reader.said() for reader in readers]

    for file in said[:-1]:
        assert_all_lines(file, found[0].count)
    late = said[-1].read_bytes().splitlines(keepends=True)
    assert_all_lines(said[-1], found[0].count, first=found[0].count - len(late) + 1)
    for each in found:
        each.wait()
        assert cluster.kubectl("logs", "--tail=2", each.pod).out.encode().startswith(lines(each.count - 1, each.count))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("pods", "rate", "seconds"), rounds())
def test_every_line_of_a_flood_is_there_although_the_agent_is_killed(
    cluster: Embedded, tmp_path: Path, pods: int, rate: int, seconds: int
) -> None:
    found = floods(cluster, pods, rate, seconds)
    folders = talking(found)
    with reading(cluster, tmp_path, *([paceline_command(), "logs", "-f", each.name] for each in found)) as readers:
        kills = kill_while_they_talk(cluster, folders)
        log.info("%d kills", kills)
        for each in found:
            each.wait()
        said = [reader.said() for reader in readers]

    assert kills
    for each, file in zip(found, said, strict=True):
        assert_all_lines(file, each.count)
    plain = [kubectl(cluster, "logs", each.pod) for each in found]
    with reading(cluster, tmp_path, *plain) as readers:
        for each, reader in zip(found, readers, strict=True):
            assert_all_lines(reader.said(), each.count)


def kill_while_they_talk(cluster: Embedded, folders: list[Path]) -> int:
    """Kill every agent as soon as it is there, and at least one, until the last line is out."""
    kills = 0
    while not kills or not all((folder / "exit.json").exists() for folder in folders):
        before = wait_until("there is an agent", lambda: cluster.agent_pid)
        os.kill(before, signal.SIGKILL)
        kills += 1
        wait_until("the next one is there", lambda b=before: cluster.agent_pid not in (None, b))
    return kills


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_what_is_kept_of_a_flood_beyond_the_cap_is_its_exact_end(cluster: Embedded, tmp_path: Path) -> None:
    """More than eight files of 64 MiB: the oldest go, and the rest reads as one, to the last line."""
    line_bytes = HEAD_BYTES + len(lines(0, 1))
    (flood,) = floods(cluster, 1, 400_000, 1.3 * FILES * FILE_BYTES / line_bytes / 400_000)
    (folder,) = talking((flood,))
    follow = [paceline_command(), "logs", "-f", flood.name]
    with reading(cluster, tmp_path, follow) as readers:
        flood.wait()
        followed = readers[0].said()

    pages = sorted(folder.glob("log*"))
    assert len(pages) == FILES
    kept = sum(page.stat().st_size for page in pages)
    assert (FILES - 1) * FILE_BYTES < kept < (FILES + 1) * FILE_BYTES
    with reading(cluster, tmp_path, kubectl(cluster, "logs", flood.pod)) as readers:
        said = readers[0].said()
    with said.open("rb") as file:
        first = int(file.readline().split()[0])
    assert first > 0
    assert_all_lines(said, flood.count, first=first)
    log.info("kept %d MiB of %d lines, from line %d on", kept >> 20, flood.count, first)
    # Who followed from the first line on has seen each at most once and in order, and the last ones all.
    numbers = [int(line.split()[0]) for line in followed.read_bytes().splitlines()[:-1]]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == flood.count - 1


ODD = {
    "a flood without any newline": ("import os\nfor _ in range(300): os.write(1, b'x' * 10_000)", b"x" * 3_000_000),
    "a last line without an end": ("import os\nos.write(1, b'first\\nlast')", b"first\nlast"),
    "empty lines": ("print('\\n\\n\\nend')", b"\n\n\nend\n"),
    "carriage returns": ("import os\nos.write(1, b'1%\\r2%\\r3%\\ndone\\r\\n')", b"1%\r2%\r3%\ndone\r\n"),
    "bytes that are no text": ("import os\nos.write(1, bytes(range(256)) * 100)", bytes(range(256)) * 100),
    "a letter cut in two": (
        "import os, time\nos.write(1, 'naï'.encode()[:-1])\ntime.sleep(1)\nos.write(1, 'ï'.encode()[1:] + b've\\n')",
        "naïve\n".encode(),
    ),
    "nothing": ("pass", b""),
}


@pytest.mark.parametrize(("script", "expected"), ODD.values(), ids=[name.replace(" ", "-") for name in ODD])
def test_what_is_no_line_is_given_back_as_it_was_written(
    cluster: Embedded, tmp_path: Path, script: str, expected: bytes
) -> None:
    name = f"odd-{uuid.uuid4().hex[:6]}"
    make_pod(cluster, name, {"name": "main", "image": "python:3.11", "command": ["python", "-c", script]})
    assert ended(cluster, name) == "Succeeded"

    commands = [kubectl(cluster, "logs", *more, name) for more in ([], ["-f"], ["--tail=-1"])]
    with reading(cluster, tmp_path, *commands) as readers:
        assert [reader.said().read_bytes() == expected for reader in readers] == [True, True, True]


def test_a_line_that_is_not_ended_is_shown_to_who_follows_while_the_pod_runs(cluster: Embedded, tmp_path: Path) -> None:
    name = f"open-{uuid.uuid4().hex[:6]}"
    make_pod(cluster, name, shell("printf 'epoch 1'; sleep 1000"))
    waited = cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    assert waited.code == 0, waited.err
    # Raw: `kubectl logs` itself waits for the end of a line.
    follow = kubectl(cluster, "get", "--raw", f"/api/v1/namespaces/default/pods/{name}/log?follow=true")
    with reading(cluster, tmp_path, follow) as (reader,):
        wait_until("it is shown", lambda: reader.file.read_bytes() == b"epoch 1")
        deleted = cluster.kubectl("delete", "pod", name)

        assert deleted.code == 0, deleted.err
        assert reader.said().read_bytes() == b"epoch 1"


def test_of_two_streams_each_keeps_its_order(cluster: Embedded) -> None:
    """S-38"""
    name = f"two-{uuid.uuid4().hex[:6]}"
    script = "import os\nfor i in range(20_000): os.write(1, b'out %d\\n' % i); os.write(2, b'err %d\\n' % i)"
    make_pod(cluster, name, {"name": "main", "image": "python:3.11", "command": ["python", "-c", script]})
    assert ended(cluster, name) == "Succeeded"

    said = cluster.kubectl("logs", name).out.splitlines()

    for word in ("out", "err"):
        assert [each for each in said if each.startswith(word)] == [f"{word} {number}" for number in range(20_000)]
    assert len(said) == 40_000
