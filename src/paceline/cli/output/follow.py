"""Show a followed job: pending reason, logs, progress and result."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from paceline.apimachinery.meta import Object
from paceline.cli.output.console import PHASES, TextOutput
from paceline.cli.output.table import columns, cut, stopwatch
from paceline.effects import Clock
from paceline.model.gang import ReplicaId
from paceline.model.job_status import Phase
from paceline.presentation.job_summary import phase_of, reason_of, replicas_of
from paceline.presentation.progress import WINDOW, TrainingProgress, latest
from paceline.presentation.replica_pods import ReplicaPod, waiting_of
from paceline.sdk.follow import Event, JobChanged, JobEnded, Logged, PodsChanged, Tick
from paceline.sdk.logs.sources import Lost

CLEAR = "\r\x1b[2K"
# The minimum time between two redraws of the status line.
REDRAW_SECONDS = 0.1


class Screen:
    """Log lines go to `out`, everything else to `err`; on a terminal the last line of `err` is the status line."""

    def __init__(self, out: TextOutput, err: TextOutput, monotonic: Callable[[], float]) -> None:
        self._out, self._err, self._monotonic = out, err, monotonic
        self._is_drawn = False
        self._drawn_at = float("-inf")

    @property
    def is_live(self) -> bool:
        """Return True if there is a status line."""
        return self._err.is_tty

    @property
    def err(self) -> TextOutput:
        """Return the stream of the notes, for its colours."""
        return self._err

    def log(self, data: bytes) -> None:
        """Print log lines in place of the status line, which is redrawn below them."""
        self.close()
        self._out.log(data)

    def note(self, text: str, colour: str = "") -> None:
        """Print a line about the job in place of the status line."""
        self.close()
        self._err.line(text, colour)

    def bottom(self, text: str) -> None:
        """Draw the status line from sanitized parts, at most once per REDRAW_SECONDS."""
        if not self.is_live:
            return
        now = self._monotonic()
        if self._is_drawn and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._err.raw((CLEAR if self._is_drawn else "") + text)
        self._is_drawn, self._drawn_at = True, now

    def close(self) -> None:
        """Remove the status line."""
        if self._is_drawn:
            self._err.raw(CLEAR)
            self._is_drawn = False


def fit(parts: list[tuple[str, str]], out: TextOutput) -> str:
    """Join coloured parts into one line that does not wrap; the end is cut first."""
    room = shutil.get_terminal_size().columns - 1
    shown = []
    for text, colour in parts:
        short = cut(text, max(room, 0)) if columns(text) > room else text
        if room <= 0:
            break
        shown.append(out.paint(short, colour))
        room -= columns(short)
    return "".join(shown)


# Without a status line, print progress again after this fraction.
STEP = 0.1
# Leading and trailing parts of a bar, in eighths, as terminals with Unicode draw them.
FULL, HALF, EMPTY = "━", "╸", "─"


def plain_bar(progress: TrainingProgress, width: int = 20) -> str:
    """Return a progress bar in plain ASCII."""
    filled = round(progress.fraction * width)
    head = ">" if filled < width else ""
    return (
        f"[{'=' * (filled - (1 if head and filled else 0))}{head if filled else ''}{' ' * (width - filled)}] {progress}"
    )


def fine_bar(progress: TrainingProgress, width: int = 24) -> tuple[str, str]:
    """Return a Unicode progress bar as its done and remaining part, for two colours."""
    halves = round(progress.fraction * width * 2)
    done = FULL * (halves // 2) + (HALF if halves % 2 else "")
    return done, EMPTY * (width - len(done))


def is_worth_a_line(progress: TrainingProgress, reported: TrainingProgress | None) -> bool:
    """Return True if the progress since the last printed line is worth a new line."""
    if reported is None or progress.unit != reported.unit or progress.total != reported.total:
        return True
    if progress.done == progress.total:
        return reported.done != progress.done
    return progress.done - reported.done >= STEP * progress.total or progress.done < reported.done


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR_WIDTH = 24
# Every job is pending for a moment; print only longer waits.
LASTING_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class LastPrinted:
    """What was printed last, to avoid printing it twice."""

    state: str = ""
    progress: TrainingProgress | None = None
    is_lost: bool = False


class FollowView:
    """Shows the events of one job."""

    def __init__(self, name: str, screen: Screen, clock: Clock, *, has_prefix: bool) -> None:
        self._name, self._screen, self._clock, self._has_prefix = name, screen, clock, has_prefix
        self._job: Object = {}
        self._pods: tuple[ReplicaPod, ...] = ()
        self._progress: TrainingProgress | None = None
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
            case JobEnded():
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
