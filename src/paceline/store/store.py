"""The store: guarded writes that last, reads from memory, and a feed of what changed."""

from contextlib import ExitStack
from dataclasses import dataclass

from paceline.errors import Unavailable
from paceline.store.feed import Feed, Watch
from paceline.store.limits import DEFAULTS, Limits
from paceline.store.log import Log, Op, Record
from paceline.store.state import State, Stored
from paceline.store.writer import Render, Writer
from paceline.world import Blocking

__all__ = ["Render", "Store", "Stored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a log held when it was opened."""

    revision: int
    compacted: int
    current: tuple[Record, ...]
    history: tuple[Record, ...]


class Store:
    """Every object of a cluster, over a log that survives it.

    Between two awaits of a caller, `revision`, `get`, `list` and the start of a `watch` see one state.
    """

    def __init__(self, log: Log, blocking: Blocking, *, limits: Limits = DEFAULTS) -> None:
        self._log = log
        self._blocking = blocking
        self._state = State()
        self._feed = Feed(limits)
        self._writer = Writer(log, blocking, state=self._state, feed=self._feed, limits=limits)

    async def open(self) -> None:
        """Take hold of the log and load what it holds; Unavailable says what stands in the way."""
        loaded = await self._blocking.run(self._load)
        # A record that is both current and history is kept once.
        same = {record.revision: record for record in loaded.current}
        history = (same.get(record.revision, record) for record in loaded.history)
        self._state.load(loaded.current)
        self._feed.load(history, floor=loaded.compacted, revision=loaded.revision)
        self._writer.begin(loaded.compacted)

    def _load(self) -> Loaded:
        with ExitStack() as undo:
            revision = self._log.open()
            undo.callback(self._log.close)
            compacted = self._log.compacted()
            loaded = Loaded(
                revision=revision,
                compacted=compacted,
                current=tuple(self._log.current()),
                history=tuple(self._log.since(compacted)),
            )
            undo.pop_all()
        return loaded

    async def run(self) -> None:
        """Carry out writes until cancelled; those that still wait then are told Busy."""
        await self._writer.run()

    async def close(self) -> None:
        """End all watches, refuse further writes and let go of the log."""
        self._writer.stop()
        self._feed.close()
        await self._blocking.run(self._log.close)

    @property
    def failure(self) -> Unavailable | None:
        """Why nothing can be written any more until the store is opened anew; None while all is well."""
        return self._writer.failure

    async def failed(self) -> Unavailable:
        """Wait until nothing can be written any more, and return why."""
        return await self._writer.failed()

    @property
    def revision(self) -> int:
        """The revision of the newest write that is durable."""
        return self._feed.revision

    def get(self, key: str) -> Stored | None:
        """Read what is under a key."""
        return self._state.get(key)

    def list(self, prefix: str) -> tuple[Stored, ...]:
        """Read everything whose key begins with a prefix, in the order of keys."""
        return self._state.under(prefix)

    def list_at(self, prefix: str, revision: int) -> tuple[Stored, ...]:
        """Read what was under a prefix at a revision; Expired when that is too old, Ahead when it is to come."""
        return self._feed.undo(prefix, revision, self._state.under(prefix))

    def watch(self, prefix: str, since: int) -> Watch:
        """Follow a prefix after a revision; Expired when it is too old, Ahead when it is yet to come."""
        return self._feed.watch(prefix, since)

    async def create(self, key: str, render: Render) -> Stored:
        """Store a new key; Exists when it is there already."""
        return await self._writer.write(Op.CREATE, key, render=render)

    async def replace(self, key: str, render: Render, *, expected: int, urgent: bool = False) -> Stored:
        """Store new bytes under a key that is at the expected revision; else Conflict, or Missing.

        An urgent write, a part of ending something, goes through on a full disk, as deletes do.
        """
        return await self._writer.write(Op.REPLACE, key, render=render, expected=expected, urgent=urgent)

    async def delete(self, key: str, render: Render, *, expected: int | None) -> Stored:
        """Remove a key, guarded if a revision is expected, and give its last bytes."""
        return await self._writer.write(Op.DELETE, key, render=render, expected=expected, urgent=True)
