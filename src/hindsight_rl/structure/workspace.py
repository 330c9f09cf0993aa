"""Where goals and starts of an object lie: an object that has left this range is lost for the rest of an episode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array
from .parts import Dimensions
from .steps import Steps

WORKSPACE_MARGIN = 0.25  # of the diagonal of the range
LOST = 0.1  # fraction of the episodes that seek contact in which the object must leave
COMES_BACK = 0.2  # fraction of these from which on an object that left is not lost


@dataclass(frozen=True)
class Workspace:
    """The range of goals and starts, widened. n_left: episodes in which the object left it. n_back: and came back."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    n_left: int
    n_back: int
    n_episodes: int

    @property
    def is_left(self) -> bool:
        """Whether objects leave it, and are lost then."""
        return self.n_left >= LOST * self.n_episodes and self.n_back <= COMES_BACK * self.n_left

    def options(self) -> dict[str, Any]:
        """Return the options that end an episode of training where the object is lost."""
        return {"lowest_achieved": self.low, "highest_achieved": self.high}

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return (
            f"the object left the range of goals and starts, widened by {WORKSPACE_MARGIN:.0%} of its diagonal, in "
            f"{self.n_left} of {self.n_episodes} episodes that sought contact, and came back in {self.n_back}"
        )


def find_workspace(steps: Steps, probing: Steps, objects: Sequence[Dimensions] = ()) -> Workspace:
    """Return the range of goals and starts. steps: all of them. probing: those of episodes that sought contact.

    objects: the numbers of the goal of each object, which together are all of them in their order; empty: one object.
    """
    ranges = [_widened_range(one) for one in steps.of_objects(objects or [tuple(range(steps.goal_size))])]
    low, high = np.concatenate(ranges, axis=1)
    is_outside = ((probing.next_achieved_goal < low) | (probing.next_achieved_goal > high)).any(1)
    last = np.append(np.flatnonzero(probing.starts_episode)[1:], len(probing)) - 1
    left = np.unique(probing.episode[is_outside])
    back = left[~is_outside[last][left]]
    return Workspace(tuple(low.tolist()), tuple(high.tolist()), len(left), len(back), len(last))


def _widened_range(steps: Steps) -> tuple[Array, Array]:
    """Return the lowest and the highest place of one object."""
    start = steps.starts_episode
    ends = np.concatenate([steps.desired_goal[start], steps.achieved_goal[start]])
    low, high = ends.min(0), ends.max(0)
    margin = WORKSPACE_MARGIN * float(np.linalg.norm(high - low))
    decimals = 3 - math.floor(math.log10(max(margin, 1e-300)))
    return (low - margin).round(decimals), (high + margin).round(decimals)
