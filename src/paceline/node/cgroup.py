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
        self._folders = [Path(each) for each in intent["folders"]]
        self._settings = [(Path(path), str(value)) for path, value in intent["settings"]]
        self._kills = Path(intent["kills"])
        self._procs = str(intent["procs"])
        # Whether the shim may be in the groups for the moment in which it starts the program.
        self.takes_guests = bool(intent.get("homes"))
        self._homes = [Path(each) for each in intent.get("homes", ())]

    def make(self) -> None:
        """Make the folders and write the limits; OSError says which one the kernel refuses."""
        for folder in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
        for path, value in self._settings:
            # Swap is counted only where the kernel was told to; without swap there is nothing to limit.
            if path.exists():
                path.write_text(value)

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

    def _enter(self, folder: Path) -> None:
        file = os.open(folder / self._procs, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, b"0")
        finally:
            os.close(file)

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
                folder.rmdir()
        return not any(folder.exists() for folder in self._folders)
