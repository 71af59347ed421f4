"""Handles that can be taken away: kill -9 means that not even a `finally` has an effect any more."""

from typing import Any


class Killed(BaseException):
    """A component that was killed tried to touch the world. Nothing may catch this."""


class Grip:
    """Passes everything on to what it holds, until it is let go."""

    def __init__(self, obj: object) -> None:
        self._held = obj
        self._is_open = True

    def let_go(self) -> None:
        """Let every later use raise Killed."""
        self._is_open = False

    def __getattr__(self, name: str) -> Any:
        if not self._is_open:
            raise Killed(name)
        return getattr(self._held, name)
