"""A program at a real terminal, for the tests of what is only seen there."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping

SECONDS = 30.0
LOOK_SECONDS = 0.2


class Terminal:
    """What a person at the terminal can do."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text: str) -> None:
        """Read until this is on the screen."""
        deadline = time.monotonic() + SECONDS
        while text not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} never came; the last was {self._seen[-300:]!r}"
            self._read()

    def wait_for_answer(self, typed: str, text: str) -> None:
        """Type the same again and again until it is answered like this: the size of a terminal comes when it comes."""
        deadline = time.monotonic() + SECONDS
        while text not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} never came; the last was {self._seen[-300:]!r}"
            self.type(typed)
            while self._read():
                pass

    def ended(self) -> int:
        """Read on to the program's end; give its exit code."""
        with contextlib.suppress(OSError):
            while self._process.poll() is None:
                self._read()
        return self._process.wait(SECONDS)

    def _read(self) -> bool:
        """Read what comes within a moment; False when nothing does."""
        if not select.select([self._master], [], [], LOOK_SECONDS)[0]:
            return False
        self._seen += os.read(self._master, 65536).decode(errors="replace")
        return True


@contextlib.contextmanager
def terminal(*command: str, env: Mapping[str, str], lines: int = 40, columns: int = 100) -> Iterator[Terminal]:
    """Run a program at a terminal of this size; it does not outlive the block."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    # In a session of its own whose terminal this is: only so is it told when the size changes.
    owned = ("setsid", "--ctty", *command)
    process = subprocess.Popen(owned, stdin=slave, stdout=slave, stderr=slave, env=env, close_fds=True)
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
