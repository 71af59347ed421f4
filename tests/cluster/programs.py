"""What the replicas of the test jobs run: each program ends well only if it reaches its peers."""

from pathlib import Path

SUM = (Path(__file__).parents[1] / "e2e" / "jobs" / "sum_by_name.py").read_text()
TENSORFLOW_PEERS = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
peers = [host for hosts in config["cluster"].values() for host in hosts]
server = socket.create_server(("", int(peers[config["task"]["index"]].rpartition(":")[2])))
for peer in peers:
    host, _, port = peer.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
            break
        except OSError:
            time.sleep(0.5)
print("all", len(peers), "answer")
"""
# Everybody has met everybody before anybody may leave.
TENSORFLOW_MEETING = TENSORFLOW_PEERS + "time.sleep(4)\n"
TRACKER = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""
# Every process sends its rank to all others, over whatever network joins them.
MPI_SUM = """
import socket
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
print("rank", world.rank, "of", world.size, "on", socket.gethostname(), "has", total, flush=True)
assert total == sum(range(world.size))
"""
# The first worker of a DeepSpeedJob starts a command in all of them.
REACH_ALL = "pdsh -S -w $(cut -d' ' -f1 /t9k/hostfile | paste -sd,) 'echo worker %n is here'"
