"""Writes files of chance bytes to /output, and says of each, once it is closed, its name and digest."""

import hashlib
import os
import sys
import time
import uuid

deadline = time.monotonic() + float(sys.argv[1])
while time.monotonic() < deadline:
    data = os.urandom(int.from_bytes(os.urandom(2)) + 1)
    name = f"{uuid.uuid4().hex[:2]}/{uuid.uuid4().hex}"
    os.makedirs(f"/output/{name[:2]}", exist_ok=True)  # noqa: PTH103
    with open(f"/output/{name}", "wb") as file:  # noqa: PTH123
        file.write(data)
    print("closed", name, hashlib.sha256(data).hexdigest(), flush=True)
    time.sleep(0.03)
