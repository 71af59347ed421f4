"""The control group of one container: made, joined, asked about and removed by its shim; stdlib only."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Cgroup:
    """Folders in the kernel's tree that hold a container to its limits; one per controller, or one for all."""

    def __init__(self, intent: dict[str, Any]) -> None:
        self._folders = [str(each) for each in intent["folders"]]
        self._settings = [(str(path), str(value)) for path, value in intent["settings"]]
        self._kills = Path(intent["kills"])
        self._procs = str(intent["procs"])
        # Whether the shim may be in the groups for the moment in which it starts the program.
        self.takes_guests = bool(intent.get("homes"))
        self._homes = [str(each) for each in intent.get("homes", ())]

    def make(self) -> None:
        """Make the folders and write the limits; OSError says which one the kernel refuses."""
        for folder in self._folders:
            # Not through Path, as below: every start does this.
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)  # noqa: PTH102
        for path, value in self._settings:
            # Swap is counted only where the kernel was told to; without swap there is nothing to limit.
            with contextlib.suppress(FileNotFoundError):
                _write(path, value.encode())

    def join(self) -> None:
        """Put the calling process, and with it all it will start, under the limits."""
        for folder in self._folders:
            self._enter(folder)

    @contextlib.contextmanager
    def guest(self) -> Iterator[None]:
        """Have what is started meanwhile under the limits, and the calling process only for so long."""
        try:
            self.join()
            yield
        finally:
            for folder in self._homes:
                self._enter(folder)

    def _enter(self, folder: str) -> None:
        _write(f"{folder}/{self._procs}", b"0")

    def has_killed(self) -> bool:
        """Tell whether the kernel ended a process here because memory ran out."""
        with contextlib.suppress(OSError):
            found = re.search(r"^oom_kill (\d+)$", self._kills.read_text(), re.MULTILINE)
            return found is not None and int(found[1]) > 0
        return False

    def remove(self) -> bool:
        """Remove the folders; False when one still holds a process. Such a one is swept when the agent starts next."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106
        return not any(map(os.path.lexists, self._folders))


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, data)
    finally:
        os.close(file)
