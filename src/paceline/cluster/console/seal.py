"""Encryption of the console's cookies, and its key."""

import os
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from paceline.effects import Effects

NONCE_BYTES, KEY_BYTES = 12, 32


class AesSeal:
    """AES-256-GCM with a random nonce, and the purpose as associated data; implements `console.config.Seal`."""

    def __init__(self, secret: bytes, store: Callable[[bytes], None] | None = None) -> None:
        self._cipher = _cipher(secret)
        self._store = store

    def seal(self, data: bytes, purpose: bytes) -> bytes:
        """Return the nonce and the encrypted data."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, purpose)

    def open(self, sealed: bytes, purpose: bytes) -> bytes | None:
        """Return the data; None if it was changed, or sealed with another key or for another purpose."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], purpose)
        except (InvalidTag, ValueError):
            return None

    def renew(self) -> None:
        """Replace the key, in its file first."""
        secret = os.urandom(KEY_BYTES)
        if self._store is not None:
            self._store(secret)
        self._cipher = _cipher(secret)


def seal_of(path: Path, world: Effects) -> AesSeal:
    """Return the seal with the key of a file, which is created at the first start; only its owner can read it."""
    store = partial(world.files.write, path)
    try:
        secret = world.files.read(path)
    except FileNotFoundError:
        secret = os.urandom(KEY_BYTES)
        world.files.make_folder(path.parent)
        store(secret)
    return AesSeal(secret, store)


def _cipher(secret: bytes) -> AESGCM:
    return AESGCM(sha256(b"paceline console\0" + secret).digest())
