"""Batches whose every byte follows from their number; as a program, writes them to a log and says when each is safe."""

import random
import sys
from pathlib import Path

from paceline.store.backend import Op, Record
from paceline.store.sqlite import SqliteLog

KEYS = 7


def batch(number: int, *, size: int = 3, length: int = 300) -> tuple[Record, ...]:
    """Give batch `number` (from 1): `size` records, each of which replaces an earlier one or is new."""
    return tuple(_record((number - 1) * size + each, length) for each in range(1, size + 1))


def _record(revision: int, length: int) -> Record:
    dice = random.Random(revision)
    is_first = revision <= KEYS
    return Record(
        revision=revision,
        key=f"/core/pods/default/{(revision - 1) % KEYS}",
        op=Op.CREATE if is_first else Op.REPLACE,
        value=dice.randbytes(dice.randrange(length, 2 * length)),
        created=(revision - 1) % KEYS + 1,
    )


def main() -> None:
    log = SqliteLog(Path(sys.argv[1]))
    number = log.open() // 3
    while True:
        number += 1
        log.append(batch(number))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
