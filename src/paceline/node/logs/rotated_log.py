"""A container's log as one long text, over the files that it is cut into.

The first file is `log`; a later one carries the place of its first byte in its name, counted from the log's beginning.
Old files go when there are too many, so a log may begin later than at 0.
"""

from pathlib import Path

from paceline.effects import Files
from paceline.node.runtime import shim


class RotatedLog:
    """Reads a log that may grow, and lose its oldest files, while it is read."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._begins: tuple[int, ...] = ()
        self._turn()

    def begin(self) -> int:
        """Say where the oldest byte that is still there lies."""
        return self._begins[0] if self._begins else 0

    def size(self) -> int:
        """Say where the next byte will lie."""
        self._turn()
        return self._begins[-1] + self._length(self._begins[-1]) if self._begins else 0

    def kept(self) -> int:
        """Say how many bytes are there."""
        return self.size() - self.begin()

    def read_range(self, offset: int, limit: int) -> bytes:
        """Read on from a place, of one file at most; nothing at the end, or when what was there is gone."""
        data = self._read(offset, limit)
        if not data:
            # The end of a file is not that of the log when another one has been begun.
            self._turn()
            data = self._read(offset, limit)
        return data

    def skip(self, offset: int) -> int:
        """Say where reading goes on: here, or where the oldest byte is if that is later."""
        return max(offset, self.begin())

    def _read(self, offset: int, limit: int) -> bytes:
        here = [each for each in self._begins if each <= offset]
        if not here:
            return b""
        try:
            return self._files.read_range(self._path(here[-1]), offset - here[-1], limit)
        except FileNotFoundError:
            return b""

    def _length(self, begin: int) -> int:
        try:
            return self._files.size(self._path(begin))
        except FileNotFoundError:
            return 0

    def _turn(self) -> None:
        """Look which files there are now."""
        found = (
            name.removeprefix(shim.LOG).removeprefix(".") for name in self._files.names(self._folder) if is_page(name)
        )
        self._begins = tuple(sorted(int(each or 0) for each in found))

    def _path(self, begin: int) -> Path:
        return self._folder / (shim.LOG if begin == 0 else f"{shim.LOG}.{begin:020d}")


def is_page(name: str) -> bool:
    """Tell whether a file is one of a log's."""
    return name == shim.LOG or (name.startswith(f"{shim.LOG}.") and name[len(shim.LOG) + 1 :].isdecimal())
