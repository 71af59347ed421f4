"""How long to wait before trying again."""

from dataclasses import dataclass

from paceline.effects import Random

_MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses that double from failure to failure up to a bound, each shortened by up to a half at random."""

    first_seconds: float
    most_seconds: float

    def pause(self, failures: int, chance: Random) -> float:
        """Return the pause after the so-many-th failure in a row, counted from 1."""
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        ceiling = min(self.first_seconds * (1 << doublings), self.most_seconds)
        return ceiling * (1 + chance.fraction()) / 2
