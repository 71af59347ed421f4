"""Old names and shapes turned into today's, the same for every kind; a kind's own old shapes lie in its file.

T9k never changed the version of its kinds, so the generations are told apart by shape. Objects are stored as written;
whoever reads one reads it through here.
"""

from paceline.kinds.draft import Draft, Path, Today
from paceline.kinds.kind import JobKind, ServiceKind
from paceline.objects.meta import Object

# Parts that were switched on by `enable` until 2023.
SWITCHED: tuple[Path, ...] = (
    ("spec", "runMode", "debug"),
    ("spec", "runMode", "pause"),
    ("spec", "elastic"),
    ("spec", "torchrunConfig"),
)
CLEAN_UP: tuple[Path, ...] = (("spec", "runPolicy", "cleanUpPolicy"), ("spec", "cleanUpPolicy"))
CLEAN_UPS = ("None", "All", "Unfinished")
NO_EFFECT = "has no effect: pods are never restarted in place, replicas are tried again by the job's own restartPolicy"


def normalise(kind: JobKind | ServiceKind, obj: Object) -> Today:
    """Give an object of a kind in today's shape, where each part was written, and what its author should know."""
    draft = Draft(kind=kind.alias_of or kind.kind, obj=obj)
    if kind.alias_of:
        draft.obj = {**obj, "kind": kind.alias_of}
        draft.said.append(f"kind {kind.kind} is an old name of {kind.alias_of}")
    if isinstance(obj.get("spec"), dict):
        kind.modernise(draft)
        _switches(draft)
        _clean_up(draft)
        _pod_restarts(draft)
    return Today(obj=draft.obj, moves=tuple(draft.moves), warnings=tuple(draft.said))


def _switches(draft: Draft) -> None:
    for path in SWITCHED:
        draft.move((*path, "enable"), (*path, "enabled"))


def _clean_up(draft: Draft) -> None:
    for path in CLEAN_UP:
        written = draft.get(*path)
        if isinstance(written, str) and written not in CLEAN_UPS and written.capitalize() in CLEAN_UPS:
            draft.tell(path, f'"{written}" is the old spelling of "{written.capitalize()}"')
            draft.put(path, written.capitalize())


def _pod_restarts(draft: Draft) -> None:
    places: list[Path] = [("spec", "replicaSpecs", index) for index in range(draft.count("spec", "replicaSpecs"))]
    for place in (*places, ("spec", "worker")):
        path = (*place, "template", "spec", "restartPolicy")
        if draft.has(*path):
            draft.tell(path, NO_EFFECT)
