"""Jobs that grow and shrink: how many replicas of each type there are."""

import pytest

from paceline.kinds import registry
from paceline.kinds.jobs.replica_specs import Elastic, sizes
from tests.unit.kinds.manifests import container_of, env_of, gang_of, pytorch, replica

TORCHRUN = {"torchrunConfig": {"enabled": True}}


def elastic(**bounds):
    return {"elastic": {"enabled": True, **bounds}}


SIZES = {
    "as written without bounds": ({"a": 2}, {}, None, {"a": 2}),
    "as written when it is switched off": (
        {"a": 2, "b": 1},
        {"a": 1, "b": 2},
        Elastic(min_replicas=4, expected_replicas=5),
        {"a": 2, "b": 1},
    ),
    "as written when nothing is wanted": ({"a": 2}, {}, Elastic(enabled=True), {"a": 2}),
    "no fewer than the fewest when nothing is wanted": (
        {"a": 1},
        {},
        Elastic(enabled=True, min_replicas=4, max_replicas=10),
        {"a": 4},
    ),
    "no more than the most when nothing is wanted": ({"a": 9}, {}, Elastic(enabled=True, max_replicas=3), {"a": 3}),
    "one at least of the first type, which leads": (
        {"a": 1, "b": 1},
        {"a": 1, "b": 3},
        Elastic(enabled=True, expected_replicas=1),
        {"a": 1, "b": 0},
    ),
    "also where only others have a weight": (
        {"a": 1, "b": 1},
        {"a": 0, "b": 1},
        Elastic(enabled=True, expected_replicas=4),
        {"a": 1, "b": 3},
    ),
    "all for the only type": ({"a": 1}, {}, Elastic(enabled=True, expected_replicas=7), {"a": 7}),
    "by weight": ({"a": 1, "b": 1}, {"a": 1, "b": 2}, Elastic(enabled=True, expected_replicas=6), {"a": 2, "b": 4}),
    "the rest to the largest remainder": (
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
        Elastic(enabled=True, expected_replicas=5),
        {"a": 2, "b": 3},
    ),
    "the rest to the first of equals": (
        {"a": 1, "b": 1},
        {"a": 1, "b": 1},
        Elastic(enabled=True, expected_replicas=3),
        {"a": 2, "b": 1},
    ),
    "by replicas without weights": (
        {"a": 1, "b": 3},
        {"a": 0, "b": 0},
        Elastic(enabled=True, expected_replicas=8),
        {"a": 2, "b": 6},
    ),
}


@pytest.mark.parametrize(("replicas", "weights", "bounds", "found"), SIZES.values(), ids=SIZES)
def test_replicas_are(replicas, weights, bounds, found):
    assert sizes(replicas, weights, bounds) == found


def test_the_wanted_number_takes_the_place_of_replicas():
    """Vector 13: 4 to 10, 7 wanted."""
    job = pytorch(replica(replicas=1), **elastic(minReplicas=4, maxReplicas=10, expectedReplicas=7), **TORCHRUN)

    assert len(gang_of(job).members) == 7
    assert "--nnodes=4:10" in container_of(job)["args"]
    assert env_of(container_of(job))["PET_NNODES"] == "4:10"


def test_without_torchrun_nothing_is_elastic():
    job = pytorch(replica(replicas=2), **elastic(minReplicas=1, maxReplicas=10, expectedReplicas=7))

    assert len(gang_of(job).members) == 2


def test_a_number_outside_of_the_bounds_is_refused():
    """Vector 13: 11 of at most 10."""
    job = pytorch(**elastic(minReplicas=4, maxReplicas=10, expectedReplicas=11), **TORCHRUN)

    assert [fault.path for fault in registry.faults(job)] == ["spec.elastic.expectedReplicas"]


def test_a_number_below_the_only_bound_is_refused_with_that_bound():
    job = pytorch(**elastic(minReplicas=4, expectedReplicas=2), **TORCHRUN)

    assert [fault.hint for fault in registry.faults(job)] == ["must be at least 4"]


def test_without_a_most_replicas_that_come_later_are_let_in():
    """Those that run were told once how many may come together."""
    for expected in (2, 5):
        job = pytorch(**elastic(minReplicas=2, expectedReplicas=expected), **TORCHRUN)

        assert "--nnodes=2:4096" in container_of(job)["args"]


@pytest.mark.parametrize("field", ["minReplicas", "maxReplicas", "expectedReplicas"])
def test_no_number_is_larger_than_that_of_replicas_may_be(field):
    """Every replica is spelled out: a slip of the finger must not fill the memory."""
    job = pytorch(**elastic(**{field: 100_000}), **TORCHRUN)

    assert [(fault.path, fault.hint) for fault in registry.faults(job)] == [
        (f"spec.elastic.{field}", "must be at most 4096")
    ]


def test_only_the_wanted_number_may_change():
    """Vector 13: the bounds are fixed."""
    kinds = {kind.kind: kind.mutable for kind in registry.KINDS}

    for kind in ("PyTorchTrainingJob", "DeepSpeedJob"):
        assert [path for path in kinds[kind] if path.startswith("elastic")] == ["elastic.expectedReplicas"]
