"""What the members of the real job run: every rank sends a number to rank 0 by its name, and gets the sum back."""

import os
import socket
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS, PORT = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def meet():
    """Reach rank 0, whose name may not be known yet."""
    while True:
        try:
            found = socket.getaddrinfo(ADDRESS, PORT, socket.AF_INET)[0][4]
            return found[0], socket.create_connection(found, timeout=10)
        except OSError as error:
            print(f"rank {RANK}: {ADDRESS} cannot be reached yet: {error}")
            time.sleep(1)


def main():
    mine = 10 + RANK
    print(f"rank {RANK} of {SIZE} on {socket.gethostname()} has {mine}")
    if RANK == 0:
        server = socket.create_server(("", PORT))
        peers = [server.accept()[0] for _ in range(SIZE - 1)]
        total = mine + sum(int(peer.recv(16)) for peer in peers)
        for peer in peers:
            peer.sendall(str(total).encode())
    else:
        address, peer = meet()
        print(f"rank {RANK} reached {ADDRESS} at {address}")
        peer.sendall(str(mine).encode())
        total = int(peer.recv(16))
    print(f"rank {RANK}: the sum is {total}")
    assert total == sum(10 + rank for rank in range(SIZE))


main()
