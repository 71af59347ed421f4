"""The records of TensorBoard's event files: their lengths and checksums.

The files are hostile: their author chose every length. A record is read only if its length has the right checksum and
is at most `MOST_RECORD`; larger ones (images, graphs) are skipped. A file that is still being written ends in the
middle of a record: reading stops there and goes on later from the same offset.
"""

import struct
import threading
from typing import BinaryIO

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
# Of a larger record only the length is read. A record with a thousand scalars has 50 KB.
MOST_RECORD = 4 << 20


class CorruptRecord(ValueError):
    """The bytes are not what the format demands."""


def _tables() -> tuple[list[int], list[int]]:
    """Return the CRC-32C of each byte, and of each pair of bytes."""
    one = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        one.append(crc)
    two = []
    for pair in range(65536):
        crc = one[pair & 0xFF] ^ (pair >> 8)
        two.append(one[crc & 0xFF] ^ (crc >> 8))
    return one, two


_ONE, _TWO = _tables()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C."""
    crc, two = 0xFFFFFFFF, _TWO
    even = len(data) & ~1
    for pair in struct.unpack(f"<{even // 2}H", data[:even]):
        crc = two[(crc ^ pair) & 0xFFFF] ^ (crc >> 16)
    if even < len(data):
        crc = _ONE[(crc ^ data[-1]) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


# For each of the four bytes of a checksum, the lowest one first: the shares of all 256 values.
Shares = tuple[bytes, bytes, bytes, bytes]


def _shares_of(numbers: list[int]) -> Shares:
    first, second, third, fourth = (bytes(number >> shift & 0xFF for number in numbers) for shift in (0, 8, 16, 24))
    return first, second, third, fourth


# By the distance from the end of the data; made when they are needed.
_SHARES = [_shares_of(_ONE)]
_SHARES_LOCK = threading.Lock()


def crc_shares(distance: int) -> Shares:
    """Return how a byte changes the CRC-32C where a zero would stand, so far before the last byte of the data.

    The changes by several bytes are combined by exclusive or.
    """
    with _SHARES_LOCK:
        while len(_SHARES) <= distance:
            numbers = [int.from_bytes(parts, "little") for parts in zip(*_SHARES[-1], strict=True)]
            _SHARES.append(_shares_of([_ONE[number & 0xFF] ^ (number >> 8) for number in numbers]))
        return _SHARES[distance]


def masked(crc: int) -> int:
    """Return a CRC-32C as the record format stores it: rotated and shifted."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """Return the checksum of the record format."""
    return masked(crc32c(data))


def next_record(stream: BinaryIO, offset: int) -> tuple[int, bytes] | None:
    """Return where the record at an offset ends, with its data and their checksum; None if it is not complete.

    The stream is at the offset, and at the end afterwards. The data of a skipped record are empty. The caller compares
    the checksum of the data, since that takes most of the time. Raise CorruptRecord if the length is damaged.
    """
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    length, checksum = HEADER.unpack(head)
    if masked_crc(head[:8]) != checksum:
        raise CorruptRecord(f"offset {offset}: the checksum of a record's length is wrong")
    end = offset + HEADER.size + length + FOOTER.size
    if length > MOST_RECORD:
        if end > stream.seek(0, 2):
            return None
        stream.seek(end)
        return end, b""
    body = stream.read(length + FOOTER.size)
    return (end, body) if len(body) == length + FOOTER.size else None
