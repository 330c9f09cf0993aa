"""Ask for the reward of goals that the environment may never have produced, such as goals between two others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import Array

RewardOf = Callable[[Array, Array, Any], Any]


class GuardedReward:
    """The reward of N goals, or None if the function cannot answer: goals may lie on a grid, or in a table.

    Only for goals that are made up. For those of the environment, an error is an error.
    compute_reward: (achieved_goal (N, n), desired_goal (N, n), info) -> (N,) rewards.
    """

    def __init__(self, compute_reward: RewardOf) -> None:
        self._compute_reward = compute_reward

    def __call__(self, achieved: Array, desired: Array, info: Mapping[str, Array]) -> Array | None:
        """Return (N,) float64 rewards; None if the function raises, or if not all rewards are finite."""
        try:
            rewards = np.asarray(self._compute_reward(achieved, desired, info), np.float64)
        except Exception:  # of the environment's code, which never sees such goals
            return None
        return rewards if rewards.shape == (len(achieved),) and np.isfinite(rewards).all() else None
