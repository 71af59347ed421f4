"""Use over time, from whichever source has it: the nodes' own series, Prometheus, or the metrics API."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, controller_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.quantity import amounts, milli, whole
from paceline.model import well_known_labels

MILLI = 1000
BLOCKS = "▁▂▃▄▅▆▇█"
# How a range of Prometheus becomes the values of a field: one series per container, or per pod for the network.
PROMETHEUS_QUERIES: Mapping[str, str] = {
    "cpu": 'sum by (pod, container) (rate(container_cpu_usage_seconds_total{%s,container!=""}[%s]))',
    "memory": 'sum by (pod, container) (container_memory_working_set_bytes{%s,container!=""})',
    "diskRead": 'sum by (pod, container) (rate(container_fs_reads_bytes_total{%s,container!=""}[%s]))',
    "diskWrite": 'sum by (pod, container) (rate(container_fs_writes_bytes_total{%s,container!=""}[%s]))',
    "networkIn": "sum by (pod) (rate(container_network_receive_bytes_total{%s}[%s]))",
    "networkOut": "sum by (pod) (rate(container_network_transmit_bytes_total{%s}[%s]))",
    "gpu": "sum by (pod, container) (DCGM_FI_DEV_GPU_UTIL{%s}) / 100",
    "gpuMemory": "sum by (pod, container) (DCGM_FI_DEV_FB_USED{%s}) * 1048576",
}
# Rates over less than this have no meaning with the usual scrape interval.
LEAST_RATE_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeries:
    """What one container used over time; of a pod's network, the container is empty. Of the node, the pod is, too."""

    namespace: str = ""
    pod: str = ""
    uid: str = ""
    job: str = ""
    container: str = ""
    # The pod has been deleted.
    is_gone: bool = False
    # Seconds since 1970, at the end of each span.
    times: tuple[float, ...]
    # cpu in cores, memory in bytes, disk and network in bytes per second, gpu in GPUs; None where it is not known.
    mean: Mapping[str, tuple[float | None, ...]]
    most: Mapping[str, tuple[float | None, ...]]
    requests: Mapping[str, float]
    limits: Mapping[str, float]


def series_of(item: Object) -> UsageSeries:
    """Return one item of a node's answer."""
    values: Mapping[str, Mapping[str, list[float | None]]] = item["values"]
    return UsageSeries(
        namespace=item.get("namespace", ""),
        pod=item.get("pod", ""),
        uid=item.get("uid", ""),
        job=item.get("job", ""),
        container=item.get("container", ""),
        is_gone=bool(item.get("isGone")),
        times=tuple(item["times"]),
        mean={name: tuple(kinds["mean"]) for name, kinds in values.items()},
        most={name: tuple(kinds["max"]) for name, kinds in values.items()},
        requests=item.get("requests") or {},
        limits=item.get("limits") or {},
    )


def total(series: Iterable[UsageSeries], field: str) -> dict[float, float]:
    """Return what several containers used together, by time."""
    sums: dict[float, float] = {}
    for item in series:
        for time, value in zip(item.times, item.mean.get(field, ()), strict=False):
            if value is not None:
                sums[time] = sums.get(time, 0.0) + value
    return dict(sorted(sums.items()))


def columns_of(values: Mapping[float, float], start: float, end: float, width: int) -> list[float | None]:
    """Return the mean of the values in each of `width` equal parts of a span of time; None where there is none."""
    groups: list[list[float]] = [[] for _ in range(width)]
    for time, value in values.items():
        index = int((time - start) / (end - start) * width)
        # A value stands at the end of its own span, which may be the end of the whole one.
        if start < time <= end:
            groups[min(index, width - 1)].append(value)
    columns = [sum(group) / len(group) if group else None for group in groups]
    # Samples are seldom exactly as far apart as columns are wide.
    return [
        columns[index - 1] if value is None and 0 < index < width - 1 and columns[index + 1] is not None else value
        for index, value in enumerate(columns)
    ]


def sparkline(columns: Sequence[float | None], top: float) -> str:
    """Return a chart of one line; a column without a value is blank."""
    return "".join(" " if value is None else BLOCKS[_level(value, top, len(BLOCKS)) - 1] for value in columns)


def chart(columns: Sequence[float | None], top: float, height: int) -> list[str]:
    """Return a chart of several lines, the highest first."""
    steps = len(BLOCKS)
    levels = [0 if value is None else _level(value, top, height * steps) for value in columns]
    rows = []
    for row in range(height - 1, -1, -1):
        parts = (min(max(level - row * steps, 0), steps) for level in levels)
        rows.append("".join(BLOCKS[part - 1] if part else " " for part in parts))
    return rows


def _level(value: float, top: float, levels: int) -> int:
    return min(max(round(value / top * levels), 1), levels) if top > 0 else 1


def pod_item(
    pod: Object, container: str, times: Sequence[float], values: Mapping[str, Sequence[float | None]]
) -> Object:
    """Return a series in the form of a node's answer, from another source; an empty container is the pod's network."""
    spec = next((spec for spec in containers_of(pod) if spec["name"] == container), {})
    resources = spec.get("resources") or {}
    kinds = {name: {"min": list(column), "mean": list(column), "max": list(column)} for name, column in values.items()}
    return {
        "namespace": namespace_of(pod),
        "pod": name_of(pod),
        "uid": uid_of(pod),
        "job": str(labels_of(pod).get(well_known_labels.OWNER_NAME) or ""),
        "ownerUid": (controller_of(pod) or {}).get("uid", ""),
        "container": container,
        "isGone": False,
        "requests": amounts(resources.get("requests")),
        "limits": amounts(resources.get("limits")),
        "times": list(times),
        "values": kinds,
    }


def metrics_items(pods: Iterable[Object], metrics: Iterable[Object], now: float) -> list[Object]:
    """Return what the metrics API says now, one point for each container."""
    by_name = {name_of(pod): pod for pod in pods}
    return [
        pod_item(by_name[name_of(entry)], str(container["name"]), [now], _usage_now(container["usage"]))
        for entry in metrics
        if name_of(entry) in by_name
        for container in entry["containers"]
    ]


def metrics_node_item(nodes: Iterable[Object], metrics: Iterable[Object], now: float) -> Object:
    """Return what all nodes together use now."""
    used = [entry["usage"] for entry in metrics]
    capacities = [(node.get("status") or {}).get("allocatable") or {} for node in nodes]
    values = {
        "cpu": [sum(milli(usage["cpu"]) for usage in used) / MILLI],
        "memory": [sum(whole(usage["memory"]) for usage in used)],
    }
    kinds = {name: {"min": column, "mean": column, "max": column} for name, column in values.items()}
    limits = {
        "cpu": sum(milli(capacity.get("cpu", 0)) for capacity in capacities) / MILLI,
        "memory": sum(whole(capacity.get("memory", 0)) for capacity in capacities),
    }
    return {"times": [now], "values": kinds, "requests": {}, "limits": limits}


def prometheus_query(field: str, namespace: str, pods: Iterable[str], step: int) -> str:
    """Return the query for one field of some pods, in whose names a pattern interprets dots only."""
    names = "|".join(name.replace(".", r"\\.") for name in pods)
    selector = f'namespace="{namespace}",pod=~"{names}"'
    query = PROMETHEUS_QUERIES[field]
    return query % ((selector, f"{max(step, LEAST_RATE_SECONDS)}s") if query.count("%s") > 1 else selector)


def prometheus_items(pods: Iterable[Object], answers: Mapping[str, Object]) -> list[Object]:
    """Return the answers of Prometheus, by field, as series of containers and pods."""
    by_name = {name_of(pod): pod for pod in pods}
    columns: dict[tuple[str, str], dict[str, dict[float, float]]] = {}
    for field, answer in answers.items():
        for result in (answer.get("data") or {}).get("result") or ():
            labels = result["metric"]
            key = (str(labels.get("pod", "")), str(labels.get("container", "")))
            if key[0] in by_name:
                values = {float(time): float(value) for time, value in result["values"] if value != "NaN"}
                columns.setdefault(key, {})[field] = values
    items = []
    for (pod, container), fields in columns.items():
        times = sorted({time for values in fields.values() for time in values})
        aligned = {field: [values.get(time) for time in times] for field, values in fields.items()}
        items.append(pod_item(by_name[pod], container, times, aligned))
    return items


def _usage_now(usage: Mapping[str, str]) -> dict[str, list[float | None]]:
    return {"cpu": [milli(usage["cpu"]) / MILLI], "memory": [float(whole(usage["memory"]))]}
