"""The one seam to the machine: clock, ids, chance, files, processes.

Everything that a decision or a component may learn from outside comes through these protocols. The real ones live in
`host/effects.py`, the simulated ones in `testing/`. Waiting is not among them: `asyncio.sleep` and `call_later`
are virtual on a simulated loop, so components use them as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Time for people and records, and time for measuring."""

    def now(self) -> datetime:
        """Return the time in UTC by which records are stamped and decisions made.

        In the embedded cluster it is the cluster's time, which setting the machine's clock does not move.
        """
        ...

    def monotonic(self) -> float:
        """Tell seconds that never run backwards."""
        ...


class Ids(Protocol):
    """Names nobody else has."""

    def uid(self) -> str:
        """Make a new object uid (the text form of a UUID)."""
        ...

    def suffix(self, length: int) -> str:
        """Make a short random name ending, of the letters Kubernetes uses for generated names."""
        ...

    def secret(self) -> str:
        """Make a 256-bit secret, as text."""
        ...


class Random(Protocol):
    """The dice: jitter and choices."""

    def fraction(self) -> float:
        """Draw a number from 0 up to, but not including, 1."""
        ...


class Files(Protocol):
    """Files that matter after a crash. Missing files raise FileNotFoundError, others OSError."""

    def read(self, path: Path) -> bytes:
        """Read a whole file."""
        ...

    def read_range(self, path: Path, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes from `offset`; empty at the end of the file."""
        ...

    def size(self, path: Path) -> int:
        """Tell how many bytes a file holds."""
        ...

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Replace a file as one durable step: a crash leaves the old one or the new one, never a part."""
        ...

    def overwrite(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        """Rewrite a file in place, keeping its inode, so that whoever has it mounted sees the change. Not durable."""
        ...

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        """Write bytes into a file at an offset; create the file if it does not exist. Not durable."""
        ...

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        """Make a folder and its parents; being there already is fine."""
        ...

    def make_beneath(self, root: Path, inner: str, mode: int) -> None:
        """Make the folder at a relative path in a folder that containers write to, and those on the way to it.

        What is there already is fine. OSError EXDEV when a link leads out; nothing outside is ever touched.
        """
        ...

    def names(self, path: Path) -> tuple[str, ...]:
        """List a folder's entries, sorted; a missing folder has none."""
        ...

    def resolve(self, path: Path) -> Path:
        """Follow all links on the way to a path and give where it really lies."""
        ...

    def exists(self, path: Path) -> bool:
        """Tell whether something is at the path."""
        ...

    def sort(self, path: Path) -> str:
        """Tell what is at the end of a path, links followed: folder, file, socket, pipe, character or block device.

        Empty when nothing is.
        """
        ...

    def link(self, path: Path, target: str) -> None:
        """Let a name lead to a target, in one step, whatever file or link had the name before. Not durable."""
        ...

    def share(self, path: Path, group: int, *, is_read_only: bool = False) -> None:
        """Give a folder and all in it to a group, as a kubelet does for `fsGroup`, and as far as this user may."""
        ...

    def move(self, path: Path, target: Path) -> None:
        """Give a file or a whole folder another place on the same disk, in one step. Not durable."""
        ...

    def room(self, path: Path) -> float:
        """Tell which part of the disk that a folder is on is free: from 0.0 to 1.0."""
        ...

    def used(self, path: Path) -> int:
        """Tell how many bytes of its disk a folder and all in it take, links not followed; gone is none."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder without following links; already gone is fine.

        The folder that it is in must not be one that containers write to.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessHandle:
    """One process, told apart from a later one that was given the same pid."""

    pid: int
    start_ticks: int
    boot_id: str


class Processes(Protocol):
    """The shims of this machine: one per container, each owning a folder (node/runtime/shim.py says what is in it)."""

    def boot_id(self) -> str:
        """Tell which boot of the machine this is."""
        ...

    async def start(self, folder: Path) -> None:
        """Start a shim on a container's folder and return once it holds the folder's lock or has ended."""
        ...

    def holds(self, folder: Path) -> bool:
        """Tell whether a live shim holds the folder's lock."""
        ...

    def alive(self, who: ProcessHandle) -> bool:
        """Tell whether this very process still runs."""
        ...

    async def ended(self, who: ProcessHandle) -> None:
        """Return when this very process is gone."""
        ...

    def signal(self, who: ProcessHandle, number: int) -> None:
        """Send a signal to this very process; gone already is fine."""
        ...


class Executor(Protocol):
    """Where calls that block are run, so that they do not stop the loop."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` elsewhere and give back what it returns; calls of one runner keep their order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Everything outside, as one argument."""

    clock: Clock
    ids: Ids
    chance: Random
    files: Files
    processes: Processes
