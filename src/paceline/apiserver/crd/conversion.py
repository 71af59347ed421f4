"""Objects of a kind that has several versions: stored in the one they were written in, read in the one asked for."""

import orjson

from paceline.apimachinery.scheme import Resource


def in_version(resource: Resource, value: bytes) -> bytes:
    """Give stored bytes as an object of the version that was asked for; nothing but apiVersion differs."""
    if not resource.is_shared or value.startswith(_head(resource)):
        return value
    return orjson.dumps({**orjson.loads(value), "apiVersion": resource.api_version})


def _head(resource: Resource) -> bytes:
    # How every stored object begins, so that the usual case costs a comparison.
    return b'{"apiVersion":"%b",' % resource.api_version.encode()
