"""What others wrote is read, or said to be unreadable; it never looks like a bug of ours."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.apimachinery.timestamps import from_wire
from paceline.errors import BadRequest
from paceline.model.app_status import AppStatus, RecordStatus
from paceline.model.interactive import ServiceStatus
from paceline.model.job_status import JobStatus

STATUSES = (AppStatus, JobStatus, RecordStatus, ServiceStatus)
FIELDS = sorted(
    {"phase", "tasks", "ending", "job", "metrics", "pod", "lastActivity", "startAfter", "startTime", "ports", "source"}
    | {"conditions", "failure", "errands", "replicaRecords", "history", "updated", "revision", "aggregate", "elastic"}
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("status", STATUSES)
@given(wire=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_a_status_is_read_or_said_to_be_unreadable(status, wire):
    with contextlib.suppress(BadRequest):
        status.from_wire(wire).to_wire()


def test_a_moment_without_a_zone_is_one_of_ours():
    assert from_wire("2030-01-31T12:00:00") == from_wire("2030-01-31T12:00:00Z")
