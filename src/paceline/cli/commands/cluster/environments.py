"""`paceline env`: the mapping from images to environments, and the environments that are built."""

import os
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import click

from paceline.cli.cluster_options import settings
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.output.table import age, seconds_of, table
from paceline.cluster.config import all_rows, configured_environments
from paceline.environments.builder import Build
from paceline.environments.cache import EnvironmentCache, built, environment_cache
from paceline.environments.cache import prune as prune_stock
from paceline.environments.specs import EnvironmentSpecs
from paceline.errors import Invalid
from paceline.host.clock import RealClock

# An environment that was not used for this long is unlikely to be needed again.
UNUSED = "30d"
# The machine's own programs, and the virtual environment that Paceline is installed in.
NEVER_BUILT = ("host", "paceline")
UNITS = ("B", "KB", "MB", "GB", "TB")


@click.command()
def list_environments() -> None:
    r"""List the image table and the environments that are built.

    \b
    Example:
      paceline env list
    """
    chosen, place, recipes = settings(), environment_cache(os.environ), configured_environments(settings())
    environments = built(place)
    # Merge adjacent rows that have the same environment.
    groups = groupby(all_rows(chosen), key=lambda row: (row[1], state_of(row[1], place, recipes), row[2]))
    shown = [(*same, ", ".join(pattern for pattern, _, _ in rows)) for same, rows in groups]
    out().lines(table(("ENVIRONMENT", "BUILT", "FROM", "IMAGES"), shown))
    out().line()
    if environments:
        rows = []
        for environment in environments:
            used = f"{age(datetime.fromtimestamp(environment.used_at, UTC), RealClock().now())} ago"
            rows.append((environment.folder.name, size(environment.bytes), "in use" if environment.is_in_use else used))
        out().lines(table(("BUILT", "SIZE", "LAST USED"), rows))
        print_hint(f"they are in {place.root}; to remove those not used for {UNUSED}: paceline env prune")
    else:
        print_hint(f"no environment is built in {place.root} yet; to build one in advance: paceline env build pytorch")


def state_of(environment: str, place: EnvironmentCache, recipes: EnvironmentSpecs) -> str:
    """Return whether an environment is built, for the table."""
    if environment in NEVER_BUILT or (environment.startswith("/") and Path(environment).is_dir()):
        return "-"
    try:
        return "yes" if place.folder(recipes.read(environment)).exists() else "no"
    except Invalid:
        return "broken"


def size(count: int) -> str:
    """Format a number of bytes in decimal units."""
    power = min((len(str(count)) - 1) // 3, len(UNITS) - 1)
    amount = count / 1000**power
    return f"{amount:.{1 if power and amount < 10 else 0}f} {UNITS[power]}"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option(
    "--newer", "is_renewal", is_flag=True, help="Rebuild existing environments if newer packages are available."
)
def build(*, names: tuple[str, ...], is_renewal: bool) -> None:
    r"""Build environments in advance and print their folders.

    NAME is an environment of `paceline env list`, optionally with another version, or a requirements file.

    \b
    Examples:
      paceline env build pytorch
      paceline env build tensorflow==2.20.0 ./requirements.txt
      paceline env build --newer ./requirements.txt
    """
    place, recipes = environment_cache(os.environ), configured_environments(settings())
    specs = [recipes.read(str(Path(name).absolute()) if Path(name).is_file() else name) for name in names]
    for recipe in specs:
        if not place.folder(recipe).exists():
            err().line(f"Building environment {recipe.title}; this is done once.")
        pending = Build(
            cache=place, spec=recipe, is_renewal=is_renewal, report=lambda line: err().line(f"  {line}", "dim")
        )
        out().line(str(pending.run()))


@click.command()
@click.option("--unused-for", default=UNUSED, show_default=True, help="Remove environments not used for this long.")
@click.option("--all", "is_all", is_flag=True, help="Remove all environments that no container is using.")
def prune(*, unused_for: str, is_all: bool) -> None:
    r"""Remove environments that have not been used for a while.

    Environments in use by a running container are kept.

    \b
    Examples:
      paceline env prune
      paceline env prune --unused-for 12h
    """
    try:
        seconds = 0 if is_all else seconds_of(unused_for)
    except ValueError as error:
        raise click.BadParameter(
            f"{unused_for!r} is not a duration; write 12h or {UNUSED}", param_hint="--unused-for"
        ) from error
    gone = prune_stock(environment_cache(os.environ), unused_seconds=seconds)
    for environment in gone:
        out().line(f"removed {environment.folder.name} ({size(environment.bytes)})")
    if not gone:
        err().line("Nothing to remove.")
