"""Prints numbered lines at a rate: so many per second, as far as it is let, for so many seconds' worth of them.

Arguments: lines per second, seconds. The last line says how many there were, and how long they took.
"""

import os
import sys
import time

rate, seconds = int(sys.argv[1]), float(sys.argv[2])
total, step = int(rate * seconds), max(rate // 100, 1)
begun = time.monotonic()
for first in range(0, total, step):
    data = b"".join(
        b"%09d the quick brown fox jumps over the dog\n" % n for n in range(first, min(first + step, total))
    )
    while data:
        data = data[os.write(1, data) :]
    time.sleep(max(begun + first / rate - time.monotonic(), 0))
os.write(1, b"%d lines in %.2f s\n" % (total, time.monotonic() - begun))
