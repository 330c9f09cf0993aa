"""What rewards show: whether they lead the way to a goal, and which of them belong to successes that end an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..options import Choice
from ..records import Episode, GoalSpec
from ..records.reward_scale import RewardOf, RewardScale, measure_scale

MIN_SUCCESSES = 3  # that ended an episode


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

    def choices(self) -> tuple[Choice, ...]:
        """Return the options that end relabelled episodes as real ones."""
        why = f"{self.n_ended} of {self.n_ended} successes ended their episode, with rewards that no other step has"
        return Choice("relabel_terminated", "success", why), Choice("success_reward", self.least_reward, why)


def has_dense_rewards(episodes: Sequence[Episode], spec: GoalSpec, compute_reward: RewardOf | None) -> bool:
    """Return whether rewards differ on the way to a goal. Without compute_reward, all but two values count as such.

    What info adds to a reward, such as a cost of the action, does not make it dense.
    """
    if RewardScale.of_task(spec) is not None:
        return False
    return compute_reward is None or not measure_scale(compute_reward, episodes).is_sparse
