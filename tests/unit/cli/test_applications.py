"""The rows of an application's parts."""

from datetime import UTC, datetime

import pytest

from paceline.cli.output.applications import replica_rows

NOW = datetime(2030, 1, 1, tzinfo=UTC)

# Replicas by role → how they are called.
NAMES = {
    "one alone needs no number": ({"worker": 1}, ["worker"]),
    "several have one": ({"worker": 2}, ["worker-0", "worker-1"]),
    "one of each role has one too": ({"worker": 1, "ps": 1}, ["worker-0", "ps-0"]),
}


@pytest.mark.parametrize(("roles", "names"), NAMES.values(), ids=NAMES)
def test_d01_the_replicas_of_an_application(roles, names):
    tasks = [
        {"type": role, "replicas": [{"name": f"demo-{role}-{index}", "phase": "Running"} for index in range(count)]}
        for role, count in roles.items()
    ]
    job = {"metadata": {"name": "demo", "creationTimestamp": "2029-12-31T23:59:00Z"}, "status": {"tasks": tasks}}

    assert [row[:3] for row in replica_rows(job, NOW)] == [(name, "1", "0") for name in names]
