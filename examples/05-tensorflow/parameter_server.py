"""Learns to read handwritten digits with variables on parameter servers, and workers that need not wait for each other.

Every replica runs this same file; TF_CONFIG says who it is. Workers and parameter servers wait for the chief's orders
and never end; the chief writes the model.
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SEED = 7
TEST_SHARE = 5  # one image in five is kept for the test
BATCH = 64
EPOCHS, STEPS = 4, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save_path", type=Path, default=Path("served_model"), help="folder for the model")
    options = parser.parse_args()
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster.task_type in ("worker", "ps"):
        serve(cluster)
    else:
        train(cluster, options.save_path)


def serve(cluster: tf.distribute.cluster_resolver.TFConfigClusterResolver) -> None:
    """Do what the chief says, for ever."""
    server = tf.distribute.Server(
        cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id, protocol="grpc", start=True
    )
    print(f"{cluster.task_type} {cluster.task_id} serves", flush=True)
    server.join()


def train(cluster: tf.distribute.cluster_resolver.TFConfigClusterResolver, path: Path) -> None:
    (images, labels), test = load_data()

    def feed(_: object) -> tf.data.Dataset:
        """Give each worker batches of its own, in another order."""
        return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels)).repeat().batch(BATCH)

    with tf.distribute.ParameterServerStrategy(cluster).scope():
        tf.keras.utils.set_random_seed(SEED)
        shapes = [tf.keras.layers.Dense(64, "relu", input_shape=(64,)), tf.keras.layers.Dense(10)]
        model = tf.keras.Sequential(shapes)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.legacy.Adam(0.01), loss=loss)
    model.fit(tf.keras.utils.experimental.DatasetCreator(feed), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=2)
    right = np.argmax(model(test[0]).numpy(), axis=1) == test[1]
    model.save(path)
    print(f"accuracy {right.mean():.4f}  model {path}", flush=True)


def load_data() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The 1,797 images that scikit-learn brings along, as training and test set."""
    digits = load_digits()
    images, labels = digits.data.astype(np.float32) / 16, digits.target
    order = np.random.default_rng(SEED).permutation(len(labels))
    test, training = order[: len(order) // TEST_SHARE], order[len(order) // TEST_SHARE :]
    return (images[training], labels[training]), (images[test], labels[test])


if __name__ == "__main__":
    main()
