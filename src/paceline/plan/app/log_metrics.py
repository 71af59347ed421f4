"""What a trainer counted, read from its last lines: the last value of each name."""

import re
from collections.abc import Iterable, Mapping

NUMBER = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# `Test-Accuracy: 0.89`, `Total Time: 1664.68s`, `loss=0.31`; several on a line are parted by commas or spaces.
PAIR = re.compile(
    rf"(?:^|[,;\s])\s*(?P<name>[A-Za-z][A-Za-z0-9_/.-]*(?: [A-Z][A-Za-z0-9_-]*)?)\s*[:=]\s*"
    rf"(?P<value>{NUMBER})(?P<unit>%|ms|s)?(?=$|[,;\s])"
)
# A line of its own: what a trainer says in the end, not on its way.
CLOSING = re.compile(rf"\s*[A-Za-z][A-Za-z0-9_/. -]*[:=]\s*{NUMBER}(?:%|ms|s)?\s*")
MAX_METRICS = 32
MAX_NAME = 40


def metrics_in(lines: Iterable[str]) -> Mapping[str, str]:
    """Return the last value of every metric, as it was written; of closing lines alone, if there are any."""
    log_lines = tuple(lines)
    closing = tuple(line for line in log_lines if CLOSING.fullmatch(line))
    metrics: dict[str, str] = {}
    for line in closing or log_lines:
        for pair in PAIR.finditer(line):
            name = pair["name"]
            if len(name) > MAX_NAME or (name not in metrics and len(metrics) >= MAX_METRICS):
                continue
            metrics[name] = pair["value"] + (pair["unit"] or "")
    return metrics
