"""The trainers that are shipped, as files for a config map."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from paceline.trainers import parameter_server

SHIPPED = {"parameter-server": str(parameter_server.__file__)}


@cache
def shipped_trainer(name: str) -> Mapping[str, str]:
    """Give the files of a trainer by its name; none for a trainer that is not shipped."""
    found = SHIPPED.get(name)
    return {} if found is None else {f"{name}.py": Path(found).read_text()}
