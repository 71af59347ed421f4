"""Checksums of the store: a sum for each row, a hash chain over the log, and a total over the current rows.

The sum detects a changed row, the chain a missing, repeated or reordered row of the log, and the total current rows
that do not result from the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

HASH_BYTES = 16
COUNT_BYTES = 8
START = bytes(HASH_BYTES)

_WRAP = 1 << (8 * HASH_BYTES)

# Identity of a record: revision, key, op, created.
RecordIdentity = tuple[int, str, str, int]


def sum_of(identity: RecordIdentity, value: bytes) -> bytes:
    """Return the checksum of a row."""
    digest = blake2b(repr(identity).encode(), digest_size=HASH_BYTES)
    digest.update(value)
    return digest.digest()


def link(chain: bytes, *parts: bytes) -> bytes:
    """Return the hash chain extended by one row."""
    return blake2b(chain + b"".join(parts), digest_size=HASH_BYTES).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sum of the checksums of a set of rows; adding or removing a row takes constant time, in any order."""

    count: int = 0
    added: int = 0

    def change(self, *, gone: Iterable[bytes], come: Iterable[bytes]) -> "Total":
        """Return the total without the checksums `gone`, and with those in `come`."""
        count, added = self.count, self.added
        for checksum in gone:
            count -= 1
            added -= int.from_bytes(checksum)
        for checksum in come:
            count += 1
            added += int.from_bytes(checksum)
        return Total(count=count, added=added % _WRAP)

    def to_bytes(self) -> bytes:
        """Return the total as stored in the file."""
        return self.count.to_bytes(COUNT_BYTES, signed=True) + self.added.to_bytes(HASH_BYTES)

    @classmethod
    def of(cls, stored: bytes) -> "Total":
        """Return the total that is stored in the file."""
        return cls(count=int.from_bytes(stored[:COUNT_BYTES], signed=True), added=int.from_bytes(stored[COUNT_BYTES:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogHead:
    """The end of a log: its last revision, the chain there, and the total."""

    revision: int
    chain: bytes
    # None inside a batch: only the state at its end was ever current.
    total: Total | None


NEW = LogHead(revision=0, chain=START, total=Total())


def sum_of_head(head: LogHead) -> bytes:
    """Return the checksum of the row that stores where the log begins."""
    total = head.total.to_bytes() if head.total else b""
    return link(head.chain, repr(head.revision).encode(), total)


def chained(head: LogHead, sums: Iterable[bytes], total: Total) -> list[bytes]:
    """Return the chain at each row of a batch after a head; the last one also covers the total."""
    chain = head.chain
    chains = [chain := link(chain, checksum) for checksum in sums]
    chains[-1] = link(chains[-1], total.to_bytes())
    return chains
