"""What to do about a failure, as a code and a subject."""

import pytest

from paceline.model import reasons
from paceline.model.job_status import Failure
from paceline.presentation.failure_advice import ADVICE, failure_advice, headline_of, shortages

LOGS = {
    "ModuleNotFoundError: No module named 'torchvision'": ("ModuleNotFound", "torchvision"),
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB": ("DeviceOutOfMemory", ""),
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'": ("FileNotFound", "/data/train.csv"),
    "python: can't open file 'main.py': [Errno 2]": ("FileNotFound", "main.py"),
    "OSError: [Errno 98] Address already in use": ("AddressInUse", ""),
    "ConnectionRefusedError: [Errno 111]": ("ConnectionRefused", ""),
    "OSError: [Errno 28] No space left on device": ("NoSpaceLeft", ""),
    "ValueError: bad learning rate": ("PythonError", "ValueError"),
    "something else": ("ExitCode", ""),
}


@pytest.mark.parametrize(("line", "advice"), LOGS.items(), ids=LOGS)
def test_the_last_lines_tell_what_to_do(line, advice):
    code, subject = advice

    shown = failure_advice(Failure(exit_code=1, reason="Error", last_lines=("epoch 1", line)), reasons.FAILED)

    assert shown == {"code": code, "subject": subject}
    assert code in ADVICE


def test_a_reason_of_the_job_goes_before_the_log():
    failure = Failure(exit_code=137, reason="OOMKilled", last_lines=("ValueError: x",))

    assert failure_advice(failure, reasons.DEADLINE_EXCEEDED)["code"] == reasons.DEADLINE_EXCEEDED
    assert failure_advice(failure, reasons.FAILED)["code"] == reasons.OUT_OF_MEMORY


@pytest.mark.parametrize(("code", "advice"), {127: "CommandNotFound", 139: "SegmentationFault", 3: "ExitCode"}.items())
def test_an_exit_code_tells_what_to_do_where_the_log_does_not(code, advice):
    assert failure_advice(Failure(exit_code=code, reason="Error"), reasons.FAILED)["code"] == advice


def test_shortages_without_amounts_are_those_of_another_scheduler():
    [shortage] = shortages("0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes")

    assert shortage == {"resource": "nvidia.com/gpu", "asked": "", "free": "", "total": ""}


def test_a_headline_has_the_replica_its_exit_code_and_the_line_that_tells_most():
    failure = {
        "pod": "mnist-1f409-worker-1",
        "replica": "worker-1",
        "exitCode": 1,
        "reason": "Error",
        "message": "",
        "lastLines": ["Traceback:", "ModuleNotFoundError: No module named 'x'", "and then some"],
    }

    shown = headline_of({"status": {"phase": "Failed", "failure": failure}})

    assert shown == "worker-1: exit code 1: ModuleNotFoundError: No module named 'x'"
