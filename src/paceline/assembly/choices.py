"""`settings.yaml` in the cluster's folder: what a person chose once and for all, beside what `paceline up` is told."""

from pathlib import Path

from paceline.assembly.settings import Settings, image_row
from paceline.errors import Fault, Invalid
from paceline.objects.yaml_tree import read_trees

NAME = "settings.yaml"
KNOWN = ("images",)
HINT = "write a table of patterns and environments, as in `images: {'pytorch/*': /path/to/venv, 'my-image': host}`"


def chosen_images(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Give all rows of the image table, those of `paceline up --image` first; Invalid or Malformed say why not."""
    return (*settings.images, *_rows(settings.home / NAME))


def _rows(path: Path) -> tuple[tuple[str, str], ...]:
    try:
        trees = tuple(read_trees(path.read_text(encoding="utf-8"), str(path)))
    except (FileNotFoundError, NotADirectoryError):
        # What is wrong with the folder itself is said by who uses it.
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid((Fault(str(path), None, f"cannot be read: {error}"),)) from error
    chosen = trees[0].value if trees else {}
    if not isinstance(chosen, dict):
        raise Invalid((Fault(str(path), chosen, HINT),))
    for name in chosen:
        if name not in KNOWN:
            raise Invalid((Fault(f"{path}: {name}", chosen[name], f"is not a setting; there are {', '.join(KNOWN)}"),))
    table = chosen.get("images") or {}
    if not isinstance(table, dict) or not all(isinstance(each, str) for pair in table.items() for each in pair):
        raise Invalid((Fault(f"{path}: images", table, HINT),))
    return tuple(_row(path, pattern, environment) for pattern, environment in table.items())


def _row(path: Path, pattern: str, environment: str) -> tuple[str, str]:
    try:
        return image_row(f"{pattern}={environment}")
    except Invalid as error:
        hints = "; ".join(fault.hint for fault in error.faults)
        raise Invalid((Fault(f"{path}: images.{pattern}", environment, hints),)) from error
