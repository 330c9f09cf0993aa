"""Statistics that training and report share: intervals, the best evaluation, what is solved, possible returns, curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from . import Array

Curve = tuple[Array, Array]  # x, y: (N,) each, x increasing
MAX_POINTS = 600  # per curve: more than a screen can show
TRIMMED_FRACTION = 0.25  # of the values at each end, excluded from an interquartile mean
BOOTSTRAP_SAMPLES = 10_000
INTERVAL = (0.025, 0.975)  # quantiles of a 95 % interval
Z_95 = 1.959964  # standard errors above and below a mean in a 95 % interval
FLOAT32_ROUNDING = 1e-6  # relative to the size of the numbers: float32 rounds to about 1e-7
NOISY_COPY = 0.01  # of the variance of a dimension of the goal, which the noise of a column that shows it may have
SAME_NOISE = 2.0  # times the variance of the noise of one column: another one may have the same noise
LARGEST_GOAL = 2048.0  # times the range of the goals: above it float32 rounds goals to more than 1e-4 of that range


def are_noisy_copies(errors: Array, variances: Array, largest_noise: float = NOISY_COPY) -> Array:
    """Return which dimensions of a goal are shown by the column nearest to them, up to little noise, (g,) bool.

    A dimension that hardly varies, as the height of what lies on a table, may have the noise of the others.

    errors: mean squared difference between each dimension and its nearest column, (g,). variances: of the dimensions, (g,).
    largest_noise: fraction of the variance.
    """
    are_near = errors < largest_noise * variances
    return np.asarray(are_near | (errors <= SAME_NOISE * errors[are_near].max(initial=0.0)))


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a success rate (Wilson 1927).

    successes: number of successful episodes.
    episodes: number of episodes, at least 1.
    """
    rate, correction = successes / episodes, Z_95 * Z_95 / episodes
    center = (rate + correction / 2) / (1 + correction)
    half = Z_95 * math.sqrt(rate * (1 - rate) / episodes + correction / (4 * episodes)) / (1 + correction)
    low = 0.0 if successes == 0 else max(0.0, center - half)
    high = 1.0 if successes == episodes else min(1.0, center + half)
    return low, high


def rank_of_evaluation(success_low: float, return_mean: float | None) -> tuple[float, float]:
    """Return the rank of an evaluation among those of a run. The best one has the highest; of equal ones, it is the latest.

    The success that an evaluation proves decides, so that 20 lucky episodes do not rank above 100 good ones. If several
    prove the same, the return decides.

    success_low: lower end of the interval of the success rate, see `wilson_interval`.
    return_mean: a return that is not finite, or None, counts as the lowest.
    """
    return success_low, return_mean if return_mean is not None and math.isfinite(return_mean) else -math.inf


def return_range(reward_low: float, reward_high: float, discount: float) -> tuple[float, float]:
    """Return the lowest and the highest possible discounted return.

    The bounds are those of one last step and of an endless episode: rewards of -1 and 0 give -1 / (1 - discount) and 0.
    A bound is infinite if the reward has none.

    reward_low, reward_high: range of the reward of one step.
    discount: factor per step, at least 0 and below 1.
    """
    horizon = 1.0 / (1.0 - discount)
    return min(reward_low, reward_low * horizon), max(reward_high, reward_high * horizon)


def first_solved(success_rates: Sequence[float], solved_at: float, solved_evaluations: int) -> int | None:
    """Return the index of the first evaluation of a series that counts as solved, or None.

    The series is the first `solved_evaluations` evaluations in a row with a success rate of at least `solved_at`.

    success_rates: one per evaluation, oldest first, each in [0, 1].
    solved_evaluations: length of the series, at least 1.
    """
    length = 0
    for index, rate in enumerate(success_rates):
        length = length + 1 if rate >= solved_at else 0
        if length == solved_evaluations:
            return index - length + 1
    return None


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


def mean_interval(means: Array, deviations: Array, counts: Array) -> tuple[Array, Array]:
    """Return the lower and upper ends of the 95 % intervals of means, (N,) each. Arguments: (N,), of the values."""
    half = Z_95 * deviations / np.sqrt(np.maximum(counts, 1))
    return means - half, means + half


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
