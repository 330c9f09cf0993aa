"""Whether something stops a body inside the range of its positions, as walls between rooms do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..records import Array
from .steps import EXCEPTIONS, LITTLE, MOSTLY, TINY, Steps


class Stops(NamedTuple):
    """In how many episodes something stops a body where others go on, and the number of episodes."""

    n_stopped: int
    n_episodes: int

    @property
    def are_walls(self) -> bool:
        """Whether it is stopped in so many episodes that no chance collision explains it."""
        return self.n_stopped > LITTLE * self.n_episodes

    def why_no_mirrors(self) -> str:
        """Return why no mirrors are looked for among walls."""
        return (
            f"no mirrors: something stops the body between other positions in {self.n_stopped} of {self.n_episodes} "
            "episodes; walls break mirrors"
        )

    def why_no_paths(self) -> str:
        """Return why no paths are planned where nothing stops the body."""
        return (
            "no planned paths: goals are far away, but nothing stopped the body between other positions in "
            f"{self.n_episodes} episodes, so straight lines may lead to them"
        )


def count_stopped(steps: Steps, random_steps: Steps) -> Stops | None:
    """Count the episodes in which something stops a body inside the range of its positions.

    A linear function of the action and the last displacement must explain the displacements in most random steps (a
    policy that learns may press against walls most of the time); None if it does not. A body is stopped where it moves
    less than half as far along an axis as this function says. That is inside if EXCEPTIONS of all positions lie farther
    in this direction: an outer wall is not.
    """
    n_episodes, weights = len(np.unique(steps.episode)), _explain(random_steps)
    if weights is None:
        return None
    expected = _inputs(steps) @ weights
    is_fast = np.abs(expected) > np.maximum(np.median(np.abs(random_steps.displacement), axis=0), TINY)
    is_slowed = is_fast & (steps.displacement * np.sign(expected) < MOSTLY * np.abs(expected))
    positions, wanted = np.sort(steps.achieved_goal, axis=0), steps.achieved_goal + expected
    below = np.stack([np.searchsorted(*each) for each in zip(positions.T, wanted.T, strict=True)], 1) / len(steps)
    is_inside = np.where(expected > 0, 1 - below, below) > EXCEPTIONS
    return Stops(len(np.unique(steps.episode[(is_slowed & is_inside).any(1)])), n_episodes)


def _inputs(steps: Steps) -> Array:
    return np.column_stack([steps.action, steps.of_step_before(steps.displacement), np.ones(len(steps))])


def _explain(steps: Steps) -> Array | None:
    """Return the weights (inputs, g) that explain the half of the displacements that fits best; None if they do not."""
    inputs, displacement = _inputs(steps), steps.displacement
    fits, least = np.ones(len(steps), np.bool_), np.inf
    while True:  # Rousseeuw and Van Driessen 1999
        weights = np.linalg.lstsq(inputs[fits], displacement[fits], rcond=None)[0]
        error = np.linalg.norm(displacement - inputs @ weights, axis=1)
        median = float(np.median(error))
        if not median < least:
            break
        fits, least = error <= median, median
    is_explained = least < EXCEPTIONS * np.median(np.linalg.norm(displacement, axis=1))
    return weights if is_explained else None
