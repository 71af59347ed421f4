"""The hashes that hold records together: a sum for each row, a chain over the log, a total over what is current.

A sum tells that a row has changed, the chain that one is missing, twice there or out of order, and the total that what
is current is what the log has led to.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

HASH_BYTES = 16
COUNT_BYTES = 8
START = bytes(HASH_BYTES)

_WRAP = 1 << (8 * HASH_BYTES)

# What names a record: revision, key, op, created.
Named = tuple[int, str, str, int]


def sum_of(named: Named, value: bytes) -> bytes:
    """Give the sum of a row."""
    digest = blake2b(repr(named).encode(), digest_size=HASH_BYTES)
    digest.update(value)
    return digest.digest()


def link(chain: bytes, *parts: bytes) -> bytes:
    """Give the chain after one more row, from the chain before it."""
    return blake2b(chain + b"".join(parts), digest_size=HASH_BYTES).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sums of a set of rows, added up: rows come and go in any order, and each costs the same."""

    count: int = 0
    added: int = 0

    def change(self, *, gone: Iterable[bytes], come: Iterable[bytes]) -> "Total":
        """Give the total without some rows and with others."""
        count, added = self.count, self.added
        for each in gone:
            count -= 1
            added -= int.from_bytes(each)
        for each in come:
            count += 1
            added += int.from_bytes(each)
        return Total(count=count, added=added % _WRAP)

    def to_bytes(self) -> bytes:
        """Write it as it stands in the file."""
        return self.count.to_bytes(COUNT_BYTES, signed=True) + self.added.to_bytes(HASH_BYTES)

    @classmethod
    def of(cls, written: bytes) -> "Total":
        """Read what stands in the file."""
        return cls(
            count=int.from_bytes(written[:COUNT_BYTES], signed=True), added=int.from_bytes(written[COUNT_BYTES:])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far a log has come."""

    revision: int
    chain: bytes
    # None in the middle of a batch: only its end is a state that was ever current.
    total: Total | None


NEW = Head(revision=0, chain=START, total=Total())


def sum_of_head(head: Head) -> bytes:
    """Give the sum of the row that says where the kept log begins."""
    total = head.total.to_bytes() if head.total else b""
    return link(head.chain, repr(head.revision).encode(), total)


def chained(head: Head, sums: Iterable[bytes], total: Total) -> list[bytes]:
    """Give the chain at each row of a batch that follows a head; the last row also vouches for the total."""
    chain = head.chain
    chains = [chain := link(chain, each) for each in sums]
    chains[-1] = link(chains[-1], total.to_bytes())
    return chains
