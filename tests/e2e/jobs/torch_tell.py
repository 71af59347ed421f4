"""Runs the training script beside it, and lets every process tell in the end who it was and what it has learned."""

import hashlib
import os

import train
from torch import distributed

train_first = train.train


def train_and_tell(options):
    model = train_first(options)
    learned = hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()
    # Each on a line of its own, though processes of one pod share its log.
    for rank in range(distributed.get_world_size()):
        distributed.barrier()
        if rank == distributed.get_rank():
            who = f"{os.environ['POD_NAME']}:{os.environ.get('LOCAL_RANK', '-')}"
            print(f"rank {rank} of {distributed.get_world_size()} at {who} learned {learned}", flush=True)
    # Nobody leaves before the last has spoken: the first one's end is the job's.
    distributed.barrier()
    return model


train.train = train_and_tell
train.main()
