"""Migration of old names and shapes that all kinds share; what only one kind has is migrated in its own module.

T9k never changed the version of its kinds, so an object's shape tells its generation. Objects are stored as written;
every reader goes through this module.
"""

from paceline.apimachinery.meta import Object
from paceline.kinds.compat.migration import Migration, Normalized, Path
from paceline.kinds.kind_types import JobKind, ServiceKind

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


def normalise(kind: JobKind | ServiceKind, obj: Object) -> Normalized:
    """Return an object in the current shape, with the path of each moved part and warnings for its author."""
    draft = Migration(kind=kind.alias_of or kind.kind, obj=obj)
    if kind.alias_of:
        draft.obj = {**obj, "kind": kind.alias_of}
        draft.warnings.append(f"kind {kind.kind} is an old name for {kind.alias_of}")
    if isinstance(obj.get("spec"), dict):
        kind.modernise(draft)
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
