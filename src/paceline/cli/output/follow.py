"""Show a followed job: pending reason, logs, progress and result."""

from dataclasses import dataclass

from paceline.apimachinery.meta import Object
from paceline.cli.output.console import PHASES
from paceline.cli.output.durations import stopwatch
from paceline.cli.output.live_display import Screen, fit
from paceline.cli.output.progress import WINDOW, Progress, fine_bar, is_worth_a_line, latest, plain_bar
from paceline.effects import Clock
from paceline.model.gang import ReplicaId
from paceline.model.job_status import Phase
from paceline.sdk.follow import Ended, Event, JobChanged, Logged, PodsChanged, Tick
from paceline.sdk.job_summary import phase_of, reason_of, replicas_of
from paceline.sdk.logs.sources import Lost
from paceline.sdk.replica_pods import MemberPod, waiting_of

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR_WIDTH = 24
# Every job is pending for a moment; print only longer waits.
LASTING_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class LastPrinted:
    """What was printed last, to avoid printing it twice."""

    state: str = ""
    progress: Progress | None = None
    is_lost: bool = False


class FollowView:
    """Shows the events of one job."""

    def __init__(self, name: str, screen: Screen, clock: Clock, *, has_prefix: bool) -> None:
        self._name, self._screen, self._clock, self._has_prefix = name, screen, clock, has_prefix
        self._job: Object = {}
        self._pods: tuple[MemberPod, ...] = ()
        self._progress: Progress | None = None
        self._printed = LastPrinted()
        self._state, self._state_since = "", 0.0
        self._began = clock.monotonic()
        self._turn = 0

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Logged():
                self._log(event.place, event.text)
            case JobChanged():
                self._job = event.job
                self._note_state()
            case PodsChanged():
                self._pods = event.pods
                self._note_state()
            case Lost():
                self._say_lost()
            case Tick():
                self._turn += 1
            case Ended():
                self._screen.close()
                return
        self._say_state()
        self._draw()

    def _log(self, place: ReplicaId, text: bytes) -> None:
        self._say_reconnected()
        self._progress = latest(text[-WINDOW:].decode(errors="replace"), self._progress)
        self._screen.log(prefixed(text, f"{place} │ ".encode()) if self._has_prefix else text)
        progress = self._progress
        if self._screen.is_live or progress is None or not is_worth_a_line(progress, self._printed.progress):
            return
        self._printed.progress = progress
        self._screen.note(plain_bar(progress))

    def _note_state(self) -> None:
        """Record the job's state and since when it lasts."""
        self._say_reconnected()
        phase = phase_of(self._job)
        reason = reason_of(self._job) or (waiting_of(self._pods) if phase is Phase.PENDING else "")
        state = f"{phase.value}: {reason}" if reason else phase.value
        if state != self._state:
            self._state, self._state_since = state, self._clock.monotonic()

    def _say_state(self) -> None:
        """Print each state once; skip short pending states."""
        phase = phase_of(self._job)
        lasted = self._clock.monotonic() - self._state_since
        if self._state == self._printed.state or phase.is_final:
            return
        if phase is Phase.PENDING and lasted < LASTING_SECONDS:
            return
        self._printed.state = self._state
        has_reason = ":" in self._state
        ready, desired = replicas_of(self._job)
        counted = f" ({ready}/{desired} replicas)" if phase is Phase.RUNNING and not has_reason else ""
        colour = "yellow" if has_reason else PHASES.get(phase.value, "")
        self._screen.note(f"• {self._name} is {self._state}{counted}", colour)

    def _say_lost(self) -> None:
        if not self._printed.is_lost:
            self._printed.is_lost = True
            self._screen.note("• the cluster does not answer; trying again (the job runs on meanwhile)", "yellow")

    def _say_reconnected(self) -> None:
        if self._printed.is_lost:
            self._printed.is_lost = False
            self._screen.note("• the cluster answers again", "green")

    def _draw(self) -> None:
        if not self._screen.is_live:
            return
        phase = phase_of(self._job).value
        ready, desired = replicas_of(self._job)
        parts = [
            (f"{SPINNER[self._turn % len(SPINNER)]} {self._name}  ", "bold"),
            (phase, PHASES.get(phase, "")),
            (f" {ready}/{desired}  {stopwatch(self._clock.monotonic() - self._began)}  ", ""),
        ]
        if self._progress is not None:
            done, remainder = fine_bar(self._progress, BAR_WIDTH)
            percent = f" {self._progress.fraction:4.0%}  {self._progress}"
            parts += [(done, "green"), (remainder, "dim"), (percent, "")]
        elif phase == "Pending":
            parts.append((reason_of(self._job) or waiting_of(self._pods), "dim"))
        self._screen.bottom(fit(parts, self._screen.err))


def prefixed(text: bytes, prefix: bytes) -> bytes:
    """Return the text with a prefix before every line."""
    body, newline = (text[:-1], b"\n") if text.endswith(b"\n") else (text, b"\n")
    return prefix + body.replace(b"\n", b"\n" + prefix) + newline
