"""Arithmetic on curves: moving means, thinning, rates, the median of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Curve = tuple[Array, Array]  # x and y of the same length, x rising
MOST_POINTS = 600  # of a curve: more than a screen can show


def known(x: Array, y: Array) -> Curve:
    """The points whose y is a finite number."""
    is_known = np.isfinite(y)
    return x[is_known], y[is_known]


def window_of(count: int) -> int:
    """How many of `count` values a moving mean takes: a twentieth, at most 50."""
    return int(np.clip(count // 20, 1, 50))


def moving_mean(y: Array, window: int) -> Array:
    """The mean of each value and the `window` - 1 before it; of fewer at the start."""
    if not len(y):
        return y
    sums = np.concatenate(([0.0], np.cumsum(y, dtype=np.float64)))
    stop = np.arange(1, len(y) + 1)
    start = np.maximum(stop - window, 0)
    return np.asarray((sums[stop] - sums[start]) / (stop - start))


def thin(x: Array, y: Array, most: int = MOST_POINTS) -> Curve:
    """At most `most` points: of each stretch the lowest and the highest, so that no spike is lost."""
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(np.int64)
    keep = [{a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b]))} for a, b in pairwise(edges)]
    index = np.array([row for rows in keep for row in sorted(rows)])
    return x[index], y[index]


def rate(count: Array, seconds: Array) -> Array:
    """How much `count` grew per second since the record before; NaN where no time passed."""
    grown, passed = np.diff(count, prepend=0.0), np.diff(seconds, prepend=0.0)
    return np.asarray(np.divide(grown, passed, out=np.full(len(grown), np.nan), where=passed > 0))


def middle(curves: Sequence[Curve], points: int = 200) -> tuple[Array, Array, Array, Array]:
    """x, and the median, the lowest and the highest of several curves there, each by straight lines between its points.

    A curve that ends before others counts with its last value from there on, one that begins later with its first.
    """
    ends = [(x[0], x[-1]) for x, _ in curves]
    grid = np.linspace(min(a for a, _ in ends), max(b for _, b in ends), points)
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    return grid, np.asarray(np.median(values, 0)), values.min(0), values.max(0)


def covered_share(asked: Array, reached: Array, cells: int) -> float:
    """How much of where goals were asked was also reached: the share of the cells of a grid over the asked goals.

    asked, reached: (N, d), (M, d). The grid has `cells` on a side, over the range of the first two
    numbers of the asked goals.
    """
    asked, reached = asked[:, :2], reached[:, :2]
    low, high = asked.min(0), asked.max(0)
    width = np.where(high > low, high - low, 1.0)

    def cells_of(goals: Array) -> set[tuple[int, ...]]:
        inside = goals[((goals >= low) & (goals <= high)).all(1)]
        return set(map(tuple, np.minimum((inside - low) / width * cells, cells - 1).astype(int).tolist()))

    wanted = cells_of(asked)
    return len(wanted & cells_of(reached)) / len(wanted)
