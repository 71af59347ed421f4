"""`paceline metrics`: the training curves of a job, from event files or from its log."""

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output import formats
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.output.table import table
from paceline.cli.output.text_chart import short_number, text_chart
from paceline.cli.sessions import open_session
from paceline.errors import BadRequest, NotFound
from paceline.sdk.files import split_location
from paceline.sdk.metrics import Metric, MetricPoint, TrainingMetrics

HEADER = ("METRIC", "RUN", "VALUES", "STEP", "LAST", "BEST", "LOWEST", "HIGHEST")


@click.command()
@click.argument("name")
@click.argument("metric", required=False)
@click.option("--from", "location", metavar="CLAIM:FOLDER", help="Read the event files in a folder of a claim.")
@click.option("--logs", "uses_logs", is_flag=True, help="Read the log of the job instead of event files.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "csv"]), help="Output format.")
@with_cluster_options
def metrics(*, cluster: ClusterOptions, name: str, metric: str | None, **options: Any) -> None:
    r"""Show the training metrics of a job, and charts of them.

    Metrics come from the event files of the job's TensorBoard (spec.tensorboardSpec), or else from lines such as
    `step 100 loss=0.31` in its log. The best value is the lowest of a loss or error, the highest of an accuracy.

    \b
    Examples:
      paceline metrics digits
      paceline metrics digits loss
      paceline metrics digits --from results:logs -o csv > digits.csv
    """
    location, uses_logs, output = options["location"], bool(options["uses_logs"]), options["output"]
    if uses_logs and location:
        raise BadRequest("specify only one of --from and --logs")
    claim, folder = split_location(location or "")
    with open_session(cluster) as session:
        job_metrics = session.job(name).metrics(claim=claim, folder=folder, uses_logs=uses_logs)
    chosen = [entry for entry in job_metrics.metrics if metric is None or entry.name == metric]
    if metric is not None and not chosen:
        names = sorted({entry.name for entry in job_metrics.metrics})
        raise NotFound(f"{name} has no metric {metric!r}; it has: {', '.join(names) or 'none'}")
    if text := formats.as_text(document(job_metrics, chosen), output):
        out().document(text)
    elif output == "csv":
        out().document(as_csv(chosen))
    elif not chosen:
        err().line(f"No metrics of {name} yet.")
        print_hint(
            "write event files to the folder of spec.tensorboardSpec, or print lines such as: step 100 loss=0.31"
        )
    else:
        show(chosen, has_chart=metric is not None)


def show(metrics: list[Metric], *, has_chart: bool) -> None:
    """Print a table, and charts if they are asked for."""
    out().lines(table(HEADER, [row(metric) for metric in metrics]))
    for metric in metrics if has_chart else ():
        steps, values = [point.step for point in metric.points], [point.value for point in metric.points]
        out().line("")
        out().line(f"{metric.name} ({metric.run})", "bold")
        out().lines(text_chart(steps, values))


def row(metric: Metric) -> tuple[str, ...]:
    """Return the table cells of one metric."""
    points = (metric.last, metric.best, metric.min, metric.max)
    return (metric.name, metric.run, str(metric.count), str(metric.last.step), *map(_value, points))


def _value(point: MetricPoint | None) -> str:
    return "<none>" if point is None else short_number(point.value)


def document(metrics: TrainingMetrics, chosen: list[Metric]) -> dict[str, object]:
    """Return the metrics as an object for JSON and YAML."""
    return {"kind": "MetricList", "source": metrics.source, "items": [_item(metric) for metric in chosen]}


def _item(metric: Metric) -> dict[str, object]:
    marks = {"last": metric.last, "best": metric.best, "min": metric.min, "max": metric.max}
    return {
        "name": metric.name,
        "run": metric.run,
        "count": metric.count,
        **{key: _point(point) for key, point in marks.items() if point is not None},
        "points": [_point(point) for point in metric.points],
    }


def _point(point: MetricPoint) -> dict[str, object]:
    value = point.value if math.isfinite(point.value) else str(point.value)
    return {"step": point.step, "time": point.time, "value": value}


def as_csv(metrics: list[Metric]) -> str:
    """Return one line per point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("run", "metric", "step", "time", "value"))
    writer.writerows(_records(metrics))
    return text.getvalue()


def _records(metrics: list[Metric]) -> Iterator[tuple[object, ...]]:
    for metric in metrics:
        for point in metric.points:
            yield metric.run, metric.name, point.step, point.time, point.value
