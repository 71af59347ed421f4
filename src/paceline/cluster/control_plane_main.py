"""`python -m paceline.cluster.control_plane_main HOME [FD SUPERVISOR MODE]`: the control process.

It reports on FD that it is ready, or why not. SUPERVISOR is the pid of the process that restarts it when it ends.
"""

import gc
import logging
import sys
from pathlib import Path

# Before the other imports: these make no garbage, and looking for it takes a sixth of their time.
if __name__ == "__main__":
    gc.disable()

from paceline.cluster.control_plane import run_control
from paceline.cluster.daemon import load_last_settings
from paceline.cluster.logs import configure_logging, leaves, messages_of
from paceline.cluster.supervisor import FINAL, FOREGROUND, report_once
from paceline.cluster.supervisor_keeper import SupervisorProcess
from paceline.errors import Invalid, PacelineError
from paceline.host.lockfile import READY
from paceline.store.backend import Damaged

log = logging.getLogger(__name__)


def main() -> int:
    """Run until a signal; log an expected error as one line, and a bug with its traceback."""
    settings = load_last_settings(Path(sys.argv[1]))
    configure_logging("control", settings.log, log_format=settings.log_format)
    answer, has_started, supervisor = report_once(int(sys.argv[2]) if len(sys.argv) > 2 else -1), False, None
    if len(sys.argv) > 2:
        supervisor = SupervisorProcess(pid=int(sys.argv[3]), is_in_front=sys.argv[4] == FOREGROUND)
        if supervisor.is_in_front:
            logging.getLogger().setLevel(logging.WARNING)

    def ready() -> None:
        nonlocal has_started
        has_started = True
        log.info("ready")
        answer(READY)

    failed, is_final = "", False
    try:
        run_control(settings, ready, supervisor)
    except* PacelineError as errors:
        failed = "\n".join(messages_of(errors))
        # A damaged store and invalid settings stay so until the user acts.
        is_final = any(isinstance(error, (Damaged, Invalid)) for error in leaves(errors))
    if failed:
        # A command in the foreground prints the answer itself.
        if has_started or supervisor is None or not supervisor.is_in_front:
            log.error("%s", failed)
        answer(failed)
    return (FINAL if is_final else 1) if failed else 0


if __name__ == "__main__":
    sys.exit(main())
