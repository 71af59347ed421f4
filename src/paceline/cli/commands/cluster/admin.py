"""`paceline cluster`: status, backup, restore and verification of the embedded cluster."""

from pathlib import Path

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, settings
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.output.formats import table_rows
from paceline.cli.output.table import pairs, table
from paceline.errors import HostError
from paceline.host.clock import RealClock


@click.command()
def status() -> int:
    r"""Show whether the embedded cluster is running, and its nodes.

    Exit code: 0 if it is running, 3 if not.

    \b
    Example:
      paceline cluster status
    """
    from paceline.cluster.console.address import console_address
    from paceline.cluster.daemon import running_pid

    chosen = settings()
    pid = running_pid(chosen)
    facts = [("Home", str(chosen.home)), ("Status", f"running (pid {pid})" if pid else "not running")]
    if not pid:
        out().lines(pairs(facts))
        print_hint("to start it: paceline up -d")
        return exit_codes.NOT_REACHED
    with ClusterOptions().reader() as reader:
        facts += [
            ("Version", str(reader.ask("/version").get("gitVersion", "unknown"))),
            ("Kubeconfig", str(chosen.kubeconfig)),
            ("Console", f"{console_address(chosen) or 'none until the next start'} (to log in: paceline ui)"),
            ("Sandbox", "on" if chosen.has_sandbox else "off"),
            ("Network", chosen.network),
        ]
        header, rows = table_rows(
            reader.table(reader.kinds.named("nodes")), RealClock().now(), is_wide=False, has_namespace=False
        )
    out().lines(pairs(facts))
    out().line()
    out().lines(table(header, rows))
    return exit_codes.OK


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def backup(*, file: Path, force: bool) -> None:
    r"""Back up the objects of the embedded cluster to a file.

    The cluster may be running. The file is written atomically, verified, and readable by its owner only. It does not
    contain volumes, logs or keys.

    \b
    Example:
      paceline cluster backup monday.paceline
    """
    from paceline.cluster.backup import back_up

    if file.exists() and not force:
        raise HostError(f"{file} already exists; choose another name, or overwrite it with --force")
    contents = back_up(settings(), file)
    out().line(f"Backed up {contents.objects} objects at revision {contents.revision} to {file}.")
    err().line(f"  to restore it: paceline down  ·  paceline cluster restore {file}", "dim")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def restore(*, file: Path) -> None:
    r"""Restore the objects of the embedded cluster from a backup.

    The cluster must be stopped. The current objects are moved aside. Processes of pods that are not in the backup are
    stopped at the next start of the cluster.

    \b
    Examples:
      paceline down
      paceline cluster restore monday.paceline
      paceline up -d
    """
    from paceline.cluster.backup import restore

    chosen = settings()
    restored = restore(chosen, file, RealClock())
    out().line(f"Restored {restored.contents.objects} objects into {chosen.home}.")
    if restored.old_files:
        err().line(
            f"  the previous objects are in {restored.old_files}; delete this folder when you no longer need it", "dim"
        )
    err().line("  next: paceline up -d", "dim")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def verify(*, file: Path | None) -> None:
    r"""Verify the integrity of the object store or of a backup.

    The cluster may be running.

    \b
    Examples:
      paceline cluster verify
      paceline cluster verify monday.paceline
    """
    from paceline.cluster.backup import check_store

    path = file or settings().store
    contents = check_store(path)
    out().line(f"{path} is intact: {contents.objects} objects at revision {contents.revision}.")
