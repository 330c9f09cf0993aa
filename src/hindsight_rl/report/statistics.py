"""Arithmetic on curves, and statistics over the seeds of a task with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ..records import Array

Curve = tuple[Array, Array]  # x, y: (N,) each, x increasing
MAX_POINTS = 600  # per curve: more than a screen can show
TRIMMED_FRACTION = 0.25  # of the values at each end, excluded from an interquartile mean
BOOTSTRAP_SAMPLES = 10_000
INTERVAL = (0.025, 0.975)  # quantiles of a 95 % interval


def finite_points(x: Array, y: Array) -> Curve:
    """Return the points of a curve that are finite."""
    is_finite = np.isfinite(x) & np.isfinite(y)
    return x[is_finite], y[is_finite]


def mean_window(count: int) -> int:
    """Return the window of the moving mean of a curve with `count` points: count / 20, at least 1 and at most 50."""
    return int(np.clip(count // 20, 1, 50))


def moving_mean(y: Array, window: int) -> Array:
    """Return the mean of each value and the `window` - 1 values before it, (N,). The first values have fewer."""
    if not len(y):
        return y
    sums = np.concatenate(([0.0], np.cumsum(y, dtype=np.float64)))
    stop = np.arange(1, len(y) + 1)
    start = np.maximum(stop - window, 0)
    return np.asarray((sums[stop] - sums[start]) / (stop - start))


def thin(x: Array, y: Array, max_points: int = MAX_POINTS) -> Curve:
    """Return at most `max_points` points of a curve: the lowest and the highest of each section, so that spikes remain."""
    if len(x) <= max_points:
        return x, y
    edges = np.linspace(0, len(x), max_points // 2 + 1).astype(np.int64)
    kept = [{a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b]))} for a, b in pairwise(edges)]
    index = np.array([row for rows in kept for row in sorted(rows)])
    return x[index], y[index]


def median_curve(curves: Sequence[Curve], points: int = 200) -> tuple[Array, Array, Array, Array]:
    """Return x, and the median, minimum and maximum of several curves at x, each (points,).

    Values between the points of a curve are interpolated linearly. Beyond its ends a curve keeps its first or last value.
    """
    grid = np.linspace(min(x[0] for x, _ in curves), max(x[-1] for x, _ in curves), points)
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    return grid, np.asarray(np.median(values, 0)), values.min(0), values.max(0)


def mean(values: Array) -> Array:
    """Return the mean over the last axis, (...,)."""
    return np.asarray(values.mean(-1))


def interquartile_mean(values: Array) -> Array:
    """Return the mean over the last axis without its lowest and highest quarter (Agarwal et al. 2021), (...,).

    The number of excluded values at each end is rounded down.
    """
    excluded = int(TRIMMED_FRACTION * values.shape[-1])
    return np.asarray(np.sort(values, -1)[..., excluded : values.shape[-1] - excluded].mean(-1))


def bootstrap_interval(
    strata: Sequence[Array],
    statistic: Callable[[Array], Array],
    rng: np.random.Generator,
    samples: int = BOOTSTRAP_SAMPLES,
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic from a stratified bootstrap (Agarwal et al. 2021).

    strata: the values of the runs of each task, (n,) each. Each bootstrap sample draws n of them with replacement.
    statistic: function (..., N) -> (...,).
    """
    resampled = [stratum[rng.integers(len(stratum), size=(samples, len(stratum)))] for stratum in strata]
    low, high = np.quantile(statistic(np.concatenate(resampled, axis=1)), INTERVAL)
    return float(low), float(high)
