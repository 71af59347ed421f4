"""Who belongs to whom, by uid, as far as it has been seen."""

from typing import NamedTuple

from paceline.apimachinery.meta import Object, uid_of
from paceline.client.interface import Collection
from paceline.plan.garbage_collection import owners_of

# So many ends are remembered; who owned what longer ago is asked of the cluster.
MAX_GONE = 1000


class ObjectRef(NamedTuple):
    """One object of any kind."""

    where: Collection
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it apart from others of its kind."""
        return self.namespace, self.name

    def may_own(self, other: "ObjectRef") -> bool:
        """Return whether it is where an owner may be: beside what it owns, or in no namespace."""
        return self.namespace in {"", other.namespace}


class OwnerGraph:
    """An index of all objects that are followed. What it does not know may still be there."""

    def __init__(self) -> None:
        self._items: dict[str, ObjectRef] = {}
        # Dicts, because their order is certain.
        self._owned: dict[str, dict[ObjectRef, None]] = {}
        self._gone: dict[str, None] = {}

    def note(self, item: ObjectRef, old: Object | None, new: Object | None) -> None:
        """Take in that an object has changed, come or gone out of sight."""
        for owner in owners_of(old):
            self._untie(str(owner.get("uid")), item)
        for owner in owners_of(new):
            self._owned.setdefault(str(owner.get("uid")), {})[item] = None
        if new is not None:
            self._items[uid_of(new)] = item
        elif old is not None:
            self._items.pop(uid_of(old), None)

    def end(self, uid: str) -> None:
        """Remember that an object has gone for good."""
        self._gone[uid] = None
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]

    def has_ended(self, uid: str) -> bool:
        """Return whether an object is known to have gone for good."""
        return uid in self._gone

    def find(self, uid: str) -> ObjectRef | None:
        """Return the object that has this uid, if it has been seen."""
        return self._items.get(uid)

    def owned(self, uid: str) -> tuple[ObjectRef, ...]:
        """Return the objects that name this uid as an owner."""
        return tuple(self._owned.get(uid, ()))

    def _untie(self, uid: str, item: ObjectRef) -> None:
        mates = self._owned.get(uid)
        if mates is not None:
            mates.pop(item, None)
            if not mates:
                del self._owned[uid]
