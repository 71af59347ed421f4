"""Exit codes and error messages of the command line."""

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
    """Return the exit code for an error: bad input, cluster not reachable, or failed."""
    if isinstance(error, _BAD_INPUT):
        return BAD_INPUT
    return NOT_REACHED if isinstance(error, ServiceUnavailable) else FAILED


def messages(error: PacelineError) -> Iterator[str]:
    """Yield one line per fault, or the lines of the message if there are no faults."""
    if isinstance(error, Invalid) and error.faults:
        for fault in error.faults:
            text = format_fault(fault)
            yield f"{error.what}: {text}" if error.what else text
        return
    yield from str(error).splitlines() or [type(error).__name__]


def format_fault(fault: Fault) -> str:
    """Format one fault; a missing value is not shown."""
    if fault.value is None:
        return f"{fault.path}: {fault.hint}" if fault.path else fault.hint
    return str(fault)
