"""Use over time of jobs, pods and nodes, as the nodes keep it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.apimachinery.meta import name_of
from paceline.client.interface import NODES
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound
from paceline.presentation.usage_series import UsageSeries, series_of

DEFAULT_SECONDS, DEFAULT_POINTS = 3600, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """The series of a span of time; start and end in seconds since 1970, by the cluster's clock."""

    start: float
    end: float
    series: tuple[UsageSeries, ...]


def usage_history(
    cluster: DirectCluster,
    target: Mapping[str, str],
    seconds: float = DEFAULT_SECONDS,
    points: int = DEFAULT_POINTS,
) -> UsageHistory:
    """Return what a target used in the last seconds.

    The target has namespace and, also for deleted pods, job, pod or uid; or node=true. NotFound if no node keeps this.
    """
    query = {**target, "seconds": f"{seconds:.0f}", "points": str(points)}
    names = [name_of(node) for node in cluster.list(NODES).items]
    answers = []
    for name in names:
        path = f"{NODES.path('', name)}/proxy/stats/series"
        try:
            answers.append(json.loads(b"".join(cluster.stream(path, query))))
        except (NotFound, Forbidden, MethodNotAllowed, BadRequest):
            continue  # A kubelet, which keeps nothing.
    if not answers:
        raise NotFound("no node of this cluster keeps use over time; the nodes of the embedded cluster do")
    return UsageHistory(
        start=min(float(answer["from"]) for answer in answers),
        end=max(float(answer["to"]) for answer in answers),
        series=tuple(series_of(item) for answer in answers for item in answer["items"]),
    )
