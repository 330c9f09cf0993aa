"""Whether small actions suffice: they move the achieved goal far more than in proportion to whole ones.

A body with more joints than its goal has numbers is often so strong that most of its range only throws it over: an ant that
takes whole torques lies on its back within 20 to 250 steps, and walks as far with an eighth of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Array, ArraySpec, Episode
from .inertia import HELD_ACTIONS

SMALL_FRACTION = 0.125  # fraction of the action range
AS_FAR = 0.3  # of the displacement under the full action range; 0.125 if displacements are proportional to actions
WINDOW_STEPS = 10  # steps, in which the moves of single steps add up or cancel out


@dataclass(frozen=True)
class Effort:
    """ratio: of the ways with small and with whole random actions, for the number of the goal for which it is lowest."""

    ratio: float

    @property
    def small_suffices(self) -> bool:
        """Whether small actions move the achieved goal far more than in proportion."""
        return self.ratio >= AS_FAR

    def options(self) -> dict[str, Any]:
        """Return the part of the action range that suffices, if it does, and how to explore such tasks."""
        return HELD_ACTIONS | {"action_scale": SMALL_FRACTION} if self.small_suffices else {}

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
    whole: list[Episode] = []
    low, high = action.bounds()
    for episode in episodes:
        if len(episode.action) > WINDOW_STEPS:
            unit_action = np.abs(episode.action - (low + high) / 2) / ((high - low) / 2)
            (small if unit_action.max() <= SMALL_FRACTION * (1 + 1e-5) else whole).append(episode)
    return small, whole


def measure_effort(small: Sequence[Episode], whole: Sequence[Episode]) -> Effort:
    """Compare how far the achieved goal moves in `WINDOW_STEPS` steps of episodes with small and with whole actions.

    What moves it all the time, as wind does, is left out: the mean of each episode.
    """
    ways = [np.mean([_way(episode) for episode in episodes], axis=0) for episodes in (small, whole)]
    return Effort(float((ways[0] / np.maximum(ways[1], 1e-12)).min()))


def _way(episode: Episode) -> Array:
    moves = episode.achieved_goal[WINDOW_STEPS:] - episode.achieved_goal[:-WINDOW_STEPS]
    return np.asarray(np.abs(moves - moves.mean(0)).mean(0))
