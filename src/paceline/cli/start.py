"""Make sure that the embedded cluster runs, and say so when it had to be started."""

from paceline.assembly.daemon import is_running, start_in_background
from paceline.assembly.settings import Settings
from paceline.cli.output import err
from paceline.errors import Unavailable
from paceline.sdk.dial import Unreached


def ensure_running(settings: Settings) -> None:
    """Start the embedded cluster in the background when it does not run; Unreached when it cannot be started."""
    if is_running(settings):
        return
    err().line(f"No cluster is running; starting one in {settings.home} (paceline down stops it) …", "dim")
    start(settings)


def start(settings: Settings) -> None:
    """Start the embedded cluster and wait until it answers."""
    try:
        start_in_background(settings)
    except Unavailable as error:
        raise Unreached(str(error)) from error
