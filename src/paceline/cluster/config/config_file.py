"""`settings.yaml` in the cluster's folder: what a person chose once and for all, beside what `paceline up` is told."""

from pathlib import Path
from typing import Any

from paceline.apimachinery.yaml_reader import read_trees
from paceline.errors import Fault, Invalid
from paceline.settings import Settings

NAME = "settings.yaml"
KNOWN = ("devices", "environments", "history", "images")
HINT = "write a table of settings, as in `images: {'my-image': host}`"


def chosen_table(settings: Settings, setting: str, hint: str) -> dict[str, Any]:
    """Give one table of the file, empty when it is not there; Invalid or Malformed say what is wrong with it."""
    path = settings.home / NAME
    table = _chosen(path).get(setting) or {}
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table):
        raise Invalid((Fault(f"{path}: {setting}", table, hint),))
    return table


def _chosen(path: Path) -> dict[str, Any]:
    try:
        trees = tuple(read_trees(path.read_text(encoding="utf-8"), str(path)))
    except (FileNotFoundError, NotADirectoryError):
        # What is wrong with the folder itself is said by who uses it.
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid((Fault(str(path), None, f"cannot be read: {error}"),)) from error
    chosen = trees[0].value if trees else {}
    if not isinstance(chosen, dict):
        raise Invalid((Fault(str(path), chosen, HINT),))
    for name in chosen:
        if name not in KNOWN:
            raise Invalid((Fault(f"{path}: {name}", chosen[name], f"is not a setting; there are {', '.join(KNOWN)}"),))
    return chosen
