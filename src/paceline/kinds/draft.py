"""A spec on its way from an old shape into today's: what was moved, and what its author is told.

In     an object as written, of any shape.
Out    an object in today's shape, and where each part of it was written.
Never  changes the object that came in, nor stops at one that is broken: the check names what is wrong with it.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from paceline.objects.meta import Object

Step = str | int
Path = tuple[Step, ...]


class _Missing:
    """What is not there; None may be."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Where something was written, and where it stands today."""

    old: Path
    new: Path


@dataclass(slots=True, kw_only=True)
class Draft:
    """One spec being turned; copied once, at the first change."""

    kind: str
    obj: Object
    moves: list[Move] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _is_own: bool = False

    def get(self, *path: Step) -> Any:
        """Give what stands at a path of the object, or MISSING."""
        found: Any = self.obj
        for step in path:
            found = _below(found, step)
        return found

    def has(self, *path: Step) -> bool:
        """Tell whether something stands at a path."""
        return self.get(*path) is not MISSING

    def count(self, *path: Step) -> int:
        """Count the items of the list at a path; none when it is no list."""
        found = self.get(*path)
        return len(found) if isinstance(found, list) else 0

    def put(self, path: Path, value: Any) -> None:
        """Set what stands at a path; parts on the way are made, and a path through something else leads nowhere."""
        self._own()
        target: Any = self.obj
        for step, following in pairwise(path):
            found = _below(target, step)
            if found is MISSING or found is None:
                if not isinstance(target, dict):
                    return
                found = target[str(step)] = [] if isinstance(following, int) else {}
            target = found
        _set(target, path[-1], value)

    def drop(self, *path: Step) -> None:
        """Take out what stands at a path."""
        if self.has(*path):
            self._own()
            self.get(*path[:-1]).pop(path[-1])

    def move(self, old: Path, new: Path, *, why: str = "") -> None:
        """Turn an old place into today's. When both are written, today's counts."""
        value = self.get(*old)
        if value is MISSING:
            return
        if self.has(*new):
            self.tell(old, f"is the old form of {write(new)}, which is written too and counts")
        else:
            self.tell(old, why or f"is the old form of {write(new)}")
            self.put(new, value)
            self.moves.append(Move(old=old, new=new))
        self.drop(*old)

    def tell(self, path: Path, text: str) -> None:
        """Say something to the author about a path, which is named as they wrote it."""
        self.said.append(f"{write(self.written(path))} {text}")

    def written(self, path: Path) -> Path:
        """Give where a part of today's shape was written."""
        for move in self.moves:
            if path[: len(move.new)] == move.new:
                return (*move.old, *path[len(move.new) :])
        return path

    def _own(self) -> None:
        if not self._is_own:
            self.obj = {**self.obj, "spec": deepcopy(self.obj.get("spec"))}
            self._is_own = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """An object in today's shape, and how its author wrote it."""

    obj: Object
    moves: tuple[Move, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_written(self, path: str) -> str:
        """Turn a path of today's shape into the one its author wrote; the innermost move counts."""
        for move in sorted(self.moves, key=lambda each: -len(each.new)):
            new = write(move.new)
            if path == new or path.startswith((f"{new}.", f"{new}[")):
                return write(move.old) + path.removeprefix(new)
        return path


def write(path: Path) -> str:
    """Write a path the way messages do: `spec.replicaSpecs[0].type`."""
    said = ""
    for step in path:
        said += f"[{step}]" if isinstance(step, int) else f".{step}" if said else step
    return said


def _below(part: Any, step: Step) -> Any:
    if isinstance(part, dict):
        return part.get(step, MISSING)
    if isinstance(part, list) and isinstance(step, int) and step < len(part):
        return part[step]
    return MISSING


def _set(target: Any, step: Step, value: Any) -> None:
    if isinstance(target, dict):
        target[step] = value
    elif isinstance(target, list) and isinstance(step, int):
        if step < len(target):
            target[step] = value
        elif step == len(target):
            target.append(value)
