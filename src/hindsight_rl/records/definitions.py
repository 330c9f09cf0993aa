"""Definitions that training and report share: success intervals, the best evaluation, possible returns, what is solved."""

from __future__ import annotations

import math
from collections.abc import Sequence

LARGEST_GOAL = 2048.0  # times the spread of the goals: above it float32 rounds goals to more than 1e-4 of their spread


def wilson_interval(successes: int, episodes: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % confidence interval of a success rate (Wilson 1927).

    successes: number of successful episodes.
    episodes: number of episodes, at least 1.
    z: quantile of the normal distribution; the default gives 95 %.
    """
    rate, correction = successes / episodes, z * z / episodes
    center = (rate + correction / 2) / (1 + correction)
    half = z * math.sqrt(rate * (1 - rate) / episodes + correction / (4 * episodes)) / (1 + correction)
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
