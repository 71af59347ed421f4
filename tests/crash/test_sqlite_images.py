"""The disk as a crash leaves it: whatever was acknowledged is there, whole and in order, and nothing else is served.

An image is the database and its write-ahead log as they may be found after the power went: synced bytes are there, of
the others any part.
"""

import random
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from paceline.errors import HostError
from paceline.store.sqlite import SqliteLog
from tests.crash.batches import batch

BATCHES = 12
PAGE = 4096
# Batches so large that the write-ahead log is brought home (at 2,000 pages) within a few of them.
LARGE = {"size": 3, "length": 300_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The bytes of a database and of its write-ahead log at one moment."""

    database: bytes
    wal: bytes

    def put(self, folder: Path) -> Path:
        """Lay the image out as a crash would have left it."""
        path = folder / "objects.db"
        for old in folder.glob("objects.db*"):
            old.unlink()
        path.write_bytes(self.database)
        path.with_name("objects.db-wal").write_bytes(self.wal)
        return path


def image_of(path: Path) -> Image:
    wal = path.with_name("objects.db-wal")
    return Image(database=path.read_bytes(), wal=wal.read_bytes() if wal.exists() else b"")


def written(path: Path, count: int, **shape: int) -> list[Image]:
    """Write batches and take an image at each acknowledgement; the first one is of the empty log."""
    with closing(SqliteLog(path)) as log:
        log.open()
        images = [image_of(path)]
        for number in range(1, count + 1):
            log.append(batch(number, **shape))
            images.append(image_of(path))
    return images


def read(path: Path) -> tuple:
    """Open an image and read all of it: the history, and what is current."""
    with closing(SqliteLog(path)) as log:
        last = log.open()
        history = tuple(log.since(0))
        current = tuple(log.current())
    assert last == (history[-1].revision if history else 0)
    newest = {record.key: record for record in history}
    assert current == tuple(sorted(newest.values(), key=lambda record: record.revision))
    return history


def holds(path: Path, *counts: int, **shape: int) -> bool:
    """Tell whether an image holds exactly the first so-many batches, for one of the counts."""
    found = read(path)
    wholes = {count: sum((batch(number, **shape) for number in range(1, count + 1)), ()) for count in counts}
    return found in wholes.values()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return written(tmp_path_factory.mktemp("written") / "objects.db", BATCHES)


def lengths(start: int, end: int, dice: random.Random) -> list[int]:
    """Lengths between two acknowledgements: the ends, page borders and their neighbours, and some more."""
    borders = [at for border in range(start, end, PAGE + 24) for at in (border, border + 24, border + PAGE + 23)]
    some = [dice.randrange(start, end) for _ in range(3)]
    return sorted({start, end, end - 1, *(at for at in borders if at <= end), *some})


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_write_ahead_log_cut_anywhere_holds_what_was_acknowledged(images, number, tmp_path):
    before, after = images[number], images[number + 1]
    assert len(before.wal) < len(after.wal)
    for length in lengths(len(before.wal), len(after.wal), random.Random(number)):
        path = Image(database=before.database, wal=after.wal[:length]).put(tmp_path)
        is_whole = length == len(after.wal)
        assert holds(path, number + 1 if is_whole else number), f"cut at {length} of {len(after.wal)}"


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_torn_last_batch_is_as_good_as_none(images, number, tmp_path):
    dice = random.Random(number)
    before, after = images[number], images[number + 1]
    start, end = len(before.wal), len(after.wal)
    for _ in range(4):
        torn = bytearray(after.wal)
        first, last = sorted(dice.sample(range(start, end), 2))
        torn[first : last + 1] = dice.randbytes(last + 1 - first)
        path = Image(database=before.database, wal=bytes(torn)).put(tmp_path)
        # Garbage in the last frame's spare bytes may leave the batch whole; never is there a part of it.
        assert holds(path, number, number + 1), f"garbage from {first} to {last} of {end}"


def test_what_was_cut_off_is_written_anew(images, tmp_path):
    """The log goes on after a crash, over whatever the crash has left."""
    cut = Image(database=images[5].database, wal=images[6].wal[:-1]).put(tmp_path)
    with closing(SqliteLog(cut)) as log:
        log.open()
        log.append(batch(6))
    assert holds(cut, 6)


@pytest.fixture(scope="module")
def homecoming(tmp_path_factory):
    """Images around the moment at which the write-ahead log is brought home, and the number of the last before it."""
    images = written(tmp_path_factory.mktemp("homecoming") / "objects.db", 10, **LARGE)
    grown = [len(images[n].database) < len(images[n + 1].database) for n in range(10)]
    number = grown.index(True)
    return images, number


@pytest.mark.timeout(120)
def test_a_homecoming_that_was_cut_short_loses_nothing(homecoming, tmp_path):
    """Of the pages that were on their way into the database, any may have arrived."""
    images, number = homecoming
    old, new = images[number].database, images[number + 1]
    for seed in range(4):
        dice = random.Random(seed)
        pages = [
            (new.database if dice.random() < seed / 3 else old.ljust(len(new.database), b"\0"))[at : at + PAGE]
            for at in range(0, len(new.database), PAGE)
        ]
        path = Image(database=b"".join(pages), wal=new.wal).put(tmp_path)
        assert holds(path, number + 1, **LARGE)


@pytest.mark.timeout(120)
def test_a_write_ahead_log_that_begins_anew_loses_nothing(homecoming, tmp_path):
    """After a homecoming new frames are written over old ones, whose remains must not come back."""
    images, number = homecoming
    before, after = images[number + 1], images[number + 2]
    assert before.wal[:32] != after.wal[:32], "the write-ahead log did not begin anew"
    dice = random.Random(1)
    borders = range(0, len(after.wal), PAGE)
    changed = max(at for at in borders if before.wal[at : at + PAGE] != after.wal[at : at + PAGE])
    for length in (0, 16, 32, PAGE, *(dice.randrange(changed) for _ in range(4))):
        wal = after.wal[:length] + before.wal[length:]
        path = Image(database=before.database, wal=wal).put(tmp_path)
        assert holds(path, number + 1, **LARGE), f"the first {length} of {changed} bytes may be new"
    path = Image(database=before.database, wal=after.wal).put(tmp_path)
    assert holds(path, number + 2, **LARGE)


def flipped(image: bytes, at: int) -> bytes:
    return image[:at] + bytes([image[at] ^ 0x10]) + image[at + 1 :]


def is_noticed(path: Path) -> bool:
    """Tell whether a damaged image is refused; one that is served must be served as it was written."""
    try:
        found = read(path)
    except HostError:
        return True
    assert found == sum((batch(number) for number in range(1, BATCHES + 1)), ())
    return False


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_noticed_or_harmless(images, seed, tmp_path):
    path = images[-1].put(tmp_path)
    with closing(SqliteLog(path)) as log:
        log.open()
    # Closed in order: everything has come home.
    whole = path.read_bytes()
    dice = random.Random(seed)
    spots = [dice.randrange(len(whole)) for _ in range(40)]
    noticed = [is_noticed(Image(database=flipped(whole, at), wal=b"").put(tmp_path)) for at in spots]
    assert any(noticed)


def kills(count: int, path: Path) -> None:
    """Kill a program that writes, again and again, and look at what it has left each time."""
    acknowledged = 0
    for seed in range(count):
        dice = random.Random(seed)
        command = [sys.executable, "-m", "tests.crash.batches", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(dice.randrange(1, 60)):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            # What it said before it died counts too.
            said = writer.stdout.read().rpartition("\n")[0].split()
            acknowledged = int(said[-1]) if said else acknowledged
        assert holds(path, acknowledged, acknowledged + 1), f"kill {seed}, after {acknowledged} batches"
        acknowledged = read(path)[-1].revision // 3


@pytest.mark.timeout(120)
def test_a_killed_writer_leaves_whole_batches(tmp_path):
    kills(4, tmp_path / "objects.db")


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_writer_killed_often_leaves_whole_batches(tmp_path):
    kills(100, tmp_path / "objects.db")
