"""A small training with parameter servers, in nothing but Python: a line between two clouds of points.

Knows who it is from CLUSTER_CONFIG and POD_NAME, from JOB_NAME, JOB_INDEX, PS_HOSTS and WORKER_HOSTS, from TF_CONFIG,
or from flags. Workers see different parts of the data and share one model, which the parameter servers hold.
"""

import argparse
import json
import math
import os
import random
import signal
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FEATURES = 8
EXAMPLES = 1000
TESTED = 200
PROGRESS_BATCHES = 100
PATIENCE_SECONDS = 120
Example = tuple[list[float], int]
# One question or answer between a worker and a parameter server.
Said = dict[str, Any]


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# Who is who


def whoami(options: argparse.Namespace) -> tuple[dict[str, list[str]], str, int]:
    """Give the cluster, the role and the index of this replica, in whichever dialect they are told."""
    env = os.environ
    if options.job_name:
        return _from_lists(options.ps_hosts, options.worker_hosts), options.job_name, options.task_index
    if env.get("CLUSTER_CONFIG") and env.get("POD_NAME"):
        role, _, index = env["POD_NAME"].rpartition("-")
        return json.loads(env["CLUSTER_CONFIG"]), role, int(index)
    if env.get("JOB_NAME"):
        cluster = _from_lists(env.get("PS_HOSTS", ""), env.get("WORKER_HOSTS", ""))
        return cluster, env["JOB_NAME"], int(env.get("JOB_INDEX", "0"))
    if env.get("TF_CONFIG"):
        told = json.loads(env["TF_CONFIG"])
        return told["cluster"], told["task"]["type"], int(told["task"]["index"])
    return {"worker": []}, "worker", 0


def _from_lists(servers: str, workers: str) -> dict[str, list[str]]:
    cluster = {"ps": servers.split(",") if servers else [], "worker": workers.split(",") if workers else []}
    return {role: hosts for role, hosts in cluster.items() if hosts}


# The model


class Model:
    """Weights and the number of steps that were made on them."""

    def __init__(self) -> None:
        self._weights = [0.0] * (FEATURES + 1)
        self._step = 0
        self._is_ready = False
        self._lock = threading.Lock()

    def ask(self, question: Said) -> Said:
        """Answer one question: begin with these weights, give the weights, or go one step down a slope."""
        with self._lock:
            if question["do"] == "begin" and not self._is_ready:
                self._weights, self._step = question["weights"], question["step"]
                self._is_ready = True
            elif question["do"] == "step":
                self._weights = [w - d for w, d in zip(self._weights, question["slope"], strict=True)]
                self._step += 1
            return {"weights": self._weights, "step": self._step, "ready": self._is_ready}


class Remote:
    """The model, on a parameter server."""

    def __init__(self, address: str) -> None:
        self._file = _connect(address).makefile("rw")

    def ask(self, question: Said) -> Said:
        """Pass a question on."""
        self._file.write(json.dumps(question) + "\n")
        self._file.flush()
        line = self._file.readline()
        if not line:
            raise ConnectionError("the parameter server went away")
        answer: Said = json.loads(line)
        return answer


def _connect(address: str) -> socket.socket:
    """Wait for a server that may start later, or again."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=60)
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"cannot reach {address}: {error}")
            time.sleep(0.2)


class Together:
    """The weights, shared out among parameter servers in turn; the first counts the steps."""

    def __init__(self, parts: list[Remote]) -> None:
        self._parts = parts

    def ask(self, question: Said) -> Said:
        """Ask every server for its share, and put the answers together."""
        count, answers = len(self._parts), []
        for index, part in enumerate(self._parts):
            share = dict(question)
            for key in ("weights", "slope"):
                if key in question:
                    mine = [0.0] * (FEATURES + 1)
                    mine[index::count] = question[key][index::count]
                    share[key] = mine
            answers.append(part.ask(share))
        weights = [answers[place % count]["weights"][place] for place in range(FEATURES + 1)]
        return {**answers[0], "weights": weights}


def serve(address: str, name: str) -> None:
    """Hold a model until somebody ends this process."""
    model = Model()
    updates: dict[str, int] = {}

    class Door(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                question = json.loads(line)
                answer = model.ask(question)
                self.wfile.write(json.dumps(answer).encode() + b"\n")
                if question["do"] == "step":
                    _count(updates, question.get("from", "?"))

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    host, _, port = address.rpartition(":")
    try:
        server = Server((host, int(port)), Door)
    except OSError:
        # The own name may not be known yet.
        server = Server(("", int(port)), Door)
    say(f"{name} listens at {address}")
    server.serve_forever()


def _count(updates: dict[str, int], worker: str) -> None:
    updates[worker] = updates.get(worker, 0) + 1
    if updates[worker] == 1 or updates[worker] % 1000 == 0:
        say(f"Updates from {worker}: {updates[worker]}")


# The training


def data(count: int, seed: int) -> list[Example]:
    """Make points of two sorts, the same ones everywhere."""
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
    truth = [dice.uniform(-1, 1) for _ in range(FEATURES)]
    dice = random.Random(seed + count)  # noqa: S311 - repeatable on purpose
    points = ([dice.gauss(0, 1) for _ in range(FEATURES)] for _ in range(count))
    return [(point, int(sum(map(_times, truth, point)) > 0)) for point in points]


def _times(left: float, right: float) -> float:
    return left * right


def guess(weights: list[float], point: list[float]) -> float:
    """Say how surely a point is of the second sort."""
    rated = weights[-1] + sum(map(_times, weights, point))
    return 1 / (1 + math.exp(-max(min(rated, 30.0), -30.0)))


def learn(weights: list[float], batch: list[Example]) -> tuple[float, list[float]]:
    """Give the cost of a batch, and the slope of it."""
    cost, slope = 0.0, [0.0] * (FEATURES + 1)
    for point, sort in batch:
        sure = guess(weights, point)
        cost -= math.log(max(sure if sort else 1 - sure, 1e-9))
        for place, value in enumerate((*point, 1.0)):
            slope[place] += (sure - sort) * value
    return cost / len(batch), [each / len(batch) for each in slope]


def train(model: Together | Model, options: argparse.Namespace, *, index: int, workers: int) -> None:
    """Train on this worker's part of the data, and say how it goes."""
    began, name = time.monotonic(), f"worker-{index}"
    folder = Path(options.logdir) / name
    folder.mkdir(parents=True, exist_ok=True)
    examples, tests = data(options.examples, 1)[index::workers], data(TESTED, 1)
    say(f"{name} trains on shard {index} of {workers}: {len(examples)} examples, learning rate {options.lr}")
    # Without parameter servers everybody has a model of their own.
    if index == 0 or isinstance(model, Model):
        begin(model, options)
    while not (state := model.ask({"do": "get"}))["ready"]:
        time.sleep(0.1)
    batches = max(options.examples // options.batch_size, 1)
    cost, curves = 0.0, Events(folder)
    for epoch in range(1, options.epochs + 1):
        since, done = time.monotonic(), 0
        for number, batch in enumerate(pick(examples, options.batch_size, batches, epoch), 1):
            stumble(options, state["step"])
            cost, slope = learn(state["weights"], batch)
            state = model.ask({"do": "step", "from": name, "slope": [each * options.lr for each in slope]})
            done += 1
            if number % PROGRESS_BATCHES == 0 or number == batches:
                average = (time.monotonic() - since) * 1000 / done
                since, done = time.monotonic(), 0
                where = f"Epoch: {epoch},  Batch: {number} of {batches}"
                say(f"Step: {state['step']},  {where},  Cost: {cost:.4f},  AvgTime: {average:.2f}ms")
        curves.add(state["step"], cost=cost, accuracy=accuracy(state["weights"], tests))
        if index == 0:
            save(Path(options.logdir), state)
    say(f"Test-Accuracy: {accuracy(state['weights'], tests):.2f}")
    say(f"Total Time: {time.monotonic() - began:.2f}s")
    say(f"Final Cost: {cost:.4f}")
    say("done")


def pick(examples: list[Example], size: int, batches: int, epoch: int) -> Iterator[list[Example]]:
    """Give batches in an order that differs from epoch to epoch."""
    dice = random.Random(epoch)  # noqa: S311 - repeatable on purpose
    for _ in range(batches):
        yield dice.choices(examples, k=size)


def accuracy(weights: list[float], tests: list[Example]) -> float:
    """Tell how many points are guessed right."""
    return sum((guess(weights, point) > 0.5) == bool(sort) for point, sort in tests) / len(tests)


# What is kept


def begin(model: Together | Model, options: argparse.Namespace) -> None:
    """Begin where an earlier training ended, if there was one."""
    for place in (options.checkpoint, str(Path(options.logdir) / "checkpoint.json")):
        if place and Path(place).is_file():
            saved = json.loads(Path(place).read_text())
            state = model.ask({"do": "begin", "weights": saved["weights"], "step": saved["step"]})
            say(f"Restored step {state['step']} from {place}")
            return
    model.ask({"do": "begin", "weights": [0.0] * (FEATURES + 1), "step": 0})


def save(folder: Path, state: Said) -> None:
    """Keep the model; whoever reads it sees all of it or the one before."""
    draft = folder / "checkpoint.json.new"
    draft.write_text(json.dumps({"weights": state["weights"], "step": state["step"]}))
    draft.replace(folder / "checkpoint.json")


class Events:
    """A file of curves that TensorBoard reads."""

    def __init__(self, folder: Path) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self._path = folder / name
        self._write(0, _field(3, b"brain.Event:2"))

    def add(self, step: int, **scalars: float) -> None:
        """Add a point to each curve."""
        values = b"".join(
            _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in scalars.items()
        )
        self._write(step, _field(5, values))

    def _write(self, step: int, what: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + what
        length = struct.pack("<Q", len(event))
        with self._path.open("ab") as file:
            file.write(length + _masked(length) + event + _masked(event))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    said = bytearray()
    while number > 0x7F:
        said.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*said, number))


def _masked(content: bytes) -> bytes:
    check = 0xFFFFFFFF
    for byte in content:
        check = _TABLE[(check ^ byte) & 0xFF] ^ (check >> 8)
    check ^= 0xFFFFFFFF
    return struct.pack("<I", ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _row(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_TABLE = [_row(byte) for byte in range(256)]


def read_options() -> argparse.Namespace:
    """Read the flags."""
    parser = argparse.ArgumentParser(description="Train a small model with parameter servers.")
    parser.add_argument("--logdir", "--log_dir", default="logs", help="folder of curves and checkpoints")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data")
    parser.add_argument("--batch_size", type=int, default=100, help="examples per step")
    parser.add_argument("--lr", "--learning_rate", type=float, default=0.0005, help="learning rate")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="how many examples there are")
    parser.add_argument("--checkpoint", default="", help="checkpoint of an earlier training to go on from")
    parser.add_argument("--job_name", default="", help="worker or ps, where the environment does not say it")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--ps_hosts", default="")
    parser.add_argument("--worker_hosts", default="")
    faults = parser.add_argument_group("faults, to see what becomes of a training that has them")
    faults.add_argument("--fail_at_step", type=int, default=0, help="end at this step, with --exit_code")
    faults.add_argument("--exit_code", type=int, default=1)
    faults.add_argument("--ignore_sigterm", action="store_true", help="go on when asked to end")
    faults.add_argument("--step_seconds", type=float, default=0.0, help="wait so long before each step")
    faults.add_argument("--memory_mb", type=int, default=0, help="take so much memory")
    faults.add_argument("--log_mb", type=int, default=0, help="print so much before the first step")
    return parser.parse_args()


def misbehave(options: argparse.Namespace) -> bytearray:
    """Have the faults that were asked for; give the memory that was taken."""
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(options.log_mb * 1024):
        say("x" * 1023)
    return bytearray(b"x" * (options.memory_mb << 20))


def stumble(options: argparse.Namespace, step: int) -> None:
    """Wait before a step, or end at it, if that was asked for."""
    if options.step_seconds:
        time.sleep(options.step_seconds)
    if options.fail_at_step and step >= options.fail_at_step:
        say(f"ends at step {step}, as it was asked to")
        sys.exit(options.exit_code)


def main() -> None:
    """Be the replica that the environment says."""
    options = read_options()
    taken = misbehave(options)
    cluster, role, index = whoami(options)
    servers = cluster.get("ps") or []
    if role == "ps":
        serve(servers[index], f"ps-{index}")
        return
    model = Together([Remote(address) for address in servers]) if servers else Model()
    train(model, options, index=index, workers=max(len(cluster.get("worker") or ()), 1))
    del taken


if __name__ == "__main__":
    main()
