"""`paceline top`: resource usage of jobs, pods and nodes, and how full claims are."""

from dataclasses import replace
from typing import Any

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import err, out
from paceline.cli.output.table import seconds_of, share, size, table
from paceline.cli.output.usage_chart import usage_charts, usage_table
from paceline.sdk.reader import Reader
from paceline.sdk.usage import ResourceUsage, claim_usages, job_usages, node_usages, pod_usages
from paceline.sdk.usage_series import usage_history

MIB = 2**20


def read_duration(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Parse --since: a duration."""
    if value is None:
        return None
    try:
        seconds = seconds_of(value)
    except ValueError:
        seconds = 0
    if not seconds:
        raise click.BadParameter(f"{value!r} is not a duration; write one such as 30m, 6h or 2d", param=param)
    return seconds


ORDERS = {"cpu": lambda usage: -usage.cpu_milli, "memory": lambda usage: -usage.memory_bytes}


@click.command()
@click.argument("resource", type=click.Choice(["jobs", "pods", "nodes", "claims"]), default="jobs")
@click.argument("name", default="")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show all namespaces.")
@click.option("--sort-by", type=click.Choice(list(ORDERS)), help="Sort by usage, highest first.")
@click.option("--since", "seconds", callback=read_duration, help="Show the usage over this time, such as 30m or 1d.")
@with_cluster_options
def top(cluster: ClusterOptions, resource: str, name: str, **options: Any) -> None:
    r"""Show the resource usage of jobs, pods, nodes or claims.

    With --since, charts show the usage over time: a line for each, or, with NAME, all that one used, also after it was
    deleted. Five-second values are kept for two hours, those of minutes for a day, those of quarters of an hour for a
    month.

    \b
    Examples:
      paceline top                      # jobs, with all of their pods
      paceline top pods --sort-by cpu
      paceline top nodes
      paceline top claims               # used and total capacity
      paceline top --since 1h           # over time
      paceline top jobs mnist --since 1d
    """
    everywhere: bool = options["everywhere"]
    if options["seconds"] is not None:
        show_history(cluster, resource, name, options["seconds"], everywhere=everywhere)
        return
    if name:
        raise click.UsageError("NAME shows usage over time; add --since, such as --since 1h")
    if resource == "claims":
        show_claims(cluster, everywhere=everywhere)
        return
    show_now(cluster, resource, options["sort_by"], everywhere=everywhere)


def show_now(cluster: ClusterOptions, resource: str, sort_by: str | None, *, everywhere: bool) -> None:
    """Print what is used now."""
    with cluster.reader() as reader:
        usages = read(reader, resource, everywhere=everywhere)
    if sort_by:
        usages = tuple(sorted(usages, key=ORDERS[sort_by]))
    if not usages:
        err().line(f"No {resource} have metrics yet.")
        return
    has_namespace = everywhere and resource != "nodes"
    header = ("NAME", *(("PODS",) if resource == "jobs" else ()), "CPU(CORES)", "MEMORY")
    rows = [row(usage, is_job=resource == "jobs", has_namespace=has_namespace) for usage in usages]
    out().lines(table(("NAMESPACE", *header) if has_namespace else header, rows))


def show_history(cluster: ClusterOptions, resource: str, name: str, seconds: int, *, everywhere: bool) -> None:
    """Print charts of what was used over time."""
    if resource == "claims" or everywhere:
        raise click.UsageError("--since shows jobs and pods of one namespace, and nodes")
    with cluster.reader() as reader:
        kind = {"jobs": "job", "pods": "pod"}.get(resource, "")
        target = {"namespace": reader.namespace, **({kind: name} if name else {})} if kind else {"node": "true"}
        history = usage_history(reader.cluster, target, seconds)
    series = tuple(item for item in history.series if not kind or getattr(item, kind))
    if not series:
        err().line(f"No usage of {name or resource} was recorded in this time.")
    elif name or not kind:
        out().lines(usage_charts(replace(history, series=series), out().width))
    else:
        names = sorted({getattr(item, kind) for item in series})
        groups = {name: [item for item in series if getattr(item, kind) == name] for name in names}
        out().lines(usage_table(history, groups, out().width))


def show_claims(cluster: ClusterOptions, *, everywhere: bool) -> None:
    """Print how full claims are."""
    with cluster.reader() as reader:
        claims = claim_usages(reader.cluster, "" if everywhere else reader.namespace)
    if not claims:
        err().line("No claims have metrics yet.")
        return
    rows = []
    for claim in claims:
        used, capacity = claim.used_bytes, claim.capacity_bytes
        cells = (claim.name, size(used), size(capacity), share(used, capacity))
        rows.append((claim.namespace, *cells) if everywhere else cells)
    header = ("NAME", "USED", "CAPACITY", "USE%")
    out().lines(table(("NAMESPACE", *header) if everywhere else header, rows))


def read(reader: Reader, resource: str, *, everywhere: bool) -> tuple[ResourceUsage, ...]:
    """Return the usage of the requested resource."""
    namespace = "" if everywhere else reader.namespace
    if resource == "nodes":
        return node_usages(reader.cluster)
    return (job_usages if resource == "jobs" else pod_usages)(reader.cluster, namespace)


def row(used: ResourceUsage, *, is_job: bool, has_namespace: bool) -> tuple[str, ...]:
    """Return the table cells of one row."""
    count = (str(used.pods),) if is_job else ()
    cells = (used.name, *count, f"{used.cpu_milli}m", f"{used.memory_bytes // MIB}Mi")
    return (used.namespace, *cells) if has_namespace else cells
