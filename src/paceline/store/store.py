"""The store: durable writes with optimistic locking, reads from memory, and watches."""

from contextlib import ExitStack

from paceline.effects import Executor
from paceline.errors import HostError
from paceline.store.backend import DEFAULTS, Index, Log, Op, Stored, StoreLimits
from paceline.store.group_commit import Render, Writer
from paceline.store.watch_hub import Watch, WatchHub

__all__ = ["Render", "Store", "Stored"]


class Store:
    """All objects of a cluster, on top of a durable log.

    Between two awaits of a caller, `revision`, `get`, `list` and the start of a `watch` see one state.
    """

    def __init__(self, log: Log, blocking: Executor, *, limits: StoreLimits = DEFAULTS) -> None:
        self._log = log
        self._blocking = blocking
        self._state = Index()
        self._feed = WatchHub(limits)
        self._writer = Writer(log, blocking, state=self._state, feed=self._feed, limits=limits)

    async def open(self) -> None:
        """Lock and load the log; raise HostError if that is not possible."""
        await self._blocking.run(self._load)

    def _load(self) -> None:
        with ExitStack() as undo:
            revision = self._log.open()
            undo.callback(self._log.close)
            compacted, current = self._log.compacted(), tuple(self._log.current())
            # A record that is both current and in the history is kept in memory once.
            same = {record.revision: record for record in current}
            history = tuple(same.get(record.revision, record) for record in self._log.since(compacted))
            undo.pop_all()
        self._state.load(current)
        self._feed.load(history, floor=compacted, revision=revision)
        self._writer.begin(compacted)

    async def run(self) -> None:
        """Process writes until cancelled; those that are then still queued fail with ServiceUnavailable."""
        await self._writer.run()

    async def close(self) -> None:
        """End all watches, reject further writes and close the log."""
        self._writer.stop()
        self._feed.close()
        await self._blocking.run(self._log.close)

    @property
    def failure(self) -> HostError | None:
        """The error that prevents all writes until the store is opened again; None if there is none."""
        return self._writer.failure

    async def failed(self) -> HostError:
        """Wait until an error prevents all writes, and return it."""
        return await self._writer.failed()

    @property
    def revision(self) -> int:
        """The revision of the newest durable write."""
        return self._feed.revision

    def get(self, key: str) -> Stored | None:
        """Return the value of a key, or None."""
        return self._state.get(key)

    def list(self, prefix: str) -> tuple[Stored, ...]:
        """Return all values whose key starts with a prefix, sorted by key."""
        return self._state.under(prefix)

    def list_at(self, prefix: str, revision: int) -> tuple[Stored, ...]:
        """Return the values of a prefix at a revision; raise Expired if it is too old, Ahead if it is in the future."""
        return self._feed.undo(prefix, revision, self._state.under(prefix))

    def watch(self, prefix: str, since: int) -> Watch:
        """Return a watch on a prefix after a revision; raise Expired if it is too old, Ahead if it is in the future."""
        return self._feed.watch(prefix, since)

    async def create(self, key: str, render: Render) -> Stored:
        """Store a new key; raise AlreadyExists if it already exists."""
        return await self._writer.write(Op.CREATE, key, render=render)

    async def replace(self, key: str, render: Render, *, expected: int, urgent: bool = False) -> Stored:
        """Replace the value of a key at the expected revision; raise Conflict or NotFound otherwise.

        An urgent write, which is part of a deletion, succeeds on a full disk, as deletes do.
        """
        return await self._writer.write(Op.REPLACE, key, render=render, expected=expected, urgent=urgent)

    async def delete(self, key: str, render: Render, *, expected: int | None) -> Stored:
        """Delete a key, at the expected revision if one is given, and return its last value."""
        return await self._writer.write(Op.DELETE, key, render=render, expected=expected, urgent=True)
