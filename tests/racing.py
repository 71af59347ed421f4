"""An adversary: a process that exchanges two names in a tight loop, as a container can in a volume that it mounts.

In     a name that our code is about to use, and a second name, which mostly is a link to a place outside.
Out    the exchange, many thousand times a second, until the test has seen enough.
Never  touches anything but the two names.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Short in `make test`, and as long as the promise says in `make soak`.
SECONDS = [
    pytest.param(1.0, id="1s"),
    pytest.param(60.0, id="60s", marks=[pytest.mark.soak, pytest.mark.timeout(240)]),
]
LOOP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
# Killed with whoever started it.
libc.prctl(1, 9)
rename = libc.renameat2
one, two = (ctypes.c_char_p(os.fsencode(each)) for each in sys.argv[1:3])
print("ready", flush=True)
while True:
    if rename(-100, one, -100, two, 2) and ctypes.get_errno() not in (2, 16):
        sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
"""


@contextmanager
def exchanging(name: Path, other: Path) -> Iterator[None]:
    """Exchange two names until the end of the block."""
    command = (sys.executable, "-I", "-S", "-c", LOOP, str(name), str(other))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as racer:
        try:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
            yield
            assert racer.poll() is None, "the racer ended before the test"
        finally:
            racer.kill()


def rounds(seconds: float) -> Iterator[int]:
    """Count rounds until the time is over; at least two."""
    end, number = time.monotonic() + seconds, 0
    while number < 2 or time.monotonic() < end:
        yield number
        number += 1
