"""Migration of a spec from an older shape to the current one, with the moves made and warnings for the author.

T9k never changed the version of its kinds, so an object's shape tells its generation. Objects are stored as written;
every reader goes through this module. What only one kind has is migrated in the module of that kind.

In     an object as written, of any shape.
Out    an object in the current shape, and the path at which each part of it was written.
Never  changes the object passed in, nor rejects a malformed one: the check reports what is wrong with it.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from paceline.apimachinery.meta import Object

Step = str | int
Path = tuple[Step, ...]


class _Missing:
    """Type of MISSING. None cannot stand for a missing value: a field may be null."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A part of the spec that was moved: its path as written, and in the current shape."""

    old: Path
    new: Path


@dataclass(slots=True, kw_only=True)
class Migration:
    """A spec that is being migrated; it is copied once, at the first change."""

    kind: str
    obj: Object
    moves: list[Move] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _is_copied: bool = False

    def get(self, *path: Step) -> Any:
        """Return the value at a path of the object, or MISSING."""
        value: Any = self.obj
        for step in path:
            value = _below(value, step)
            if value is MISSING:
                break
        return value

    def has(self, *path: Step) -> bool:
        """Return whether the object has a value at a path."""
        return self.get(*path) is not MISSING

    def count(self, *path: Step) -> int:
        """Return the length of the list at a path; 0 if it is not a list."""
        items = self.get(*path)
        return len(items) if isinstance(items, list) else 0

    def put(self, path: Path, value: Any) -> None:
        """Set the value at a path and create missing parents; do nothing if a parent is not an object or list."""
        self._copy_once()
        target: Any = self.obj
        for step, following in pairwise(path):
            child = _below(target, step)
            if child is MISSING or child is None:
                if not isinstance(target, dict):
                    return
                child = target[str(step)] = [] if isinstance(following, int) else {}
            target = child
        _set(target, path[-1], value)

    def drop(self, *path: Step) -> None:
        """Remove the value at a path, if there is one."""
        if self.has(*path):
            self._copy_once()
            self.get(*path[:-1]).pop(path[-1])

    def move(self, old: Path, new: Path, *, message: str = "") -> None:
        """Move a value from an old path to the current one, and warn. If both are set, the current one wins."""
        value = self.get(*old)
        if value is MISSING:
            return
        if self.has(*new):
            self.tell(old, f"is ignored: it is the old form of {write(new)}, which is also set")
        else:
            self.tell(old, message or f"is the old form of {write(new)}")
            self.put(new, value)
            self.moves.append(Move(old=old, new=new))
        self.drop(*old)

    def tell(self, path: Path, text: str) -> None:
        """Add a warning about a path, which is shown as the author wrote it."""
        self.warnings.append(f"{write(self.written(path))} {text}")

    def written(self, path: Path) -> Path:
        """Return the path at which the author wrote a part of the current shape."""
        for move in self.moves:
            if path[: len(move.new)] == move.new:
                return (*move.old, *path[len(move.new) :])
        return path

    def _copy_once(self) -> None:
        if not self._is_copied:
            self.obj = {**self.obj, "spec": deepcopy(self.obj.get("spec"))}
            self._is_copied = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """An object in the current shape, with the moves from the shape that its author wrote."""

    obj: Object
    moves: tuple[Move, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_written(self, path: str) -> str:
        """Return the path that the author wrote for a path of the current shape; the innermost move wins."""
        for move in sorted(self.moves, key=lambda move: -len(move.new)):
            new = write(move.new)
            if path == new or path.startswith((f"{new}.", f"{new}[")):
                return write(move.old) + path.removeprefix(new)
        return path


def write(path: Path) -> str:
    """Return a path in the format of messages: `spec.replicaSpecs[0].type`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


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


# Objects that had a field `enable` until 2023; it is `enabled` now.
SWITCHED: tuple[Path, ...] = (
    ("spec", "runMode", "debug"),
    ("spec", "runMode", "pause"),
    ("spec", "elastic"),
    ("spec", "torchrunConfig"),
)
CLEAN_UP: tuple[Path, ...] = (("spec", "runPolicy", "cleanUpPolicy"), ("spec", "cleanUpPolicy"))
CLEAN_UPS = ("None", "All", "Unfinished")
NO_EFFECT = "has no effect: containers are not restarted in place; the replica's own restartPolicy creates new pods"


def normalise(obj: Object, *, kind: str, alias_of: str, migrate: Callable[[Migration], None]) -> Normalized:
    """Return an object in the current shape, with the path of each moved part and warnings for its author."""
    draft = Migration(kind=alias_of or kind, obj=obj)
    if alias_of:
        draft.obj = {**obj, "kind": alias_of}
        draft.warnings.append(f"kind {kind} is an old name for {alias_of}")
    if isinstance(obj.get("spec"), dict):
        migrate(draft)
        _switches(draft)
        _clean_up(draft)
        _pod_restarts(draft)
    return Normalized(obj=draft.obj, moves=tuple(draft.moves), warnings=tuple(draft.warnings))


def _switches(draft: Migration) -> None:
    for path in SWITCHED:
        draft.move((*path, "enable"), (*path, "enabled"))


def _clean_up(draft: Migration) -> None:
    for path in CLEAN_UP:
        written = draft.get(*path)
        if isinstance(written, str) and written not in CLEAN_UPS and written.capitalize() in CLEAN_UPS:
            draft.tell(path, f'"{written}" is the old spelling of "{written.capitalize()}"')
            draft.put(path, written.capitalize())


def _pod_restarts(draft: Migration) -> None:
    replicas: list[Path] = [("spec", "replicaSpecs", index) for index in range(draft.count("spec", "replicaSpecs"))]
    for replica in (*replicas, ("spec", "worker")):
        path = (*replica, "template", "spec", "restartPolicy")
        if draft.has(*path):
            draft.tell(path, NO_EFFECT)
