"""Learns to read handwritten digits with Keras on several workers that take every step together.

Every worker runs this same file; TF_CONFIG says who it is. The first one writes the logs and the model.
"""

import argparse
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow.keras import callbacks, layers, models, optimizers

SEED = 7
TEST_SHARE = 5  # one image in five is kept for the test
BATCH = 16  # of each worker


def main() -> None:
    options = parse_options()
    if options.no_cuda:
        tf.config.set_visible_devices([], "GPU")
    tf.keras.utils.set_random_seed(SEED)
    # Before anything else: it opens the port at which the others wait.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    told = json.loads(os.environ["TF_CONFIG"])
    workers, index = len(told["cluster"]["worker"]), told["task"]["index"]
    (images, labels), test = load_data()
    with strategy.scope():
        model = make_model(workers)
    called = [Turn(options.wait_for, options.epochs)]
    if index == 0:
        shutil.rmtree(options.log_dir, ignore_errors=True)
        called.append(callbacks.TensorBoard(log_dir=options.log_dir))
    # One step after the other, and in each of them every worker takes its share of the batch.
    size = BATCH * workers
    model.fit(images, labels, batch_size=size, epochs=options.epochs, callbacks=called, verbose=2)
    save(model, options.save_path, index)
    _, accuracy = model.evaluate(*test, batch_size=size, verbose=0)
    print(f"worker {index} of {workers}: accuracy {accuracy:.4f}", flush=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log_dir", type=Path, default=Path("log"), help="folder for TensorBoard")
    parser.add_argument("--save_path", type=Path, default=Path("saved_model"), help="folder for the model")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--no_cuda", action="store_true", help="train without GPUs")
    parser.add_argument("--wait_for", type=Path, help="begin the last epoch once this file is there")
    return parser.parse_args()


def load_data() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The 1,797 images that scikit-learn brings along, as training and test set."""
    digits = load_digits()
    images, labels = digits.images[..., np.newaxis] / 16, digits.target
    order = np.random.default_rng(SEED).permutation(len(labels))
    test, training = order[: len(order) // TEST_SHARE], order[len(order) // TEST_SHARE :]
    return (images[training], labels[training]), (images[test], labels[test])


def make_model(workers: int) -> Any:
    model = models.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu", input_shape=(8, 8, 1)),
            layers.MaxPool2D((2, 2)),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    optimizer = optimizers.Adam(learning_rate=0.001 * workers)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


class Turn(callbacks.Callback):  # type: ignore[misc]
    """Holds the last epoch back, for whoever wants to look at a training that is under way."""

    def __init__(self, path: Path | None, epochs: int) -> None:
        super().__init__()
        self.path, self.last = path, epochs - 1

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        while self.path and epoch == self.last and not self.path.exists():
            time.sleep(0.1)


def save(model: Any, path: Path, index: int) -> None:
    """Save the model. All workers must, as its parts are read together; only the first one's is kept."""
    own = path if index == 0 else path.with_name(f"{path.name}_temp_{index}")
    shutil.rmtree(own, ignore_errors=True)
    model.save(own)
    if index > 0:
        shutil.rmtree(own, ignore_errors=True)


if __name__ == "__main__":
    main()
