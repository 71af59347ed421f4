"""The folder in which the embedded cluster of this user stores its state."""

from collections.abc import Mapping
from pathlib import Path


def home_from(env: Mapping[str, str]) -> Path:
    """Return the folder of the embedded cluster: PACELINE_HOME, or `paceline` in the user's data folder."""
    if chosen := env.get("PACELINE_HOME"):
        return Path(chosen).expanduser().absolute()
    data = env.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data).absolute() / "paceline"
