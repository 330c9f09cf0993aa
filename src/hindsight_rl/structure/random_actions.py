"""How random actions should be: repeated, so that a slow body gets far, or of a fraction of the range, if that suffices.

A body with more joints than its goal has dimensions is often so strong that most of its range only throws it over: an ant
that acts with its full range lies on its back within 20 to 250 steps, and walks as far with an eighth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, ArraySpec, Episode
from .steps import Steps

KEEPS_SPEED = 0.9  # correlation of the displacements of successive steps under independent random actions
FAR_STEPS = 40  # steps to a goal at the speed of random actions
FAR_REPEAT = 20  # steps: half of FAR_STEPS
DETOUR = 6  # times the steps to a goal: a policy that has learned needs no more
SHORTEST_EPISODE = 50  # steps
FEWER = 0.5  # of the time limit: training episodes are shortened if the steps that they need are at most this fraction
DENSE_HORIZON = 1.5  # times the steps to a goal: rewards on the path guide there
DISCOUNTS = 0.95, 0.99
REPEATED_ACTIONS = {
    "random_action_repeat": FAR_REPEAT,
    "random_eps": 0.3,
    "noise": 0.2,
    "relabel": "future=0.6,desired=0.2",
}
N_WAYPOINTS, MOST_DIMENSIONS = 400, 3  # positions to plan among, and the dimensions of a goal that so few positions cover
STARTS_APART = 0.2  # times the distance to a goal: if starts lie farther apart, episodes start all over the task
PART_OF_PATH = 1.5  # times the steps to a goal: plans join short paths, so short episodes from many starts teach more
PART_OF_EPISODE = 1 / 3  # of the time limit at most: the first few starts may be far from their goals
SMALL_FRACTION = 0.125  # fraction of the action range
AS_FAR = 0.3  # of the displacement under the full action range; 0.125 if displacements are proportional to actions
WINDOW_STEPS = 10  # steps, in which the displacements of single steps add up or cancel out


@dataclass(frozen=True)
class Inertia:
    """correlation: of successive displacements, without their mean in each episode, -1 to 1.

    steps_to_goal: at the speed that 5 % of the random steps exceed. Both are those of the dimension of the goal that takes
    the most steps. starts_apart: mean distance between the starts of episodes, relative to that between start and goal.
    """

    correlation: float
    steps_to_goal: float
    starts_apart: float = 0.0

    def options(self) -> dict[str, Any]:
        """Return hyperparameters for tasks whose goals are far away for what keeps its speed.

        Single random actions cancel out there before they get anywhere.
        """
        return {} if self.correlation < KEEPS_SPEED or self.steps_to_goal < FAR_STEPS else REPEATED_ACTIONS

    def horizon(self, limit: int | None, is_dense: bool) -> dict[str, Any]:
        """Return the discount, and the length of training episodes if the time limit is far longer than goals need.

        limit: of an episode, in steps. is_dense: whether rewards differ on the path to a goal.
        """
        steps = (DENSE_HORIZON if is_dense else DETOUR) * self.steps_to_goal
        lowest, highest = DISCOUNTS
        discount = {"discount": round(float(np.clip(1 - 1 / max(steps, 1), lowest, highest)), 3)}
        needed = max(DETOUR * self.steps_to_goal, SHORTEST_EPISODE)
        is_long = limit is not None and needed <= FEWER * limit
        return {"training_episode_steps": round(needed)} | discount if is_long else discount

    def waypoints(self, goal_size: int, limit: int | None) -> dict[str, Any]:
        """Return how many waypoints to plan paths among, if goals are far away and have few dimensions.

        LayerNorm keeps the values of far goals finite, which few episodes reach. limit: as in `horizon`. Training episodes
        are shorter then, if they start everywhere.
        """
        if self.steps_to_goal < FAR_STEPS or goal_size > MOST_DIMENSIONS:
            return {}
        found = {"n_waypoints": N_WAYPOINTS, "critic_layer_norm": True}
        if limit is None or self.starts_apart < STARTS_APART:
            return found
        part = min(PART_OF_PATH * self.steps_to_goal, PART_OF_EPISODE * limit)
        return found | {"training_episode_steps": round(part)}

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return (
            f"successive displacements of the achieved goal correlate with {self.correlation:.2f}, goals are "
            f"{self.steps_to_goal:.0f} steps away at the speed of random actions, and starts are "
            f"{self.starts_apart:.1f} times as far apart"
        )


def measure_inertia(steps: Steps) -> Inertia:
    """Return how the achieved goal moves in steps with independent random actions."""
    displacement, start = steps.next_achieved_goal - steps.achieved_goal, steps.starts_episode
    distance = np.abs(steps.desired_goal - steps.achieved_goal)[start].mean(0)
    needed = distance / np.maximum(np.quantile(np.abs(displacement), 0.95, axis=0), 1e-12)
    slowest = int(needed.argmax())
    starts, length = (
        steps.achieved_goal[start],
        np.linalg.norm((steps.desired_goal - steps.achieved_goal)[start], axis=1).mean(),
    )
    apart = np.linalg.norm(starts[:, None] - starts, axis=2)[np.triu_indices(len(starts), 1)]
    starts_apart = float(apart.mean() / max(length, 1e-12)) if len(apart) else 0.0
    return Inertia(_correlation(displacement[:, slowest], steps), float(needed[slowest]), starts_apart)


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

    def options(self) -> dict[str, Any]:
        """Return the part of the action range that suffices, if it does, and how to explore such tasks."""
        return REPEATED_ACTIONS | {"action_scale": SMALL_FRACTION} if self.small_suffices else {}

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
            (small if unit_action.max() <= SMALL_FRACTION * (1 + 1e-5) else full).append(episode)
    return small, full


def compare_ranges(small: Sequence[Episode], full: Sequence[Episode]) -> ActionRange:
    """Compare how far the achieved goal moves in `WINDOW_STEPS` steps with a fraction and with the full range.

    What moves it all the time, as wind does, is left out: the mean of each episode.
    """
    sizes = [np.mean([_mean_displacement(each) for each in episodes], axis=0) for episodes in (small, full)]
    return ActionRange(float((sizes[0] / np.maximum(sizes[1], 1e-12)).min()))


def _mean_displacement(episode: Episode) -> Array:
    displacement = episode.achieved_goal[WINDOW_STEPS:] - episode.achieved_goal[:-WINDOW_STEPS]
    return np.asarray(np.abs(displacement - displacement.mean(0)).mean(0))
