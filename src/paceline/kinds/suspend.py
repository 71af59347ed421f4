"""Suspending a service: its pod goes, the object stays."""

from typing import Annotated

from paceline.kinds.draft import Draft
from paceline.kinds.fields import Count, about

# T9k calls it idle after an hour, and stops what was idle for a day.
DEFAULT_IDLE_SECONDS = 90_000
IdleSeconds = Annotated[
    Count, about("Stop it when nobody has used it for so long; opening it starts it again. 0: never stop it.")
]

MODES = {"running": False, "paused": True}


def run_mode_to_suspend(draft: Draft) -> None:
    """Turn T9k's older `runMode: running | paused` into `suspend`."""
    old, new = ("spec", "runMode"), ("spec", "suspend")
    mode = draft.get(*old)
    if not isinstance(mode, str) or mode not in MODES:
        return
    draft.tell(old, f'"{mode}" is the old form of spec.suspend: {str(MODES[mode]).lower()}')
    if not draft.has(*new):
        draft.put(new, MODES[mode])
    draft.drop(*old)
