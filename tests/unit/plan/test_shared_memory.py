"""Signal 7 is explained, with what to set."""

from dataclasses import replace

from paceline.model.job_status import Phase
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, gang, seen

MOUNTED = {
    "spec": {
        "containers": [{"name": "main", "image": "python", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}]
    }
}


def failed(code, **template):
    crew = gang(2, restart="Never")
    if template:
        crew = replace(crew, members=tuple(replace(each, **template) for each in crew.members))
    return decide(seen("Running", f"Failed {code}", of=crew, phase=Phase.RUNNING), NOW).status


def test_t06_a_replica_that_dies_of_signal_7_says_why_and_what_to_set():
    status = failed(135)

    assert status.phase is Phase.FAILED
    assert "/dev/shm is full" in status.failure.message
    assert "emptyDir: {medium: Memory, sizeLimit: 2Gi}` mounted at /dev/shm" in status.failure.message


def test_t06_one_that_has_such_a_volume_is_told_to_raise_its_size():
    assert "raise emptyDir.sizeLimit of volume shm" in failed(135, template=MOUNTED).failure.message


def test_other_ends_say_nothing_of_it():
    assert "shm" not in failed(139).failure.message
