"""Learns a line with Colossal-AI: every process sees other points, and all end with the same line."""

import colossalai
import torch
from colossalai.booster import Booster
from colossalai.booster.plugin import TorchDDPPlugin
from torch import distributed, nn

STEPS = 60
SLOPE, START = 3.0, -1.0


def main() -> None:
    colossalai.launch_from_torch(backend="gloo", verbose=False)
    rank, size = distributed.get_rank(), distributed.get_world_size()
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    booster = Booster(plugin=TorchDDPPlugin())
    boosted, optimizer, *_ = booster.boost(model, optimizer)
    chance = torch.Generator().manual_seed(rank)
    for step in range(1, STEPS + 1):
        points = torch.rand(16, 1, generator=chance)
        loss = nn.functional.mse_loss(boosted(points), SLOPE * points + START)
        booster.backward(loss, optimizer)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}/{STEPS}  loss {loss.item():.4f}", flush=True)
    print(f"rank {rank} of {size}: y = {model.weight.item():.4f} x + {model.bias.item():.4f}", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
