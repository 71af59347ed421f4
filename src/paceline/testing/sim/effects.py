"""A simulated world: time that is told to pass, chance from a seed, a disk that forgets what was not synced."""

import asyncio
import errno
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from paceline.effects import Effects
from paceline.testing.sim.processes import SimProcesses

T = TypeVar("T")

START = datetime(2030, 1, 1, tzinfo=UTC)
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class SimClock:
    """Starts at a fixed moment and passes when it is told to, or with the time of the running loop."""

    def __init__(self, start: datetime = START, *, follows_loop: bool = False) -> None:
        self._start = start
        self._follows_loop = follows_loop
        self._passed = 0.0
        self._jumped = timedelta()

    def now(self) -> datetime:
        """Tell the simulated wall-clock time."""
        return self._start + timedelta(seconds=self.monotonic()) + self._jumped

    def monotonic(self) -> float:
        """Tell how many simulated seconds have passed."""
        return self._passed + (asyncio.get_running_loop().time() if self._follows_loop else 0.0)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forwards or backwards; no time passes."""
        self._jumped += timedelta(seconds=seconds)


class SimIds:
    """Ids that are the same again for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(f"ids {seed}")  # noqa: S311 - repeatable on purpose

    def uid(self) -> str:
        """Make the seed's next UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self, length: int) -> str:
        """Make the seed's next name ending."""
        return "".join(self._random.choice(SUFFIX_LETTERS) for _ in range(length))

    def secret(self) -> str:
        """Make the seed's next secret."""
        return f"{self._random.getrandbits(256):064x}"


class SimChance:
    """Dice that fall the same way again for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(f"chance {seed}")  # noqa: S311 - repeatable on purpose

    def fraction(self) -> float:
        """Draw the seed's next number from 0 up to 1."""
        return self._random.random()


class SimFiles:
    """Files in RAM. `crash` is a power cut: only what was written durably is there afterwards."""

    def __init__(self) -> None:
        # By path as text: a simulation asks for millions of them.
        self._seen: dict[str, bytes] = {}
        # Of those that are there, as all of them are.
        self._synced: dict[str, bytes] = {}
        # Every folder, with the names in it.
        self._folders: dict[str, set[str]] = {}
        self.modes: dict[Path, int] = {}
        self.groups: dict[Path, int] = {}

    def crash(self) -> None:
        """Forget what was not synced."""
        self._seen = dict(self._synced)
        self._folders = {}
        for path in self._seen:
            self._enter(path)

    def read(self, path: Path) -> bytes:
        """Read a whole file."""
        data = self._seen.get(str(path))
        if data is None:
            raise FileNotFoundError(path)
        return data

    def read_range(self, path: Path, offset: int, limit: int) -> bytes:
        """Read at most `limit` bytes from `offset`."""
        return self.read(path)[offset : offset + limit]

    def size(self, path: Path) -> int:
        """Tell how many bytes a file holds."""
        return len(self.read(path))

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        """Replace a file durably."""
        self.overwrite(path, data, mode)
        self._synced[str(path)] = data

    def overwrite(self, path: Path, data: bytes, mode: int = 0o644) -> None:
        """Rewrite a file; a crash may bring the old bytes back."""
        if str(path.parent) not in self._folders:
            raise FileNotFoundError(path.parent)
        self._seen[str(path)] = data
        self._folders[str(path.parent)].add(path.name)
        self.modes[path] = mode

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        """Change a part of a file; a crash may bring the old bytes back."""
        old = self._seen.get(str(path), b"").ljust(offset, b"\0")
        self.overwrite(path, old[:offset] + data + old[offset + len(data) :], 0o600)

    def append(self, path: Path, data: bytes) -> None:
        """Let a file grow, as the log of a running container does."""
        self.overwrite(path, self._seen.get(str(path), b"") + data)

    def make_folder(self, path: Path, mode: int = 0o700) -> None:
        """Make a folder and its parents."""
        if str(path) not in self._folders:
            self._folders[str(path)] = set()
            self._enter(str(path))

    def make_beneath(self, root: Path, inner: str, mode: int) -> None:
        """Make a folder in a folder, unless something is there."""
        if ".." in inner.split("/") or inner.startswith("/"):
            raise OSError(errno.EXDEV, "leads out of its folder", inner)
        if not self.exists(root / inner):
            self.make_folder(root / inner, mode)

    def names(self, path: Path) -> tuple[str, ...]:
        """List a folder's entries, sorted."""
        return tuple(sorted(self._folders.get(str(path), ())))

    def resolve(self, path: Path) -> Path:
        """Give the path itself: there are no links here."""
        return path

    def exists(self, path: Path) -> bool:
        """Tell whether a file or a folder is at the path."""
        return str(path) in self._seen or str(path) in self._folders

    def sort(self, path: Path) -> str:
        """Tell a file from a folder."""
        return "folder" if str(path) in self._folders else "file" if str(path) in self._seen else ""

    def link(self, path: Path, target: str) -> None:
        """Remember where a name leads; nothing here follows it."""
        self.overwrite(path, f"-> {target}".encode())

    def share(self, path: Path, group: int, *, is_read_only: bool = False) -> None:
        """Remember which group a folder was given to."""
        self.groups[path] = group

    def move(self, path: Path, target: Path) -> None:
        """Give a file or a folder another place; of what was synced in it a crash takes nothing."""
        if not self.exists(path):
            raise FileNotFoundError(path)
        if str(target.parent) not in self._folders:
            raise FileNotFoundError(target.parent)
        old = str(path)
        for child in tuple(self._within(old)):
            moved = f"{target}{child[len(old) :]}"
            for files in (self._seen, self._synced):
                if child in files:
                    files[moved] = files.pop(child)
            if child in self._folders:
                self._folders[moved] = self._folders.pop(child)
        self._leave(old)
        self._enter(str(target))

    def room(self, path: Path) -> float:
        """Have as much as anybody may want."""
        return 1.0

    def used(self, path: Path) -> int:
        """Add up what the files of a folder hold."""
        return sum(len(self._seen.get(file, b"")) for file in self._within(str(path)) if file != str(path))

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder."""
        for child in tuple(self._within(str(path))):
            self._seen.pop(child, None)
            self._synced.pop(child, None)
            self._folders.pop(child, None)
        self._leave(str(path))

    def _within(self, path: str) -> Iterator[str]:
        """Give a path that is there and all that lies in it."""
        names = self._folders.get(path)
        if names is not None or path in self._seen:
            yield path
        for name in names or ():
            yield from self._within(f"{path.rstrip('/')}/{name}")

    def _enter(self, path: str) -> None:
        """Have a path listed in its folder, and that in the one above."""
        while path != "/":
            above, _, name = path.rpartition("/")
            entries = self._folders.get(above or "/")
            if entries is not None:
                entries.add(name)
                return
            self._folders[above or "/"] = {name}
            path = above or "/"

    def _leave(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        self._folders.get(above or "/", set()).discard(name)


class SimBlocking:
    """Runs what blocks on the spot: nothing blocks in a simulation."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` now, after letting others have their turn."""
        await asyncio.sleep(0)
        return call()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimWorld:
    """The simulated parts by their own types, for the test that moves them."""

    clock: SimClock
    ids: SimIds
    chance: SimChance
    files: SimFiles
    processes: SimProcesses

    def world(self) -> Effects:
        """Give the same parts as the product sees them."""
        return Effects(
            clock=self.clock,
            ids=self.ids,
            chance=self.chance,
            files=self.files,
            processes=self.processes,
        )


def sim_world(seed: int = 0, *, follows_loop: bool = False) -> SimWorld:
    """Make a world in which the same seed gives the same run."""
    clock, files = SimClock(follows_loop=follows_loop), SimFiles()
    return SimWorld(
        clock=clock,
        ids=SimIds(seed),
        chance=SimChance(seed),
        files=files,
        processes=SimProcesses(files, clock),
    )
