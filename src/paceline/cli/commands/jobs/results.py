"""`paceline results`: list the output files of a job, also after its pods are deleted."""

from dataclasses import asdict

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options, with_output_option
from paceline.cli.output import formats
from paceline.cli.output.console import err, out
from paceline.cli.output.table import size, table
from paceline.cli.sessions import open_session
from paceline.sdk.results import Results, results_of

HEADER = ("REPLICA", "SIZE", "TIME", "NAME")


@click.command()
@click.argument("name")
@with_output_option
@with_cluster_options
def results(*, cluster: ClusterOptions, name: str, output: str | None) -> None:
    r"""List the output files of a job.

    Works while the job is running and after it was deleted. To read what a job prints, use `paceline logs`.

    \b
    Examples:
      paceline results digits
      paceline results digits -o json
    """
    with open_session(cluster) as session:
        results = results_of(session, name, is_here=cluster.is_embedded)
    if text := formats.as_text(document(results), output):
        out().document(text)
        return
    if output == "name":
        out().lines(f"{file.replica}/{file.name}" for file in results.files)
        return
    if results.files:
        rows = [(file.replica, size(file.size), file.time, file.name) for file in results.files]
        out().lines(table(HEADER, rows, width=None if output == "wide" else out().width))
    else:
        err().line(f"No results of {name} yet.")
    for replica, message in results.messages:
        err().line(f"{replica}: {message}" if replica else message, "dim")


def document(results: Results) -> dict[str, object]:
    """Return the results as an object for JSON and YAML."""
    replicas = [{"replica": replica, "message": message} for replica, message in results.messages]
    return {"kind": "ResultList", "items": [asdict(file) for file in results.files], "replicas": replicas}
