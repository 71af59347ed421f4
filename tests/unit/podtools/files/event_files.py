"""Write event files as TensorFlow and PyTorch do."""

import struct

from paceline.podtools.files.event_records import masked_crc


def varint(number):
    data = b""
    number &= (1 << 64) - 1
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def block(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def simple(tag, value):
    """A value as PyTorch writes it."""
    return block(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(tag, value, *, has_metadata=True, form="f"):
    """A value as TensorFlow 2 writes it; only the first one of a tag has metadata."""
    kinds = {"f": 1, "d": 2, "q": 9}
    content = block(4, struct.pack(f"<{form}", value))
    message = block(1, tag.encode()) + block(8, varint(1 << 3) + varint(kinds[form]) + content)
    return message + (block(9, block(1, block(1, b"scalars"))) if has_metadata else b"")


def event(step, *values, time=1_700_000_000.0, other=b""):
    data = varint(1 << 3 | 1) + struct.pack("<d", time) + varint(2 << 3) + varint(step) + other
    return data + (block(5, b"".join(block(1, value) for value in values)) if values else b"")


def start(step):
    """The record of a training that starts again at a step."""
    return event(step, other=block(7, varint(1 << 3) + varint(1)))


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


VERSION = record(event(0, other=block(3, b"brain.Event:2")))


def event_file(*events):
    return VERSION + b"".join(map(record, events))
