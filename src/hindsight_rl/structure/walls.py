"""Whether something stops a body inside the range of its positions, as walls between rooms do."""

from __future__ import annotations

import numpy as np

from .steps import EXCEPTIONS, LITTLE, MOSTLY, TINY, Steps


def count_stopped(steps: Steps) -> tuple[int, int]:
    """Return in how many episodes something stops a body where others go on, and the number of episodes.

    A linear function of the action and the last displacement must explain the displacements in most steps; (0, number) if
    it does not. Then a body is stopped where it moves less than half as far along an axis as this function says. That is
    inside if EXCEPTIONS of all positions lie farther in this direction: an outer wall is not.
    """
    displacement, n_episodes = steps.displacement, len(np.unique(steps.episode))
    inputs = np.column_stack([steps.action, steps.of_step_before(displacement), np.ones(len(steps))])
    fits, least, before = np.ones(len(steps), np.bool_), np.inf, np.nan
    while not least >= before:  # to the half of the steps that fits best (Rousseeuw and Van Driessen 1999)
        expected = inputs @ np.linalg.lstsq(inputs[fits], displacement[fits], rcond=None)[0]
        error = np.linalg.norm(displacement - expected, axis=1)
        least, before = float(np.median(error)), least
        fits = error <= least
    if least > EXCEPTIONS * np.median(np.linalg.norm(displacement, axis=1)):
        return 0, n_episodes
    is_fast = np.abs(expected) > np.maximum(np.median(np.abs(displacement), axis=0), TINY)
    is_slowed = is_fast & (displacement * np.sign(expected) < MOSTLY * np.abs(expected))
    positions, wanted = np.sort(steps.achieved_goal, axis=0), steps.achieved_goal + expected
    below = np.stack([np.searchsorted(*each) for each in zip(positions.T, wanted.T, strict=True)], 1) / len(steps)
    is_inside = np.where(expected > 0, 1 - below, below) > EXCEPTIONS
    return len(np.unique(steps.episode[(is_slowed & is_inside).any(1)])), n_episodes


def are_walls(n_stopped: int, n_episodes: int) -> bool:
    """Return whether a body is stopped in so many episodes that no chance collision explains it."""
    return n_stopped > LITTLE * n_episodes
