"""A line chart as text, of Braille patterns: 2 by 4 dots in every character."""

import math
from collections.abc import Sequence

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
EMPTY = 0x2800
LABEL = 10


def text_chart(xs: Sequence[float], ys: Sequence[float], *, width: int = 60, height: int = 8) -> list[str]:
    """Return the lines of a chart with the highest and lowest value at its side; nothing without two finite points."""
    points = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and math.isfinite(y)]
    if len(points) < 2:
        return []
    low, high = min(y for _, y in points), max(y for _, y in points)
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    columns, rows = width * 2, height * 4
    cells = [[EMPTY] * width for _ in range(height)]
    for x, y in points:
        column = _place(x, first, last, columns)
        row = rows - 1 - _place(y, low, high, rows)
        cells[row // 4][column // 2] |= DOTS[column % 2][row % 4]
    labels = [short_number(high), *[""] * (height - 2), short_number(low)]
    lines = [f"{label:>{LABEL}} ┤{''.join(map(chr, row))}" for label, row in zip(labels, cells, strict=True)]
    ends = f"{short_number(first)}{short_number(last):>{max(1, width - len(short_number(first)))}}"
    return [*lines, f"{'':>{LABEL}}  {ends}"]


def _place(value: float, low: float, high: float, count: int) -> int:
    return 0 if high == low else min(count - 1, int((value - low) / (high - low) * (count - 1) + 0.5))


def short_number(value: float) -> str:
    """Return a number with at most six significant digits."""
    return f"{value:.6g}"
