"""Workers that train a model which a parameter server holds (PyTorch RPC).

Every process runs this same file. Who it is stands in its environment, set by Paceline: RANK 0 is
the parameter server, the others are workers. Each worker asks for the parameters, works out
gradients from examples of its own, and sends them back, without waiting for the other workers.
"""

import argparse
import os
import threading

import torch
from torch import Tensor, nn
from torch.distributed import rpc
from torch.nn.functional import mse_loss

SEED = 7
INPUTS = 16
BATCH = 64
SERVER = "ps"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="steps of each worker")
    steps = parser.parse_args().steps
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    # MASTER_ADDR and MASTER_PORT say where all meet.
    rpc.init_rpc(SERVER if rank == 0 else f"worker-{rank - 1}", rank=rank, world_size=size)
    if rank > 0:
        work(rank - 1, steps)
    # Waits until all processes are here: until then the server answers, and does nothing else.
    rpc.shutdown()
    if rank == 0:
        print(f"{served.steps} steps of {size - 1} workers  loss {served.loss():.4f}", flush=True)


def work(number: int, steps: int) -> None:
    model, random = make_model(), torch.Generator().manual_seed(SEED + number)
    for step in range(1, steps + 1):
        model.load_state_dict(rpc.rpc_sync(SERVER, ask))
        points, values = examples(random)
        model.zero_grad()
        loss = mse_loss(model(points), values)
        loss.backward()
        rpc.rpc_sync(SERVER, send, args=([each.grad for each in model.parameters()],))
        if step in (1, steps):
            print(f"step {step}/{steps}  loss {loss.item():.4f}", flush=True)


def make_model() -> nn.Module:
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(INPUTS, 32), nn.Tanh(), nn.Linear(32, 1))


def examples(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points in space, and a function of them to be learned."""
    points = torch.randn(BATCH, INPUTS, generator=random)
    return points, torch.tanh(points.sum(dim=1, keepdim=True) / INPUTS**0.5)


class Served:
    """What the parameter server holds; many workers may ask and send at once."""

    def __init__(self) -> None:
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps = 0
        self.lock = threading.Lock()

    def state(self) -> dict[str, Tensor]:
        with self.lock:
            return {name: each.detach().clone() for name, each in self.model.state_dict().items()}

    def learn(self, gradients: list[Tensor]) -> None:
        with self.lock:
            for each, gradient in zip(self.model.parameters(), gradients, strict=True):
                each.grad = gradient
            self.optimizer.step()
            self.steps += 1

    def loss(self) -> float:
        points, values = examples(torch.Generator().manual_seed(SEED - 1))
        with torch.no_grad():
            return mse_loss(self.model(points), values).item()


served = Served()


# What workers call runs in the server's process, on the one that is there.
def ask() -> dict[str, Tensor]:
    return served.state()


def send(gradients: list[Tensor]) -> None:
    served.learn(gradients)


if __name__ == "__main__":
    main()
