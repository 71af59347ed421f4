"""What a person reads when something goes wrong, and the number a script reads."""

from collections.abc import Iterator

from paceline.errors import (
    BadRequest,
    Fault,
    Invalid,
    PacelineError,
    ServiceUnavailable,
    TooLarge,
    UnsupportedMediaType,
)

OK = 0
FAILED = 1
BAD_INPUT = 2
NOT_REACHED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141

_BAD_INPUT = (Invalid, BadRequest, TooLarge, UnsupportedMediaType)


def exit_code(error: PacelineError) -> int:
    """Give the number that tells scripts who must act: the author, whoever runs the cluster, or another."""
    if isinstance(error, _BAD_INPUT):
        return BAD_INPUT
    return NOT_REACHED if isinstance(error, ServiceUnavailable) else FAILED


def messages(error: PacelineError) -> Iterator[str]:
    """Give one line per fault, or the lines of the message when it names no faults."""
    if isinstance(error, Invalid) and error.faults:
        for fault in error.faults:
            text = words(fault)
            yield f"{error.what}: {text}" if error.what else text
        return
    yield from str(error).splitlines() or [type(error).__name__]


def words(fault: Fault) -> str:
    """Say one fault; a value that is not there is not shown."""
    if fault.value is None:
        return f"{fault.path}: {fault.hint}" if fault.path else fault.hint
    return str(fault)
