"""Rows of the image table that people write, by `paceline up --image` and in settings.yaml."""

from pathlib import Path
from typing import Any

from paceline.cluster.config.config_file import NAME, chosen_table
from paceline.environments.specs import EnvironmentSpecs, spec_of
from paceline.errors import Fault, Invalid
from paceline.node.images import HOST, SHIPPED
from paceline.settings import Settings

HINT = "write a table of patterns and environments, as in `images: {'pytorch/*': /path/to/venv, 'my-image': host}`"
OWN_HINT = (
    "write a table of names, each with a requirements file or a list of packages, as in "
    "`environments: {mine: [torch==2.13.0, pandas], ours: ~/project/requirements.txt}`"
)
ROW_HINT = "write PATTERN=ENVIRONMENT, for example 'pytorch/*=pytorch', 'acme/*=/path/to/venv' or 'my-image:*=host'"

# A pattern and its environment.
Row = tuple[str, str]


def chosen_images(settings: Settings) -> tuple[Row, ...]:
    """Give all rows of the image table, those of `paceline up --image` first; Invalid or Malformed say why not."""
    path, recipes = settings.home / NAME, chosen_recipes(settings)
    table = chosen_table(settings, "images", HINT)
    if not all(isinstance(each, str) for each in table.values()):
        raise Invalid((Fault(f"{path}: images", table, HINT),))
    rows = (
        image_row(f"{pattern}={environment}", recipes, where=f"{path}: images.{pattern}")
        for pattern, environment in table.items()
    )
    return (*settings.images, *rows)


def chosen_recipes(settings: Settings) -> EnvironmentSpecs:
    """Give the environments that can be named: those of settings.yaml and the shipped ones."""
    path = settings.home / NAME
    table = chosen_table(settings, "environments", OWN_HINT)
    return EnvironmentSpecs(
        custom={name: _own(f"{path}: environments.{name}", name, value) for name, value in table.items()}
    )


def image_row(text: str, recipes: EnvironmentSpecs, where: str = "--image") -> Row:
    """Read one `PATTERN=ENVIRONMENT`; Invalid says what is wrong with it."""
    pattern, sign, environment = text.partition("=")
    if not sign or not pattern or not environment:
        raise Invalid((Fault(where, text, ROW_HINT),))
    if environment == HOST:
        return pattern, environment
    if "/" in environment or environment.startswith(("~", ".")):
        environment = str(Path(environment).expanduser().absolute())
    if Path(environment).is_absolute() and not Path(environment).is_file():
        if not (Path(environment) / "bin").is_dir():
            hint = (
                "the environment must be `host`, the folder of a virtual environment (with bin/python in it), "
                f"a requirements file, or one of {', '.join(recipes.names())}"
            )
            raise Invalid((Fault(where, text, hint),))
        return pattern, environment
    try:
        recipes.read(environment)
    except Invalid as error:
        raise Invalid((Fault(where, text, "; ".join(fault.hint for fault in error.faults)),)) from error
    return pattern, environment


def _own(where: str, name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        lines = value
    elif isinstance(value, str):
        path = Path(value).expanduser()
        if not path.is_absolute() or not path.is_file():
            raise Invalid((Fault(where, value, "there is no such file; write its whole path"),))
        lines = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ").splitlines()
    else:
        raise Invalid((Fault(where, value, OWN_HINT),))
    try:
        return spec_of(name, lines, folder=Path("/")).lines
    except Invalid as error:
        raise Invalid((Fault(where, value, "; ".join(fault.hint for fault in error.faults)),)) from error


def all_rows(settings: Settings) -> tuple[tuple[str, str, str], ...]:
    """Give the whole table in the order in which it is read: pattern, environment, and where the row is from."""
    typed = len(settings.images)
    own = ((*row, "paceline up" if number < typed else NAME) for number, row in enumerate(chosen_images(settings)))
    return (*own, *((*row, "shipped") for row in SHIPPED))
