"""Every process passes a number on to the next one; it comes back to the first as the sum of all ranks."""

import os
import socket
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size

total = rank
if rank > 0:
    total += world.recv(source=rank - 1)
if rank < size - 1:
    world.send(total, dest=rank + 1)
print(f"rank {rank} of {size} on {socket.gethostname()}: {total}", flush=True)
world.Barrier()

# To see how a job ends when one of its processes fails: mpirun … -x FAIL=3
if str(rank) == os.environ.get("FAIL"):
    sys.exit(9)
