"""How random actions should be: repeated, so that a slow body gets far, or of a fraction of the range, if that suffices.

A body with more joints than its goal has dimensions is often so strong that most of its range only throws it over: an ant
that acts with its full range lies on its back within 20 to 250 steps, and walks as far with an eighth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array, ArraySpec, Episode
from ..records.statistics import FLOAT32_ROUNDING
from .steps import ALIKE, HARDLY, LITTLE, ROUNDED, Steps, correlations

FAR_STEPS = 40  # steps to a goal at the speed of random actions
SMALL_FRACTION = 0.125  # fraction of the action range
AS_FAR = 2 * SMALL_FRACTION  # of the displacement under the full action range; half of it if displacements are proportional
WINDOW_STEPS = 10  # steps, in which the displacements of single steps add up or cancel out


@dataclass(frozen=True)
class Inertia:
    """correlation: of successive displacements, without their mean in each episode, -1 to 1.

    steps_to_goal: at the speed that 5 % of the random steps exceed; the number of these steps if nothing moved. Both are
        those of the dimension of the goal that takes the most steps.
    starts_apart: mean distance between the starts of episodes, relative to that between start and goal.
    has_speed: whether a dimension of the goal is the speed of another. A path between positions does not say then how a
        state is reached: a car that must take a run-up first moves away from its goal.
    broken: fraction of the episodes that ended without a success, before any limit. A body that falls must first learn
        not to, and to seek what was rarely visited makes it fall.
    """

    correlation: float
    steps_to_goal: float
    starts_apart: float = 0.0
    has_speed: bool = False
    broken: float = 0.0

    @property
    def keeps_speed(self) -> bool:
        """Whether single random actions cancel out before they get anywhere."""
        return self.correlation >= ALIKE

    @property
    def is_far(self) -> bool:
        """Whether goals are many steps away."""
        return self.steps_to_goal >= FAR_STEPS

    @property
    def starts_anywhere(self) -> bool:
        """Whether episodes start all over the task."""
        return self.starts_apart >= LITTLE

    @property
    def follows_paths(self) -> bool:
        """Whether paths of positions lead to goals."""
        return not self.has_speed and self.broken < LITTLE

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        broken = f"; {self.broken:.0%} of the random episodes end without a success" if self.broken else ""
        speed = "; a dimension of the goal is the speed of another" if self.has_speed else ""
        return (
            f"successive displacements of the achieved goal correlate with {self.correlation:.2f}, goals are "
            f"{self.steps_to_goal:.0f} steps away at the speed of random actions, and starts are "
            f"{self.starts_apart:.1f} times as far apart{speed}{broken}"
        )


def measure_inertia(steps: Steps) -> Inertia:
    """Return how the achieved goal moves in steps with independent random actions."""
    displacement, start = steps.next_achieved_goal - steps.achieved_goal, steps.starts_episode
    starts, gap = steps.achieved_goal[start], (steps.desired_goal - steps.achieved_goal)[start]
    distance, length = np.abs(gap).mean(0), np.linalg.norm(gap, axis=1).mean()
    speed = np.quantile(np.abs(displacement), 0.95, axis=0)
    still = np.where(distance > HARDLY * length, len(steps), 0)  # as the height of a car need not change
    needed = np.where(speed > 0, distance / np.where(speed > 0, speed, 1.0), still)
    slowest = int(needed.argmax())
    apart = np.linalg.norm(starts[:, None] - starts, axis=2)[np.triu_indices(len(starts), 1)]
    starts_apart = float(apart.mean() / max(length, ROUNDED)) if len(apart) else 0.0
    follows = correlations(displacement, steps.next_achieved_goal.T) * (1 - np.eye(steps.goal_size))
    has_speed = bool((follows >= ALIKE).any())
    correlation = _correlation(displacement[:, slowest], steps)
    return Inertia(correlation, float(needed[slowest]), starts_apart, has_speed, len(steps.failures) / len(starts))


def _correlation(displacement: Array, steps: Steps) -> float:
    """Return the correlation of the displacements (N,) of successive steps.

    The mean of each episode is subtracted: what moves everything all the time, as wind does, is no inertia.
    """
    _, episode = np.unique(steps.episode, return_inverse=True)
    left = displacement - (np.bincount(episode, displacement) / np.bincount(episode))[episode]
    later = ~steps.starts_episode
    now, before = left[later], np.roll(left, 1)[later]
    scale = float(np.sqrt(np.square(now).sum() * np.square(before).sum()))
    return float(now @ before) / scale if scale > 0 else 0.0


@dataclass(frozen=True)
class ActionRange:
    """Whether a fraction of the action range suffices.

    ratio: of the displacements with a fraction and with the full range, in the dimension of the goal where it is lowest.
    """

    ratio: float

    @property
    def small_suffices(self) -> bool:
        """Whether a fraction of the range moves the achieved goal far more than in proportion."""
        return self.ratio >= AS_FAR

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return (
            f"repeated random actions of {SMALL_FRACTION:g} of the range move the achieved goal {self.ratio:.2f} times as "
            f"far as those of the full range"
        )


def split_by_scale(episodes: Sequence[Episode], action: ArraySpec) -> tuple[list[Episode], list[Episode]]:
    """Return the episodes whose actions are all in the middle `SMALL_FRACTION` of the range, and the others.

    Episodes of at most `WINDOW_STEPS` steps are left out.
    """
    small: list[Episode] = []
    full: list[Episode] = []
    low, high = action.bounds()
    for episode in episodes:
        if len(episode.action) > WINDOW_STEPS:
            unit_action = np.abs(episode.action - (low + high) / 2) / ((high - low) / 2)
            (small if unit_action.max() <= SMALL_FRACTION * (1 + FLOAT32_ROUNDING) else full).append(episode)
    return small, full


def compare_ranges(small: Sequence[Episode], full: Sequence[Episode]) -> ActionRange:
    """Compare how far the achieved goal moves in `WINDOW_STEPS` steps with a fraction and with the full range.

    What moves it all the time, as wind does, is left out: the mean of each episode.
    """
    sizes = [np.mean([_mean_displacement(each) for each in episodes], axis=0) for episodes in (small, full)]
    moves = sizes[1] > 0
    return ActionRange(float((sizes[0][moves] / sizes[1][moves]).min()) if moves.any() else 0.0)


def _mean_displacement(episode: Episode) -> Array:
    displacement = episode.achieved_goal[WINDOW_STEPS:] - episode.achieved_goal[:-WINDOW_STEPS]
    return np.asarray(np.abs(displacement - displacement.mean(0)).mean(0))
