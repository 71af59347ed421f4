"""Jobs are counted as they change, and so is how long they take until they run."""

import pytest

from paceline.client.interface import Change
from paceline.controllers.job.metrics import JobMetrics

CREATED = "2026-01-01T00:00:00Z"


def job(phase="", *, running="", status=None, **conditions):
    """A job whose condition Running is `True@TIME` or `False@TIME`, other conditions likewise."""
    rows = {"Running": running, **conditions}
    return {
        "metadata": {"name": "a", "namespace": "team", "creationTimestamp": CREATED},
        "status": {
            **({"phase": phase} if phase else {}),
            "conditions": [
                {
                    "type": kind,
                    "status": value.split("@")[0],
                    "lastTransitionTime": f"2026-01-01T{value.split('@')[1]}Z",
                }
                for kind, value in rows.items()
                if value
            ],
            **(status or {}),
        },
    }


@pytest.fixture
def metrics():
    return JobMetrics()


@pytest.fixture
def change(metrics):
    follow = metrics.follow("GenericJob")

    def apply(*states):
        old = None
        for new in states:
            kind = Change.ADDED if old is None else Change.DELETED if new is None else Change.MODIFIED
            follow(kind, old, new)
            old = new

    return apply


def test_a_job_counts_in_its_phase_only_and_no_more_once_it_is_deleted(metrics, change):
    change(job(), job("Pending"), job("Running"))
    assert [metrics.jobs("GenericJob", phase) for phase in ("Pending", "Running")] == [0, 1]
    change(job("Running"), job("Running"), None)
    assert metrics.jobs("GenericJob", "Running") == 1


def test_a_phase_that_somebody_invents_is_counted_as_unknown(metrics, change):
    change(job("Dancing"))
    assert metrics.jobs("GenericJob", "Unknown") == 1


def test_the_time_to_running_is_from_the_creation_to_the_first_run(metrics, change):
    change(job("Pending", running="False@00:00:01"), job("Running", running="True@00:00:07"))
    assert (metrics.time_to_running.count("GenericJob"), metrics.time_to_running.total("GenericJob")) == (1, 7)
    assert metrics.recovery.count("GenericJob") == 0


def test_the_recovery_is_from_the_failure_to_the_next_run(metrics, change):
    again = {"attempt": 1, "backoffCount": 1}
    change(
        job("Running", running="True@00:00:07"),
        job("Pending", running="False@00:10:00", status=again),
        job("Running", running="True@00:10:12", status=again),
    )
    assert (metrics.recovery.count("GenericJob"), metrics.recovery.total("GenericJob")) == (1, 12)
    assert metrics.time_to_running.count("GenericJob") == 0


def test_a_job_that_was_paused_has_not_recovered_from_anything(metrics, change):
    again = {"attempt": 1, "resumes": 1}
    change(
        job("Paused", running="False@00:10:00", Paused="True@00:10:00", status=again),
        job("Running", running="True@03:00:00", Paused="False@02:59:50", status=again),
    )
    assert metrics.recovery.count("GenericJob") == 0


def test_a_status_that_cannot_be_read_is_not_measured(metrics, change):
    change(job("Pending"), {"metadata": {}, "status": {"phase": ["Running"], "conditions": [{"type": "Running"}, 3]}})
    assert metrics.jobs("GenericJob", "Unknown") == 1
