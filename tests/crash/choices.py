"""Which crashes the tests go through: every one there is in a soak, and a fixed part of them otherwise."""

from collections.abc import Iterator

from paceline.testing.sim.crash_points import Crash, Moment, RecordedWrite, Site
from paceline.testing.sim.scenario import CrashPlan, Outcome, live
from tests.crash.lives import LIVES
from tests.crash.replay import unbroken

# Starting up is the same in every life that begins with nothing: it is gone through in one of them.
FROM_THE_START = {next(iter(LIVES)), *(name for name, life in LIVES.items() if life.stored)}
# So many turns after it was asked for, whatever it was, everybody has long given up; and so many before an agent starts
# a container, it has not looked yet whether that runs already.
NEVER, BEFOREHAND = 300, 5
# Of the writes that last, other than the first from each place, every so-many-th in `make test`.
PART = 30
# Who is killed while its tasks wait in a package.
HOME = {"store": "control", "controllers": "controllers", "node": "agent"}


def alone(life: str, component: str) -> Outcome:
    """The life in which nobody is killed, with the processes that there are when the component is one of its own."""
    return unbroken(life, apart=is_apart(component))


def is_apart(component: str) -> bool:
    return component == "controllers"


def writes_of(life: str, component: str) -> list[RecordedWrite]:
    outcome = alone(life, component)
    start = 1 if life in FROM_THE_START else outcome.first[component]
    writes = (write for write in outcome.writes if write.component == component)
    return [write for write in writes if write.number >= start]


def every_write(life: str, component: str) -> Iterator[Crash]:
    for write in writes_of(life, component):
        for moment in (Moment.BEFORE, Moment.AFTER):
            yield Crash(component=component, moment=moment, number=write.number)


def every_state(life: str, component: str) -> Iterator[Crash]:
    """Before and after the first write from each place in the code, and after a part of all that last.

    A soak goes through all of them. What the control plane asks of itself lasts once its log has it, and a file that is
    only overwritten may be lost anyway: such writes are gone through once per place, in controllers/ with the
    controllers as a process of their own.
    """
    earlier = list(LIVES)[: list(LIVES).index(life)]
    seen = {place_of(write) for name in earlier for write in alone(name, component).writes}
    lasting = 0
    for write in writes_of(life, component):
        in_other_process = component == "control" and write.site.file.startswith("controllers/")
        is_new = place_of(write) not in seen and not in_other_process
        seen.add(place_of(write))
        if is_new:
            yield Crash(component=component, moment=Moment.BEFORE, number=write.number)
        lasting += lasts(write)
        if is_new or (lasts(write) and lasting % PART == 1):
            yield Crash(component=component, moment=Moment.AFTER, number=write.number)


def place_of(write: RecordedWrite) -> tuple[Site, str]:
    return write.site, write.call.partition(" ")[0]


def lasts(write: RecordedWrite) -> bool:
    if write.component == "control":
        return write.call.startswith("log.")
    return write.call not in ("files.overwrite", "files.make_folder")


def every_await(life: str, component: str) -> Iterator[Crash]:
    """At the first turn at which a task waited at each await of the component's packages; each await in one life."""
    earlier = list(LIVES)[: list(LIVES).index(life)]
    seen = {site for name in earlier for site in alone(name, component).awaits}
    awaits = alone(life, component).awaits.items()
    for turn in sorted({turn for site, turn in awaits if site not in seen and home_of(site) == component}):
        yield Crash(component=component, moment=Moment.TURN, number=turn)


def home_of(site: Site) -> str:
    return HOME[site.file.partition("/")[0]]


def every_turn(life: str, component: str) -> Iterator[Crash]:
    for turn in range(1, alone(life, component).turns + 1):
        yield Crash(component=component, moment=Moment.TURN, number=turn)


def every_request(life: str, component: str) -> Iterator[Crash]:
    """What a component asks of others, who may do it when the one who asked is dead and back again."""
    for write in writes_of(life, component):
        if write.call.startswith(("POST", "PUT", "PATCH", "DELETE", "processes.start")):
            yield Crash(component=component, moment=Moment.LATE, number=write.number)


def late_starts(life: str) -> Iterator[CrashPlan]:
    """Shims that come up around the moment at which the next agent starts the same: it cannot know of them."""
    for write in writes_of(life, "agent"):
        if write.call == "processes.start":
            crash = Crash(component="agent", moment=Moment.LATE, number=write.number)
            again = turns_until_started_again(life, crash)
            for turns in range(max(0, again - BEFOREHAND), again + 3):
                yield CrashPlan(crashes=(crash,), down_seconds=0.0, late_turns=turns)


def turns_until_started_again(life: str, crash: Crash) -> int:
    seen = live(LIVES[life], CrashPlan(crashes=(crash,), down_seconds=0.0, late_turns=NEVER))
    starts = [write for write in seen.writes if write.call == "processes.start" and write.number >= crash.number]
    return starts[1].turn - starts[0].turn


def once(crash: Crash, **how: float) -> CrashPlan:
    return CrashPlan(crashes=(crash,), apart=is_apart(crash.component), **how)


def again(crash: Crash, *, later: int) -> CrashPlan:
    """Killed once more so many writes later, while it is still coming back."""
    second = Crash(component=crash.component, moment=Moment.AFTER, number=crash.number + later)
    return CrashPlan(crashes=(crash, second), apart=is_apart(crash.component))
