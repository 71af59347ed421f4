"""What the cluster rejected (a quota, a policy, an invalid template): shown on the object, and tried again rarely."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# A rejected object is created again after this time, or when its owner's spec has changed.
AGAIN = timedelta(seconds=30)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object was rejected, for which generation of its owner, and when to try again."""

    message: str
    generation: int
    until: datetime
    # Whether only pods were rejected: what they need (a Service, a Secret) is there, and is not created again.
    is_prepared: bool = False


class Refusals(Generic[K]):
    """The last refusal of every owner that has one: at most one per owner, dropped with it."""

    def __init__(self) -> None:
        self._refusals: dict[K, Refusal] = {}

    def of(self, key: K, generation: int) -> Refusal | None:
        """Return the refusal of an owner; None if there is none for this generation of its spec."""
        refusal = self._refusals.get(key)
        return refusal if refusal is not None and refusal.generation == generation else None

    def add(self, key: K, message: str, *, generation: int, now: datetime, is_prepared: bool = False) -> bool:
        """Remember a refusal; return False if it is the same again.

        Messages that differ in numbers only are the same: a quota says how much is used, which changes all the time.
        """
        last = self.of(key, generation)
        is_same = last is not None and _NUMBER.sub("#", last.message) == _NUMBER.sub("#", message)
        self._refusals[key] = Refusal(
            message=last.message if last is not None and is_same else message,
            generation=generation,
            until=now + AGAIN,
            is_prepared=is_prepared,
        )
        return not is_same

    def forget(self, key: K) -> None:
        """Drop the refusal of an owner."""
        self._refusals.pop(key, None)
