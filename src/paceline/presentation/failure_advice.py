"""What an author should do about a failed or waiting job, as a code with a subject; the words are the reader's.

In     the failure of a status with its last log lines, and the sentence for which a job waits.
Out    one of ADVICE or of the closed list of reasons, and what lacks.
Never  a sentence: the console has both languages, the codes are the contract.
"""

import re
from collections.abc import Mapping

from paceline.apimachinery.meta import Object
from paceline.model import reasons
from paceline.model.job_status import Failure, Phase
from paceline.presentation.job_summary import PLAIN_REASONS, describe_exit_code, reason_of, status_of

# Codes beside those of model/reasons.py, each with the pattern in a log that shows it. The first match counts.
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "ModuleNotFound": re.compile(r"ModuleNotFoundError: No module named '(?P<subject>[\w.]{1,80})'"),
    "DeviceOutOfMemory": re.compile(r"CUDA out of memory|torch\.OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY"),
    "DeviceNotFound": re.compile(r"No CUDA GPUs are available|no NVIDIA driver|CUDA driver version is insufficient"),
    "CollectiveTimeout": re.compile(
        r"Watchdog caught collective operation timeout|NCCL (?:error|timeout)"
        r"|Gloo.{0,80}(?:[Tt]imed out|Connection closed)"
    ),
    "AddressInUse": re.compile(r"[Aa]ddress already in use"),
    "ConnectionRefused": re.compile(r"ConnectionRefusedError|Connection refused"),
    "NameNotResolved": re.compile(r"Name or service not known|Temporary failure in name resolution"),
    "FileNotFound": re.compile(
        r"(?:FileNotFoundError:.{0,40}|can't open file|cannot access|No such file or directory:)"
        r" ?'(?P<subject>[^']{1,200})'"
    ),
    "PermissionDenied": re.compile(r"PermissionError:.{0,60}|Permission denied"),
    "NoSpaceLeft": re.compile(r"No space left on device"),
}
# Codes by exit code, where the log says nothing.
EXIT_CODES: Mapping[int, str] = {
    126: "NotExecutable",
    127: "CommandNotFound",
    134: "Aborted",
    135: "SharedMemoryFull",
    137: "Killed",
    139: "SegmentationFault",
    143: "Terminated",
}
# The pod's own reasons that mean more than its exit code.
POD_REASONS: Mapping[str, str] = {
    "OOMKilled": reasons.OUT_OF_MEMORY,
    "Evicted": "Evicted",
    "ErrImagePull": "ImageNotFound",
    "ImagePullBackOff": "ImageNotFound",
    "InvalidImageName": "ImageNotFound",
    "CreateContainerConfigError": "ContainerNotCreated",
    "CreateContainerError": "ContainerNotCreated",
    "ContainerCannotRun": "CommandNotFound",
    "StartError": "CommandNotFound",
}
PYTHON_ERROR = re.compile(r"^(?P<subject>[A-Z]\w{2,60}(?:Error|Exception|Interrupt))\b", re.MULTILINE)
ADVICE = frozenset({*PATTERNS, *EXIT_CODES.values(), *POD_REASONS.values(), "PythonError", "ExitCode"}) - reasons.ALL

SHORTAGE = re.compile(
    r"Insufficient (?P<resource>[\w./-]*\w)(?: \((?P<asked>\S+) asked, (?P<free>\S+) of (?P<total>\S+) free\))?"
)
# A job behind others in the queue: what is free is for those before it, so no amount is given.
BEHIND = re.compile(r"waits behind others for (?P<resources>[^;]*)")
ASKED = re.compile(r"(?P<resource>[\w./-]*\w) \((?P<asked>\S+) asked\)")
NEVER_RUNS = "it can never run here"


def failure_advice(failure: Failure, reason: str) -> dict[str, str]:
    """Return the code of what to do about a failure, and its subject; `reason` is that of the condition Failed."""
    if reason not in (reasons.FAILED, reasons.ERROR_IN_POD, reasons.NONE, reasons.REPLICA_LOST, ""):
        return _advice(reason)
    if failure.reason in POD_REASONS:
        return _advice(POD_REASONS[failure.reason])
    text = "\n".join((*(failure.last_lines or ()), failure.message))
    for code, pattern in PATTERNS.items():
        if match := pattern.search(text):
            return _advice(code, match.groupdict().get("subject") or "")
    if failure.exit_code is not None and failure.exit_code in EXIT_CODES:
        return _advice(EXIT_CODES[failure.exit_code])
    errors = PYTHON_ERROR.findall(text)
    if errors:
        return _advice("PythonError", errors[-1])
    return _advice("ExitCode" if failure.exit_code is not None else failure.reason or reason)


def headline_of(job: Object) -> str:
    """Return in one line why a job failed or waits: the replica, its exit code and the line that tells most."""
    status = status_of(job)
    failure = status.failure
    if status.phase is not Phase.FAILED or failure is None or not failure.replica:
        return reason_of(job)
    return failure_line(failure)


def failure_line(failure: Failure) -> str:
    """Return a failure in one line."""
    line = failure.message or _telling_line(failure.last_lines or ())
    reason = "" if failure.reason in PLAIN_REASONS else f", {failure.reason}"
    text = f"{failure.replica}: {describe_exit_code(failure.exit_code)}{reason}"
    return f"{text}: {line}" if line else text


def _telling_line(lines: tuple[str, ...]) -> str:
    """Return the last line that names an error, or else the last one."""
    errors = [line for line in lines if PYTHON_ERROR.match(line)]
    return (errors or [line.strip() for line in lines if line.strip()] or [""])[-1]


def shortages(waiting: str) -> list[dict[str, str]]:
    """Return the resources that lack, with amounts where the scheduler gives them."""
    lacking = [{key: value or "" for key, value in match.groupdict().items()} for match in SHORTAGE.finditer(waiting)]
    behind = BEHIND.search(waiting)
    reserved = ASKED.finditer(behind["resources"]) if behind else ()
    return [*lacking, *({**match.groupdict(), "free": "", "total": ""} for match in reserved)]


def _advice(code: str, subject: str = "") -> dict[str, str]:
    return {"code": code, "subject": subject}
