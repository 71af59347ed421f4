"""Progress of a training, read from its log."""

import re
from dataclasses import dataclass

# Coarser units take precedence: epochs over steps.
UNITS = ("epoch", "round", "iteration", "iter", "step", "batch")
FRAGMENT = re.compile(
    r"\b(?P<unit>epoch|round|iteration|iter|step|batch)s?\b[\s:=#\[(]{0,4}(?P<done>\d{1,9})\s{0,3}(?:/|of)\s{0,3}(?P<total>\d{1,9})",
    re.IGNORECASE,
)
# Parse only the end of a large chunk; earlier progress is outdated.
WINDOW = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProgress:
    """Completed and total units of work."""

    unit: str
    done: int
    total: int

    @property
    def fraction(self) -> float:
        """Return the completed fraction, from 0 to 1."""
        return min(self.done / self.total, 1.0)

    def __str__(self) -> str:
        return f"{self.unit} {self.done}/{self.total}"


def latest(text: str, previous: TrainingProgress | None = None) -> TrainingProgress | None:
    """Return the last progress in a text, or `previous` if the text only has finer units."""
    progress = previous
    for match in FRAGMENT.finditer(text[-WINDOW:]):
        unit, done, total = match["unit"].lower(), int(match["done"]), int(match["total"])
        if total == 0 or done > total:
            continue
        if progress is None or UNITS.index(unit) <= UNITS.index(progress.unit):
            progress = TrainingProgress(unit=unit, done=done, total=total)
    return progress
