"""`paceline get`: jobs of all kinds in one table, or objects of any kind."""

from dataclasses import replace
from typing import Any

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options, with_output_option
from paceline.cli.output.console import out
from paceline.cli.output.get import GetOptions, GetView, print_changes
from paceline.cli.output.table import table
from paceline.sdk.discovery import ResourceKind
from paceline.sdk.reader import Reader

JOBS = ("jobs", "job", "all")


@click.command()
@click.argument("kind", default="jobs")
@click.argument("name", default="")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List resources in all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Watch for changes until Ctrl-C.")
@click.option("--kinds", is_flag=True, help="List the kinds that the cluster supports.")
@with_output_option
@with_cluster_options
def get(*, cluster: ClusterOptions, **options: Any) -> None:
    r"""List jobs, or resources of any kind.

    KIND is a plural, singular or short name (pods, nodes, pvc, events, pj …). Without it, all jobs are listed.

    \b
    Examples:
      paceline get                     # list all jobs
      paceline get pods -o wide        # list pods with their nodes
      paceline get pj/digits -o yaml   # print one job as YAML
    """
    question = GetOptions(**options)
    kind, _, name = question.kind.partition("/")
    question = replace(question, kind=kind, name=question.name or name)
    if question.watch:
        from paceline.cli.sessions import open_session

        with open_session(cluster) as session:
            kinds = kinds_of(session, kind)
            changes = session.watch(kinds, name=question.name, everywhere=question.everywhere)
            print_changes(changes, GetView(session, kinds, question))
        return
    with cluster.reader() as reader:
        if question.kinds:
            list_kinds(reader)
        else:
            GetView(reader, kinds_of(reader, kind), question).once()


def kinds_of(reader: Reader, word: str) -> tuple[ResourceKind, ...]:
    """Return all job kinds, or the kind of this name."""
    return reader.kinds.jobs() if word.lower() in JOBS else (reader.kinds.named(word),)


def list_kinds(reader: Reader) -> None:
    """Print the kinds of the cluster with their names."""
    rows = [(kind.where.plural, ",".join(kind.short_names), kind.api_version, kind.kind) for kind in reader.kinds.all()]
    out().lines(table(("NAME", "SHORTNAMES", "APIVERSION", "KIND"), rows))
