"""Whether the desired goal takes part in the dynamics, so that relabelled transitions are wrong."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..records import Array
from .random_play import RandomEpisode

FIRST_STEPS = 5  # from the first difference, so that rounding cannot grow to a difference of some size
LEAST_GAP = 0.01  # of the displacement in these steps


class GoalEffect(NamedTuple):
    """How far two achieved goals lie apart to which the same actions led, with two desired goals.

    gap: the largest difference of a dimension. extent: how far the dimension that changes most does. n_steps: of both.
    """

    gap: float
    extent: float
    n_steps: int


def find_goal_effect(episodes: Sequence[RandomEpisode]) -> GoalEffect | None:
    """Return the largest effect of the desired goal, or None if there is none.

    episodes: with one seed and the same actions, each with another desired goal that was set in the same way. Those that
        start with different achieved goals are not compared: a reset may draw other random numbers for another goal.
    """
    achieved = [np.stack(each.observations["achieved_goal"]).astype(np.float64) for each in episodes]
    effects = []
    for first, second in itertools.combinations(achieved, 2):
        n_rows = min(len(first), len(second))
        first, second = first[:n_rows].reshape(n_rows, -1), second[:n_rows].reshape(n_rows, -1)
        if np.array_equal(first[0], second[0]) and _differ(first, second):
            extent = float(np.ptp(np.concatenate([first, second]), axis=0).max())
            effects.append(GoalEffect(float(np.abs(first - second).max()), extent, n_rows - 1))
    return max(effects, default=None)


def _differ(first: Array, second: Array) -> bool:
    """Return whether two sequences of achieved goals, (T, n), soon lie apart by more than rounding."""
    differing = np.flatnonzero((first != second).any(1))
    if not len(differing):
        return False
    rows = slice(differing[0] - 1, differing[0] + FIRST_STEPS)
    first, second = first[rows], second[rows]
    displacement = max(float(np.abs(part - part[0]).max()) for part in (first, second))
    return bool(np.abs(first - second).max() > LEAST_GAP * displacement)
