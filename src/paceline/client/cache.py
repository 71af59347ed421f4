"""Objects as they were last seen, by key, by owner and by whatever else, and who is told when they change."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from paceline.apimachinery.meta import Key, Object, controller_of, key_of, revision_of, uid_of
from paceline.client.interface import Change

# Told (change, old, new): `old` is None for ADDED, `new` is None for DELETED. Must not block or change either.
Handler = Callable[[Change, Object | None, Object | None], None]
# The words under which an object is found in an index.
Words = Callable[[Object], Iterable[Hashable]]

OWNER = "owner"


class Cache(Mapping[Key, Object]):
    """The objects of one collection. Readers get the objects themselves and must not change them."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._words: dict[str, Words] = {}
        self._found: dict[tuple[str, Hashable], dict[Key, Object]] = {}
        self.index(OWNER, _owner_uid)
        self._handlers: list[Handler] = []

    def __getitem__(self, key: Key) -> Object:
        return self._objects[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def owned(self, uid: str) -> tuple[Object, ...]:
        """Return the objects whose controller has this uid."""
        return self.having(OWNER, uid)

    def index(self, name: str, key_function: Words) -> None:
        """Have objects found by words of theirs, in no order; asked for before the first object comes in."""
        self._words[name] = key_function

    def having(self, name: str, word: Hashable) -> tuple[Object, ...]:
        """Return the objects that an index has under a word."""
        return tuple(self._found.get((name, word), {}).values())

    def count(self, name: str, word: Hashable) -> int:
        """Count the objects that an index has under a word."""
        return len(self._found.get((name, word), ()))

    def listen(self, handler: Handler) -> None:
        """Tell a handler of every later change; what is there already is told at once, as added."""
        self._handlers.append(handler)
        for obj in tuple(self._objects.values()):
            handler(Change.ADDED, None, obj)

    def offer(self, obj: Object) -> None:
        """Take an object in unless what is there is as new or newer."""
        old = self._objects.get(key_of(obj))
        if old is None or not is_known_order(obj, old) or is_later(revision_of(obj), revision_of(old)):
            self.accept(obj)

    def accept(self, obj: Object) -> None:
        """Take an object in, whatever was there; the very same one again changes nothing."""
        key, obj = key_of(obj), _lean(obj)
        old = self._objects.get(key)
        if old is not None and uid_of(old) != uid_of(obj):
            # Another object by the same name: whoever cared for the first must learn that it went.
            self.drop(key)
            old = None
        if old is not None and revision_of(old) == revision_of(obj):
            return
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        for name, key_function in self._words.items():
            for word in key_function(obj):
                self._found.setdefault((name, word), {})[key] = obj
        self._tell(Change.MODIFIED if old is not None else Change.ADDED, old, obj)

    def drop(self, key: Key, last: Object | None = None) -> None:
        """Take an object out, if it is there; `last` is its last form, where that is known."""
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._unindex(key, old)
        self._tell(Change.DELETED, last or old, None)

    def _unindex(self, key: Key, old: Object) -> None:
        for name, key_function in self._words.items():
            for word in key_function(old):
                mates = self._found[name, word]
                del mates[key]
                if not mates:
                    del self._found[name, word]

    def _tell(self, change: Change, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(change, old, new)


def _owner_uid(obj: Object) -> tuple[str, ...]:
    owner = controller_of(obj)
    return () if owner is None else (str(owner.get("uid")),)


def is_later(revision: str, than: str) -> bool:
    """Return whether a revision is known to come after another; revisions that are no numbers cannot be told."""
    return revision.isdigit() and than.isdigit() and int(revision) > int(than)


def _lean(obj: Object) -> Object:
    """Leave out who owns which field: it is half of an object, and nobody here asks."""
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def is_known_order(one: Object, other: Object) -> bool:
    """Return whether it can be said which of two forms of an object is newer."""
    first, second = revision_of(one), revision_of(other)
    return first == second or (first.isdigit() and second.isdigit())
