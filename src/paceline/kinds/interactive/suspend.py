"""Suspending a TensorBoard or Notebook: its pod is deleted, the object is kept."""

from typing import Annotated

from paceline.kinds.compat.migration import Migration
from paceline.kinds.spec.fields import Count, about

# T9k considers it idle after an hour, and stops it after another day.
DEFAULT_IDLE_SECONDS = 90_000
IdleSeconds = Annotated[
    Count, about("Seconds without use after which it is stopped; opening it starts it again. 0: never.")
]

MODES = {"running": False, "paused": True}


def run_mode_to_suspend(draft: Migration) -> None:
    """Migrate T9k's older `runMode: running | paused` to `suspend`, and warn."""
    old, new = ("spec", "runMode"), ("spec", "suspend")
    mode = draft.get(*old)
    if not isinstance(mode, str) or mode not in MODES:
        return
    draft.tell(old, f'"{mode}" is the old form of spec.suspend: {str(MODES[mode]).lower()}')
    if not draft.has(*new):
        draft.put(new, MODES[mode])
    draft.drop(*old)
