"""Learns to read handwritten digits with PyTorch DDP, on one process or many.

Every process runs this same file. Who it is stands in its environment (RANK, WORLD_SIZE,
MASTER_ADDR, MASTER_PORT), set by Paceline, by torchrun, or by nobody for a single process.
The folder of --data-dir receives checkpoint.pt (each epoch; a restarted job goes on from it),
events/ (for TensorBoard) and, at the end, model.pt.
"""

import argparse
import gc
import os
from dataclasses import dataclass
from pathlib import Path

import torch

# Imported here because PyTorch does it too late: once a gang has been joined, the defaults of this
# module keep hold of it, and one process in ten dies of its threads at the very end (2.13, gloo).
import torch.distributed.nn
from sklearn.datasets import load_digits
from torch import Tensor, distributed, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from torch.utils.tensorboard import SummaryWriter

SEED = 7
TEST_SHARE = 5  # one image in five is kept for the test


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    data_dir: Path
    epochs: int
    batch_size: int
    lr: float
    backend: str


def main() -> None:
    options = parse_options()
    join_gang(options.backend)
    rank = distributed.get_rank()
    accuracy, model = train(options, rank)
    if rank == 0:
        path = options.data_dir / "model.pt"
        save(model.state_dict(), path)
        print(f"accuracy {accuracy:.4f}  model {path}", flush=True)
    leave_gang()


def parse_options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path(), help="folder for all output")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
    parser.add_argument("--lr", type=float, default=0.003, help="learning rate")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "nccl", "mpi"])
    return Options(**vars(parser.parse_args()))


def join_gang(backend: str) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    for name, value in alone.items():
        os.environ.setdefault(name, value)
    # Several processes share this machine's cores; more threads would only get in their way.
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    distributed.init_process_group(backend)


def leave_gang() -> None:
    gc.collect()  # What is left of the training still holds the gang, and would keep its threads.
    distributed.destroy_process_group()


def train(options: Options, rank: int) -> tuple[float, nn.Module]:
    """Train to the last epoch; gives the accuracy on the test images and the model."""
    training, test = load_data()
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    sampler = DistributedSampler(training, seed=SEED)
    loader = DataLoader(training, batch_size=options.batch_size, sampler=sampler)
    done = resume(model.module, optimizer, options)
    if done and rank == 0:
        print(f"going on after epoch {done}", flush=True)
    accuracy = 0.0
    events = SummaryWriter(options.data_dir / "events") if rank == 0 else None
    for epoch in range(done + 1, options.epochs + 1):
        sampler.set_epoch(epoch)
        loss = run_epoch(model, loader, optimizer)
        accuracy = measure(model.module, test)
        if events:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            save({"epoch": epoch, **state}, options.data_dir / "checkpoint.pt")
            events.add_scalar("loss", loss, epoch)
            events.add_scalar("accuracy", accuracy, epoch)
            progress = f"epoch {epoch}/{options.epochs}"
            print(f"{progress}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
    if events:
        events.close()
    return accuracy, model.module


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """The 1,797 images that scikit-learn brings along, as training and test set."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SEED))
    test, training = order[: len(order) // TEST_SHARE], order[len(order) // TEST_SHARE :]
    return (
        TensorDataset(images[training], labels[training]),
        TensorDataset(images[test], labels[test]),
    )


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def run_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    """One pass over this process's share of the images; gives the mean loss of all processes."""
    model.train()
    total = torch.zeros(2)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += torch.tensor([loss.item(), 1.0])
    return mean_of_all(total)


def measure(model: nn.Module, test: TensorDataset) -> float:
    """The share of test images read right; each process reads its part of them."""
    model.eval()
    rank, size = distributed.get_rank(), distributed.get_world_size()
    images, labels = (tensor[rank::size] for tensor in test.tensors)
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == labels).sum().item()
    return mean_of_all(torch.tensor([float(right), float(len(labels))]))


def mean_of_all(total: Tensor) -> float:
    distributed.all_reduce(total)
    return (total[0] / total[1]).item()


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, options: Options) -> int:
    """Take up an unfinished run; gives the number of epochs it had done.

    No process can write the next checkpoint before all have joined an all-reduce,
    so all of them read the same one here.
    """
    path = options.data_dir / "checkpoint.pt"
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["epoch"] >= options.epochs:
        return 0  # That run was finished; this one is a new one.
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def save(state: dict, path: Path) -> None:
    """Write the whole file or none of it, whenever this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    torch.save(state, unfinished)
    unfinished.rename(path)


if __name__ == "__main__":
    main()
