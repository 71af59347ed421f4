"""`python -m paceline.assembly.control HOME [FD]`: the control process; a byte on FD says that it is ready."""

import logging
import os
import sys
from pathlib import Path

from paceline.assembly.daemon import recall
from paceline.assembly.embedded import run_control
from paceline.assembly.journal import say_known, say_to_stderr
from paceline.errors import PacelineError

log = logging.getLogger(__name__)


def main() -> int:
    """Run until told to stop; a known error is one line, a bug is a traceback in the log."""
    say_to_stderr("control")
    settings = recall(Path(sys.argv[1]))
    fd = int(sys.argv[2]) if len(sys.argv) > 2 else None

    def ready() -> None:
        log.info("ready")
        if fd is not None:
            os.write(fd, b"ready")
            os.close(fd)

    failed = False
    try:
        run_control(settings, ready)
    except* PacelineError as errors:
        failed = True
        say_known(errors)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
