"""Dimensions of the desired goal on which no reward depends, as the position of a hand beside that of an object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records.reward_scale import GuardedReward, RewardOf, is_close
from .random_play import RandomEpisode

SMALL_CHANGE = 0.2  # of the largest range of a dimension of the goal: a rotation may be the same after a large change


def find_unused_goal(compute_reward: RewardOf, episodes: Sequence[RandomEpisode]) -> tuple[int, ...] | None:
    """Return the dimensions of the desired goal that may change without any change of a reward, where it was achieved.

    All of them, if no reward changes at all. None if goals that were seen, or goals beside them, have no reward. Empty for
    goals that are no flat arrays of floats.
    """
    first, _, info = episodes[0].goals()
    if first.ndim != 2 or first.dtype.kind != "f":
        return ()
    seen = np.concatenate([goals for episode in episodes for goals in episode.goals()[:2]])
    goals = seen[np.linspace(0, len(seen) - 1, len(first)).astype(int)]
    largest, ask = float(np.ptp(seen, axis=0).max()), GuardedReward(compute_reward)
    same, unused = ask(goals, goals.copy(), info), []
    for dimension, row in enumerate(np.eye(goals.shape[1], dtype=goals.dtype)):
        for factor in (-1, -SMALL_CHANGE, SMALL_CHANGE, 1):
            rewards = ask(goals, goals + factor * largest * row, info)
            if same is None or rewards is None:
                return None
            if not is_close(rewards, same).all():
                break
        else:
            unused.append(dimension)
    return tuple(unused)
