"""`paceline top`: resource usage of jobs, pods and nodes, and how full claims are."""

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import err, out
from paceline.cli.output.table import share, size, table
from paceline.sdk.reader import Reader
from paceline.sdk.usage import ResourceUsage, claim_usages, job_usages, node_usages, pod_usages

MIB = 2**20
ORDERS = {"cpu": lambda usage: -usage.cpu_milli, "memory": lambda usage: -usage.memory_bytes}


@click.command()
@click.argument("resource", type=click.Choice(["jobs", "pods", "nodes", "claims"]), default="jobs")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show all namespaces.")
@click.option("--sort-by", type=click.Choice(list(ORDERS)), help="Sort by usage, highest first.")
@with_cluster_options
def top(*, cluster: ClusterOptions, resource: str, everywhere: bool, sort_by: str | None) -> None:
    r"""Show the resource usage of jobs, pods, nodes or claims.

    \b
    Examples:
      paceline top                      # jobs, with all of their pods
      paceline top pods --sort-by cpu
      paceline top nodes
      paceline top claims               # used and total capacity
    """
    if resource == "claims":
        show_claims(cluster, everywhere=everywhere)
        return
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
