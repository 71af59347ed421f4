"""A small training with parameter servers, in plain Python: logistic regression on two classes of points.

The role comes from CLUSTER_CONFIG and POD_NAME, from JOB_NAME, JOB_INDEX, PS_HOSTS and WORKER_HOSTS, from TF_CONFIG, or
from flags. Each worker trains on its own shard of the data; all share one model, which the parameter servers hold.
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
# A request or response between a worker and a parameter server.
Message = dict[str, Any]


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# The role of this replica


def whoami(options: argparse.Namespace) -> tuple[dict[str, list[str]], str, int]:
    """Return the cluster, the role and the index of this replica, from flags or the environment."""
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
        config = json.loads(env["TF_CONFIG"])
        return config["cluster"], config["task"]["type"], int(config["task"]["index"])
    return {"worker": []}, "worker", 0


def _from_lists(servers: str, workers: str) -> dict[str, list[str]]:
    cluster = {"ps": servers.split(",") if servers else [], "worker": workers.split(",") if workers else []}
    return {role: hosts for role, hosts in cluster.items() if hosts}


# The model


class Model:
    """The weights, and the number of training steps that were applied to them."""

    def __init__(self) -> None:
        self._weights = [0.0] * (FEATURES + 1)
        self._step = 0
        self._is_ready = False
        self._lock = threading.Lock()

    def ask(self, request: Message) -> Message:
        """Return the response to a request: `begin` sets the weights, `get` reads them, `step` applies a gradient."""
        with self._lock:
            if request["do"] == "begin" and not self._is_ready:
                self._weights, self._step = request["weights"], request["step"]
                self._is_ready = True
            elif request["do"] == "step":
                self._weights = [w - d for w, d in zip(self._weights, request["slope"], strict=True)]
                self._step += 1
            return {"weights": self._weights, "step": self._step, "ready": self._is_ready}


class Remote:
    """The model on one parameter server."""

    def __init__(self, address: str) -> None:
        self._file = _connect(address).makefile("rw")

    def ask(self, request: Message) -> Message:
        """Return the server's response to a request."""
        self._file.write(json.dumps(request) + "\n")
        self._file.flush()
        line = self._file.readline()
        if not line:
            raise ConnectionError("the parameter server closed the connection")
        response: Message = json.loads(line)
        return response


def _connect(address: str) -> socket.socket:
    """Return a connection to a server; wait for one that is starting or restarting."""
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
    """The weights, distributed round-robin over the parameter servers; the first counts the steps."""

    def __init__(self, parts: list[Remote]) -> None:
        self._parts = parts

    def ask(self, request: Message) -> Message:
        """Return the combined responses of all servers, each of which gets its share of the request."""
        count, responses = len(self._parts), []
        for index, server in enumerate(self._parts):
            share = dict(request)
            for key in ("weights", "slope"):
                if key in request:
                    values = [0.0] * (FEATURES + 1)
                    values[index::count] = request[key][index::count]
                    share[key] = values
            responses.append(server.ask(share))
        weights = [responses[feature % count]["weights"][feature] for feature in range(FEATURES + 1)]
        return {**responses[0], "weights": weights}


def serve(address: str, name: str) -> None:
    """Serve a model until the process is stopped."""
    model = Model()
    updates: dict[str, int] = {}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                request = json.loads(line)
                response = model.ask(request)
                self.wfile.write(json.dumps(response).encode() + b"\n")
                if request["do"] == "step":
                    _count(updates, request.get("from", "?"))

    class TcpServer(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    host, _, port = address.rpartition(":")
    try:
        server = TcpServer((host, int(port)), Handler)
    except OSError:
        # The name of this host may not resolve yet.
        server = TcpServer(("", int(port)), Handler)
    say(f"{name} listens at {address}")
    server.serve_forever()


def _count(updates: dict[str, int], worker: str) -> None:
    updates[worker] = updates.get(worker, 0) + 1
    if updates[worker] == 1 or updates[worker] % 1000 == 0:
        say(f"Updates from {worker}: {updates[worker]}")


# The training


def data(count: int, seed: int) -> list[Example]:
    """Return labelled points of two classes; the same seed gives the same points on every replica."""
    generator = random.Random(seed)  # noqa: S311 - repeatable on purpose
    truth = [generator.uniform(-1, 1) for _ in range(FEATURES)]
    generator = random.Random(seed + count)  # noqa: S311 - repeatable on purpose
    points = ([generator.gauss(0, 1) for _ in range(FEATURES)] for _ in range(count))
    return [(point, int(sum(map(_times, truth, point)) > 0)) for point in points]


def _times(first: float, second: float) -> float:
    return first * second


def guess(weights: list[float], point: list[float]) -> float:
    """Return the probability that a point belongs to the second class."""
    score = weights[-1] + sum(map(_times, weights, point))
    return 1 / (1 + math.exp(-max(min(score, 30.0), -30.0)))


def learn(weights: list[float], batch: list[Example]) -> tuple[float, list[float]]:
    """Return the cost of a batch and its gradient."""
    cost, gradient = 0.0, [0.0] * (FEATURES + 1)
    for point, label in batch:
        probability = guess(weights, point)
        cost -= math.log(max(probability if label else 1 - probability, 1e-9))
        for feature, value in enumerate((*point, 1.0)):
            gradient[feature] += (probability - label) * value
    return cost / len(batch), [value / len(batch) for value in gradient]


def train(model: Together | Model, options: argparse.Namespace, *, index: int, workers: int) -> None:
    """Train on this worker's shard of the data, and print the progress."""
    started, name = time.monotonic(), f"worker-{index}"
    folder = Path(options.logdir) / name
    folder.mkdir(parents=True, exist_ok=True)
    examples, tests = data(options.examples, 1)[index::workers], data(TESTED, 1)
    say(f"{name} trains on shard {index} of {workers}: {len(examples)} examples, learning rate {options.lr}")
    # Without parameter servers every worker has its own model.
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
            cost, gradient = learn(state["weights"], batch)
            state = model.ask({"do": "step", "from": name, "slope": [value * options.lr for value in gradient]})
            done += 1
            if number % PROGRESS_BATCHES == 0 or number == batches:
                average = (time.monotonic() - since) * 1000 / done
                since, done = time.monotonic(), 0
                position = f"Epoch: {epoch},  Batch: {number} of {batches}"
                say(f"Step: {state['step']},  {position},  Cost: {cost:.4f},  AvgTime: {average:.2f}ms")
        curves.add(state["step"], cost=cost, accuracy=accuracy(state["weights"], tests))
        if index == 0:
            save(Path(options.logdir), state)
    say(f"Test-Accuracy: {accuracy(state['weights'], tests):.2f}")
    say(f"Total Time: {time.monotonic() - started:.2f}s")
    say(f"Final Cost: {cost:.4f}")
    say("done")


def pick(examples: list[Example], size: int, batches: int, epoch: int) -> Iterator[list[Example]]:
    """Yield random batches that differ from epoch to epoch."""
    generator = random.Random(epoch)  # noqa: S311 - repeatable on purpose
    for _ in range(batches):
        yield generator.choices(examples, k=size)


def accuracy(weights: list[float], tests: list[Example]) -> float:
    """Return the share of points that are classified correctly."""
    return sum((guess(weights, point) > 0.5) == bool(label) for point, label in tests) / len(tests)


# Checkpoints and event files


def begin(model: Together | Model, options: argparse.Namespace) -> None:
    """Initialize the model from a checkpoint, if there is one, else with zeros."""
    for path in (options.checkpoint, str(Path(options.logdir) / "checkpoint.json")):
        if path and Path(path).is_file():
            saved = json.loads(Path(path).read_text())
            state = model.ask({"do": "begin", "weights": saved["weights"], "step": saved["step"]})
            say(f"Restored step {state['step']} from {path}")
            return
    model.ask({"do": "begin", "weights": [0.0] * (FEATURES + 1), "step": 0})


def save(folder: Path, state: Message) -> None:
    """Write the checkpoint atomically: a reader sees the old or the new one."""
    draft = folder / "checkpoint.json.new"
    draft.write_text(json.dumps({"weights": state["weights"], "step": state["step"]}))
    draft.replace(folder / "checkpoint.json")


class Events:
    """An event file of scalars for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self._path = folder / name
        self._write(0, _field(3, b"brain.Event:2"))

    def add(self, step: int, **scalars: float) -> None:
        """Append one value of each scalar."""
        values = b"".join(
            _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in scalars.items()
        )
        self._write(step, _field(5, values))

    def _write(self, step: int, content: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content
        length = struct.pack("<Q", len(event))
        with self._path.open("ab") as file:
            file.write(length + _masked(length) + event + _masked(event))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


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
    """Return the parsed flags."""
    parser = argparse.ArgumentParser(description="Train a small model with parameter servers.")
    parser.add_argument("--logdir", "--log_dir", default="logs", help="directory for event files and checkpoints")
    parser.add_argument("--epochs", type=int, default=20, help="number of passes over the data")
    parser.add_argument("--batch_size", type=int, default=100, help="number of examples per step")
    parser.add_argument("--lr", "--learning_rate", type=float, default=0.0005, help="learning rate")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="number of examples")
    parser.add_argument("--checkpoint", default="", help="checkpoint of an earlier training to continue from")
    parser.add_argument("--job_name", default="", help="worker or ps, if the environment does not set it")
    parser.add_argument("--task_index", type=int, default=0)
    parser.add_argument("--ps_hosts", default="")
    parser.add_argument("--worker_hosts", default="")
    faults = parser.add_argument_group("fault injection, for tests")
    faults.add_argument("--fail_at_step", type=int, default=0, help="exit at this step, with --exit_code")
    faults.add_argument("--exit_code", type=int, default=1)
    faults.add_argument("--ignore_sigterm", action="store_true", help="ignore SIGTERM")
    faults.add_argument("--step_seconds", type=float, default=0.0, help="seconds to wait before each step")
    faults.add_argument("--memory_mb", type=int, default=0, help="MiB of memory to allocate")
    faults.add_argument("--log_mb", type=int, default=0, help="MiB of output to print before the first step")
    return parser.parse_args()


def misbehave(options: argparse.Namespace) -> bytearray:
    """Inject the faults of the flags; return the memory that has to stay allocated."""
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(options.log_mb * 1024):
        say("x" * 1023)
    return bytearray(b"x" * (options.memory_mb << 20))


def stumble(options: argparse.Namespace, step: int) -> None:
    """Wait before a step, or exit at it, if a flag says so."""
    if options.step_seconds:
        time.sleep(options.step_seconds)
    if options.fail_at_step and step >= options.fail_at_step:
        say(f"exiting at step {step} because of --fail_at_step")
        sys.exit(options.exit_code)


def main() -> None:
    """Run the role of this replica."""
    options = read_options()
    allocated = misbehave(options)
    cluster, role, index = whoami(options)
    servers = cluster.get("ps") or []
    if role == "ps":
        serve(servers[index], f"ps-{index}")
        return
    model = Together([Remote(address) for address in servers]) if servers else Model()
    train(model, options, index=index, workers=max(len(cluster.get("worker") or ()), 1))
    del allocated


if __name__ == "__main__":
    main()
