"""What a person sees while a job runs: on a terminal with a line that stays, elsewhere as plain lines."""

import io

import pytest

from paceline.cli.output.console import TextOutput
from paceline.cli.output.follow import CLEAR, FollowView, Screen, prefixed
from paceline.model.gang import ReplicaId
from paceline.presentation.replica_pods import ReplicaPod
from paceline.sdk.follow import JobChanged, JobEnded, Logged, PodsChanged, Tick
from paceline.sdk.logs.sources import Lost


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds


class Stream(io.StringIO):
    def __init__(self, *, is_tty):
        super().__init__()
        self._is_tty = is_tty
        self.buffer = self

    def isatty(self):
        return self._is_tty

    def write(self, text):
        return super().write(text.decode() if isinstance(text, bytes) else text)


class Sight:
    """A watcher and everything it wrote; logs and notes go to one place, as on a terminal."""

    def __init__(self, *, is_tty=False, has_prefix=False):
        self.clock = Clock()
        self.stream = Stream(is_tty=is_tty)
        output = TextOutput(self.stream)
        self.watcher = FollowView(
            "digits", Screen(output, output, self.clock.monotonic), self.clock, has_prefix=has_prefix
        )

    def show(self, *events, after=0.0):
        self.clock.seconds += after
        for event in events:
            self.watcher.show(event)

    @property
    def lines(self):
        return self.stream.getvalue().splitlines()


def job(phase="Pending", **status):
    aggregate = {"running": 2} if phase == "Running" else {}
    return JobChanged(
        job={"spec": {"replicaSpecs": [{"replicas": 2}]}, "status": {"phase": phase, "aggregate": aggregate, **status}}
    )


def said(text, index=0):
    return Logged(place=ReplicaId("worker", index), pod="digits-worker-0", text=text)


@pytest.fixture(autouse=True)
def no_colours(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_short_wait_is_not_worth_a_word():
    sight = Sight()
    sight.show(job())
    sight.show(job("Running"), after=0.5)

    assert sight.lines == ["• digits is Running (2/2 replicas)"]


def test_a_longer_wait_is_said_with_its_reason_and_once():
    sight = Sight()
    sight.show(job(waiting="no room: 1 GPU short"))
    sight.show(Tick(), Tick(), after=1.5)
    sight.show(Tick(), job(waiting="no room: 1 GPU short"), after=60)

    assert sight.lines == ["• digits is Pending: no room: 1 GPU short"]


def test_a_pod_says_why_when_the_job_does_not_yet():
    pod = ReplicaPod(
        name="a", place=ReplicaId("worker", 1), attempt=0, phase="Pending", reason="ImageUnknown", message="map it"
    )
    sight = Sight()
    sight.show(job(), PodsChanged(pods=(pod,)))
    sight.show(Tick(), after=2)

    assert sight.lines == ["• digits is Pending: worker-1: ImageUnknown: map it"]


def test_log_lines_and_progress_without_a_terminal():
    sight = Sight()
    sight.show(job("Running"))
    for epoch in range(1, 41):
        sight.show(said(f"epoch {epoch}/40 loss 0.1\n".encode()))

    bars = [line for line in sight.lines if line.startswith("[")]
    assert len([line for line in sight.lines if "loss" in line]) == 40
    assert bars[0].endswith("epoch 1/40")
    assert bars[-1] == "[====================] epoch 40/40"
    assert len(bars) <= 12


def test_members_are_told_apart_when_all_are_shown():
    sight = Sight(has_prefix=True)
    sight.show(said(b"a\nb\n", 0), said(b"c", 1))

    assert sight.lines == ["worker-0 │ a", "worker-0 │ b", "worker-1 │ c"]


def test_on_a_terminal_the_log_scrolls_above_one_line_that_stays():
    sight = Sight(is_tty=True)
    sight.show(job("Running"))
    sight.show(said(b"epoch 3/12\n"), after=1)
    text = sight.stream.getvalue()

    assert text.count("\n") == 2
    assert f"{CLEAR}epoch 3/12\n" in text
    assert text.rsplit(CLEAR, 1)[-1].rsplit("\n", 1)[-1].startswith("⠋ digits  Running 2/2  0:01")
    assert "25%  epoch 3/12" in text.rsplit("\n", 1)[-1]


def test_a_flood_does_not_redraw_the_line_for_every_chunk():
    sight = Sight(is_tty=True)
    sight.show(job("Running"))
    before = sight.stream.getvalue().count("⠋")
    sight.show(*[Tick() for _ in range(100)])

    assert sight.stream.getvalue().count(" digits  ") - before <= 1


def test_the_line_is_gone_at_the_end():
    sight = Sight(is_tty=True)
    sight.show(job("Running"), JobEnded(job=None))

    assert sight.stream.getvalue().endswith(CLEAR)


def test_a_cluster_that_is_gone_is_said_once_and_its_return_too():
    sight = Sight()
    sight.show(job("Running"), Lost(message="x"), Lost(message="y"), said(b"a\n"), Lost(message="z"))

    assert [line[:40] for line in sight.lines[1:]] == [
        "• the cluster does not answer; trying ag",
        "• the cluster answers again",
        "a",
        "• the cluster does not answer; trying ag",
    ]


def test_every_line_gets_its_prefix_also_empty_ones():
    assert prefixed(b"a\n\nb\n", b"> ") == b"> a\n> \n> b\n"
    assert prefixed(b"open", b"> ") == b"> open\n"
