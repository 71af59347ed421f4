"""One life with crashes in it: what went otherwise than without them, and the command that shows it again."""

import fcntl
import logging
import pickle
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from paceline.errors import PacelineError
from paceline.testing.sim.crash_points import Crash, Moment, RecordedWrite
from paceline.testing.sim.invariants import InvariantBroken
from paceline.testing.sim.loop import Stuck
from paceline.testing.sim.outcome_differences import differences
from paceline.testing.sim.scenario import COMPONENTS, CrashPlan, Outcome, live
from tests.crash.lives import LIVES

MAX_SHOWN = 5
MAX_LENGTH = 300


class Shared:
    """Where the workers of one run of the tests leave each other the lives that they have lived."""

    folder: Path | None = None


@cache
def unbroken(life: str, *, apart: bool = False) -> Outcome:
    """The life in which nobody is killed; of all workers one lives it, and the others wait for it."""
    if Shared.folder is None:
        return live(LIVES[life], CrashPlan(apart=apart))
    name = f"{life}-{'apart' if apart else 'embedded'}"
    with (Shared.folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lived = Shared.folder / name
        if not lived.exists():
            unfinished = Shared.folder / f"{name}.unfinished"
            unfinished.write_bytes(pickle.dumps(live(LIVES[life], CrashPlan(apart=apart))))
            unfinished.rename(lived)
        outcome: Outcome = pickle.loads(lived.read_bytes())
    return outcome


def troubles(life: str, plan: CrashPlan) -> list[str]:
    """Everything that went otherwise because somebody was killed; nothing may."""
    try:
        seen = live(LIVES[life], plan)
    except (InvariantBroken, Stuck, PacelineError) as error:
        return [f"{type(error).__name__}: {error}"]
    if not seen.done:
        return ["nobody was killed"]
    return list(differences(LIVES[life], unbroken(life, apart=plan.apart), seen))


def write_of(life: str, plan: CrashPlan, crash: Crash) -> RecordedWrite | None:
    """The write at which a component is killed, as the life without crashes knows it."""
    writes = (each for each in unbroken(life, apart=plan.apart).writes if each.component == crash.component)
    return next((each for each in writes if crash.moment is not Moment.TURN and each.number == crash.number), None)


def check(life: str, plans: Iterable[CrashPlan]) -> int:
    """Go through all plans, name those that end otherwise, and count them."""
    count, failed = 0, []
    for plan in plans:
        count += 1
        if found := troubles(life, plan):
            failed.append(told(life, plan, found))
    assert not failed, f"{len(failed)} of {count} crashes left a trace:\n\n" + "\n\n".join(failed[:MAX_SHOWN])
    return count


def told(life: str, plan: CrashPlan, found: list[str]) -> str:
    killed = "\n".join(
        f"killed: {crash}; {write_of(life, plan, crash) or 'between two turns'}" for crash in plan.crashes
    )
    more = f"\n  … and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    lines = "\n  ".join(shorten(each) for each in found[:MAX_SHOWN])
    return f"{killed}\n  {lines}{more}\nsee it again: .venv/bin/python -m tests.crash.replay {life} {plan}"


def shorten(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH // 2]} … {text[-MAX_LENGTH // 2 :]}"


def plan_of(words: list[str]) -> CrashPlan:
    """Read a plan as it is written: COMPONENT MOMENT NUMBER … [together] [after-turns TURNS] [down SECONDS]."""
    crashes = tuple(
        Crash(component=word, moment=Moment(words[at + 1]), number=int(words[at + 2]))
        for at, word in enumerate(words)
        if word in COMPONENTS
    )
    return CrashPlan(
        crashes=crashes,
        together="together" in words,
        apart="controllers" in words,
        down_seconds=float(after(words, "down", "1")),
        late_turns=int(after(words, "after-turns", "0")),
    )


def after(words: list[str], word: str, usual: str) -> str:
    return words[words.index(word) + 1] if word in words else usual


def main() -> None:
    logging.disable(logging.CRITICAL)
    life, plan = sys.argv[1], plan_of(sys.argv[2:])
    try:
        trace = live(LIVES[life], plan).trace
    except InvariantBroken as error:
        trace = error.__notes__
    sys.stdout.write("\n".join((*trace, "", told(life, plan, troubles(life, plan) or ["nothing went otherwise"]), "")))


if __name__ == "__main__":
    main()
