"""The status of a TensorBoard or Notebook survives the wire."""

from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.condition import Condition
from paceline.model.interactive import ServicePhase, ServiceStatus, Trait

NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
READY = Condition(type=Trait.READY, status=True, reason="-", message="it answers", since=NOW)
FULL = ServiceStatus(
    phase=ServicePhase.RUNNING,
    observed_generation=2,
    url="/t9k/x/",
    secret="x-token",
    pod=("x-0", "1", "Running"),
    conditions=(READY,),
    waiting="for a node",
    last_activity=NOW,
    start_after=NOW.replace(microsecond=250_000),
)


@pytest.mark.parametrize("status", [FULL, ServiceStatus()], ids=["a full one", "the first one"])
def test_a_status_comes_back_as_it_was(status):
    assert ServiceStatus.from_wire(status.to_wire()) == status


def test_it_is_written_in_the_words_of_t9k():
    told = FULL.to_wire()

    assert told["pod"] == {"reference": {"name": "x-0", "uid": "1"}, "phase": "Running"}
    assert told["conditions"][0]["type"] == "Ready"


def test_what_others_wrote_is_not_stumbled_over():
    strange = {"phase": "Sleeping", "conditions": [{"type": "Theirs", "status": "True"}], "pod": {}}

    assert ServiceStatus.from_wire(strange) == ServiceStatus()


def test_a_condition_keeps_its_moment_while_it_says_the_same():
    later = NOW + timedelta(hours=1)
    for status, since in ((True, NOW), (False, later)):
        new = FULL.put(Trait.READY, later, holds=status, reason="other")
        assert new.condition(Trait.READY).since == since
