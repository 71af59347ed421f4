"""A training that may be stopped at any moment, and goes on from where it was (PyTorch DDP).

Every process runs this same file, with torchrun or without, and there may be another number of
them after each restart. The folder of --data-dir receives checkpoint.pt, every few steps.

Three things make it safe to kill:
- a checkpoint has everything that the next step depends on, and replaces the last one whole;
- process 0 reads it and tells the others, so that all go on from the same step;
- a step takes the same examples however many processes share them.
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
from torch import Tensor, distributed, nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

SEED = 7
INPUTS = 16
EXAMPLES = 3000
BATCH = 240  # examples per step, shared by 1, 2, 3, 4, 5 or 6 processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    data_dir: Path
    steps: int
    save_every: int
    backend: str


def main() -> None:
    options = parse_options()
    join_gang(options.backend)
    train(options)
    leave_gang()


def parse_options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=Path(), help="folder of the checkpoint")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=5, help="steps from checkpoint to checkpoint")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "nccl"])
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


def train(options: Options) -> nn.Module:
    """Train to the last step, from the first or from where the last checkpoint was made."""
    path, is_first = options.data_dir / "checkpoint.pt", distributed.get_rank() == 0
    model = nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    done = resume(path, model, optimizer)
    if is_first:
        print(f"{distributed.get_world_size()} processes go on from step {done}", flush=True)
    shared, data = DistributedDataParallel(model), make_data()
    for step in range(done + 1, options.steps + 1):
        loss = take_step(step, shared, optimizer, data)
        if not is_first:
            continue
        print(f"step {step}/{options.steps}  loss {loss:.6f}", flush=True)
        if step % options.save_every == 0 or step == options.steps:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save({"step": step, **state}, path)
    return model


def make_data() -> tuple[Tensor, Tensor]:
    """Points in space, and a function of them to be learned."""
    random = torch.Generator().manual_seed(SEED)
    points = torch.randn(EXAMPLES, INPUTS, generator=random)
    direction = torch.randn(INPUTS, 1, generator=random) / INPUTS**0.5
    return points, torch.tanh(points @ direction)


def take_step(
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: tuple[Tensor, Tensor],
) -> float:
    """Learn from the examples of one step, each process from its share; gives the loss of all."""
    chosen = torch.randperm(EXAMPLES, generator=torch.Generator().manual_seed(SEED + step))[:BATCH]
    mine = chosen[distributed.get_rank() :: distributed.get_world_size()]
    points, values = (tensor[mine] for tensor in data)
    optimizer.zero_grad()
    loss = mse_loss(model(points), values)
    loss.backward()
    optimizer.step()
    mean = loss.detach() / distributed.get_world_size()
    distributed.all_reduce(mean)
    return mean.item()


def resume(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Take up what the last checkpoint has; gives the number of steps that were done."""
    is_reader = distributed.get_rank() == 0 and path.exists()
    found = [torch.load(path, weights_only=True) if is_reader else None]
    distributed.broadcast_object_list(found)
    (state,) = found
    if state is None:
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def save(state: dict, path: Path) -> None:
    """Write the whole file or none of it, whenever this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    torch.save(state, unfinished)
    unfinished.rename(path)


if __name__ == "__main__":
    main()
