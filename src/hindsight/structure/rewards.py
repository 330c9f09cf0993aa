"""What rewards show: their scale, and which of them belong to successes that end an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..records import Episode, GoalSpec

MIN_SUCCESSES = 3  # that ended an episode
ACTION_L2 = 0.1  # for rewards that differ by 1


@dataclass(frozen=True)
class RewardScale:
    """difference: between the rewards of success and failure; if it is_dense, between the 90 % and the 10 % quantile.

    The quantiles are those of the rewards of random steps. Values have the scale of the rewards. A penalty of the
    action that does not is too large or too small beside them.
    """

    difference: float
    is_dense: bool

    def options(self, action_l2: float = ACTION_L2) -> dict[str, Any]:
        """Return the penalty of the action for this scale. action_l2: for a scale of 1."""
        return {} if self.difference in (0.0, 1.0) else {"action_l2": float(f"{action_l2 * self.difference:.2g}")}

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        if self.is_dense:
            return f"the 10 % and the 90 % quantile of the rewards of random steps differ by {self.difference:.2g}"
        return f"the rewards of success and failure differ by {self.difference:.2g}"


@dataclass
class Endings:
    """What the episodes so far say about whether a success ends an episode, and with which rewards.

    n_ended: episodes that ended with a success. least_reward: the smallest reward of these last steps.
    n_open: episodes whose last step was a success that ended nothing. highest_other: the highest reward of all other steps.
    """

    n_ended: int = 0
    least_reward: float | None = None
    n_open: int = 0
    highest_other: float | None = None

    def add(self, episode: Episode) -> None:
        """Take an episode into account."""
        others = episode.reward
        if episode.success and episode.terminated:
            last, others = float(others[-1]), others[:-1]
            self.n_ended += 1
            self.least_reward = last if self.least_reward is None else min(self.least_reward, last)
        self.n_open += bool(episode.success and not episode.terminated)
        if len(others):
            highest = float(others.max())
            self.highest_other = highest if self.highest_other is None else max(self.highest_other, highest)

    @property
    def is_clear(self) -> bool:
        """Whether all successes ended their episode, with rewards that no other step has."""
        if self.least_reward is None or self.n_ended < MIN_SUCCESSES or self.n_open:
            return False
        return self.highest_other is None or self.highest_other < self.least_reward

    def options(self) -> dict[str, Any]:
        """Return the options that end relabelled episodes as real ones."""
        return {"relabel_terminated": "success", "success_reward": self.least_reward}

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        return f"{self.n_ended} of {self.n_ended} successes ended their episode, with rewards that no other step has"


def measure_rewards(episodes: Sequence[Episode], spec: GoalSpec) -> RewardScale:
    """Return the scale of the reward, from episodes with random actions."""
    if np.isfinite([spec.reward_low, spec.reward_high]).all():
        return RewardScale(float(spec.reward_high - spec.reward_low), is_dense=False)
    rewards = np.concatenate([episode.reward for episode in episodes])
    low, high = np.quantile(rewards, [0.1, 0.9]).tolist()
    return RewardScale(high - low, is_dense=True)
