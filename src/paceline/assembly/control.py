"""`python -m paceline.assembly.control HOME [FD]`: the control process; on FD it says that it is ready, or why not."""

import contextlib
import logging
import os
import sys
from pathlib import Path

from paceline.assembly.daemon import recall
from paceline.assembly.embedded import run_control
from paceline.assembly.hold import READY
from paceline.assembly.journal import known, say_to_stderr
from paceline.errors import PacelineError

log = logging.getLogger(__name__)


def main() -> int:
    """Run until told to stop; a known error is one line, a bug is a traceback in the log."""
    say_to_stderr("control")
    settings = recall(Path(sys.argv[1]))
    fd = int(sys.argv[2]) if len(sys.argv) > 2 else None

    def answer(text: str) -> None:
        nonlocal fd
        if fd is not None:
            # Whoever started this may have gone; it runs on all the same.
            with contextlib.suppress(BrokenPipeError):
                os.write(fd, text.encode())
            os.close(fd)
            fd = None

    def ready() -> None:
        log.info("ready")
        answer(READY)

    failed = ""
    try:
        run_control(settings, ready)
    except* PacelineError as errors:
        failed = "\n".join(known(errors))
    if failed:
        log.error("%s", failed)
        answer(failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
