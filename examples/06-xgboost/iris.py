"""Learns to tell three sorts of iris apart with XGBoost, on one process or many.

Every replica runs this same file and sees only its own share of the flowers. Who it is stands in its environment
(RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); the master keeps the tracker through which all find each other.
"""

import argparse
import os
import socket
from hashlib import sha256
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_iris
from xgboost import collective
from xgboost.tracker import RabitTracker

SEED = 7
TEST_SHARE = 5  # one flower in five is kept for the test
ROUNDS = 10
# The master may be a while behind the others.
TRIES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save_path", type=Path, default=Path("iris.json"), help="file for the model")
    options = parser.parse_args()
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "9991"))
    tracker = start_tracker(host, port, size) if rank == 0 else None
    address = {"dmlc_tracker_uri": host, "dmlc_tracker_port": port, "dmlc_task_id": str(rank), "dmlc_retry": TRIES}
    with collective.CommunicatorContext(dmlc_communicator="rabit", **address):
        model, accuracy = train(rank, size)
        digest = sha256(bytes(model.save_raw("json"))).hexdigest()[:12]
        print(f"rank {rank} of {size}: accuracy {accuracy:.4f} with model {digest}", flush=True)
    if tracker:
        # The job ends with the master: not before everybody has left.
        tracker.wait_for()
        model.save_model(options.save_path)


def start_tracker(host: str, port: int, size: int) -> RabitTracker:
    tracker = RabitTracker(n_workers=size, host_ip=socket.gethostbyname(host), port=port, sortby="task")
    tracker.start()
    return tracker


def train(rank: int, size: int) -> tuple[xgboost.Booster, float]:
    """Train on every size-th flower; gives the model, which is the same in all processes, and its accuracy."""
    iris = load_iris()
    order = np.random.default_rng(SEED).permutation(len(iris.target))
    test, training = order[: len(order) // TEST_SHARE], order[len(order) // TEST_SHARE :]
    mine = training[rank::size]
    settings = {"objective": "multi:softmax", "num_class": 3, "max_depth": 3, "nthread": 1, "seed": SEED}
    flowers = xgboost.DMatrix(iris.data[mine], iris.target[mine])
    log: dict[str, dict[str, list[float]]] = {}
    model = xgboost.train(
        settings, flowers, ROUNDS, evals=[(flowers, "training")], evals_result=log, verbose_eval=False
    )
    if rank == 0:
        for number, error in enumerate(log["training"]["mlogloss"], start=1):
            print(f"round {number}/{ROUNDS}  loss {error:.4f}", flush=True)
    right = model.predict(xgboost.DMatrix(iris.data[test])) == iris.target[test]
    return model, float(right.mean())


if __name__ == "__main__":
    main()
