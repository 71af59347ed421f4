"""A container that cannot be started twice unseen: it enters itself into a ledger, and counts aloud what it says.

Arguments: a mark to be found by, the pod's name, its own, how many lines to print (`on`: until the file `go` is there),
and its exit codes, one per try, the last of them for all later ones.
"""

import fcntl
import os
import sys
import time
import zlib
from pathlib import Path

_mark, pod, name, lines, *codes = sys.argv[1:]
folder, me = Path("/ledger"), f"{os.environ['POD_UID']} {name}"
started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]

# Held for life: whoever finds it taken runs beside another process of the same container.
alone = os.open(folder / f"{me.replace(' ', '.')}.lock", os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    company = "alone"
except BlockingIOError:
    company = "beside"

ledger = os.open(folder / "ledger", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
tries = sum(line.startswith(f"{me} ") for line in os.pread(ledger, 1 << 24, 0).decode().splitlines())
code = codes[min(tries, len(codes) - 1)]
os.write(ledger, f"{me} {pod} {started} {code} {company}\n".encode())

total = number = 0
while number < int(lines) if lines != "on" else not (folder / "go").exists():
    line = f"{started} {number}"
    print(line, flush=True)
    total = zlib.crc32(line.encode(), total)
    number += 1
    time.sleep(0.05)
print(f"{started} crc {total:08x}", flush=True)
sys.exit(int(code))
