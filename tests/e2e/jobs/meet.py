"""A stand-in for DDP without torch: rank 0 listens at MASTER_ADDR:MASTER_PORT, the others come, all sum their ranks."""

import os
import socket
import sys
import time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
job = sys.argv[1]

if rank == 0:
    # All addresses, as torch's own store does: two jobs on one port would clash.
    server = socket.create_server(("0.0.0.0", where[1]))
    peers, total = [], 0
    while len(peers) < world - 1:
        peer, _ = server.accept()
        said = peer.recv(256).decode().split()
        if said[0] != job:
            sys.exit(f"a stranger came: {said}")
        peers.append(peer)
        total += int(said[1])
    for peer in peers:
        peer.sendall(str(total).encode())
else:
    deadline = time.monotonic() + 20
    while True:
        try:
            peer = socket.create_connection(where, timeout=5)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    peer.sendall(f"{job} {rank}".encode())
    total = int(peer.recv(64))

print(f"job {job} rank {rank} of {world}: sum {total}", flush=True)
