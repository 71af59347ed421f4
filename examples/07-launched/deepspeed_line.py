"""Learns a line with DeepSpeed: every process sees other points, and all end with the same line."""

import argparse

import deepspeed
import torch
from torch import nn

SETTINGS = {
    "train_micro_batch_size_per_gpu": 16,
    "zero_optimization": {"stage": 0},
}
STEPS = 60
SLOPE, START = 3.0, -1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--local_rank", type=int, default=0, help="given by deepspeed")
    parser.parse_args()
    # Without a GPU it would first compile how processes of one machine share memory: minutes, and a compiler.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="gloo")
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=SETTINGS)
    rank, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
    chance = torch.Generator().manual_seed(rank)
    for step in range(1, STEPS + 1):
        points = torch.rand(16, 1, generator=chance)
        loss = nn.functional.mse_loss(engine(points), SLOPE * points + START)
        engine.backward(loss)
        engine.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}/{STEPS}  loss {loss.item():.4f}", flush=True)
    print(f"rank {rank} of {size}: y = {model.weight.item():.4f} x + {model.bias.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
