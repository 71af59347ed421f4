"""Training progress, parsed from log lines such as `epoch 3/12`, `Epoch [3/12]`, `step 40 of 100`."""

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
# Without a status line, print progress again after this fraction.
STEP = 0.1
# Leading and trailing parts of a bar, in eighths, as terminals with Unicode draw them.
FULL, HALF, EMPTY = "━", "╸", "─"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
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


def latest(text: str, previous: Progress | None = None) -> Progress | None:
    """Return the last progress in a text, or `previous` if the text only has finer units."""
    progress = previous
    for match in FRAGMENT.finditer(text[-WINDOW:]):
        unit, done, total = match["unit"].lower(), int(match["done"]), int(match["total"])
        if total == 0 or done > total:
            continue
        if progress is None or UNITS.index(unit) <= UNITS.index(progress.unit):
            progress = Progress(unit=unit, done=done, total=total)
    return progress


def plain_bar(progress: Progress, width: int = 20) -> str:
    """Return a progress bar in plain ASCII."""
    filled = round(progress.fraction * width)
    head = ">" if filled < width else ""
    return (
        f"[{'=' * (filled - (1 if head and filled else 0))}{head if filled else ''}{' ' * (width - filled)}] {progress}"
    )


def fine_bar(progress: Progress, width: int = 24) -> tuple[str, str]:
    """Return a Unicode progress bar as its done and remaining part, for two colours."""
    halves = round(progress.fraction * width * 2)
    done = FULL * (halves // 2) + (HALF if halves % 2 else "")
    return done, EMPTY * (width - len(done))


def is_worth_a_line(progress: Progress, reported: Progress | None) -> bool:
    """Return True if the progress since the last printed line is worth a new line."""
    if reported is None or progress.unit != reported.unit or progress.total != reported.total:
        return True
    if progress.done == progress.total:
        return reported.done != progress.done
    return progress.done - reported.done >= STEP * progress.total or progress.done < reported.done
