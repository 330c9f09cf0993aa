"""Rewards in units of the task: a success becomes 0 and a failure -1, whatever numbers the environment returns.

Learning rates, penalties and entropy coefficients fit every task only if rewards have one scale. A run converts rewards
once, where a batch is sampled. What is stored, and what users see of episodes, stays as the environment returned it.

What follows an end is part of a return:
- An end with success counts as success from then on: 0. Otherwise, of minus the distance and a bonus for a success, which
  ends the episode, the return would hardly be higher at the goal than near it: what follows would be far below the bonus.
- An end without success, as by a crash, counts as failure from then on where rewards have two values: -1 per step.
  Otherwise an episode that fails early would have a higher return than one that goes on, as every step costs 1.
- Other rewards are 0 after an end without success, as in the task, and 0 is converted, too. Where a crash has a penalty, -1
  per step would outweigh it: parking was learned more slowly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FileError, OptionError
from . import Array, Episode, GoalSpec

RewardOf = Callable[[Array, Array, Any], Any]
UNIT_RANGE = (-1.0, 0.0)  # of the rewards of failure and success, converted
FAILURE_QUANTILE = 0.9  # how far 90 % of the first steps fall short of a success counts as a failure
SAME = 1e-5  # relative to the size of the rewards: smaller differences are rounding


@dataclass(frozen=True)
class RewardScale:
    """The rewards of the environment that become 0 and -1.

    success, failure: these rewards; of a dense reward, that at the goal and that of steps that are far from it.
    is_sparse: whether the reward of a step, apart from what its info adds, is that of success or failure.
    Raises OptionError unless both are finite and `success` is larger.
    """

    success: float
    failure: float
    is_sparse: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.success) and math.isfinite(self.failure) and self.success > self.failure):
            raise OptionError(
                f"A RewardScale needs finite rewards, that of a success above that of a failure, got {self.success} and "
                f"{self.failure}."
            )

    @classmethod
    def of_task(cls, spec: GoalSpec) -> RewardScale | None:
        """Return the scale of a reward of two values; None for other rewards, which must be measured."""
        is_known = math.isfinite(spec.reward_low) and math.isfinite(spec.reward_high)
        return cls(spec.reward_high, spec.reward_low) if is_known else None

    @classmethod
    def measure(cls, at_goal: Array, rewards: Array) -> RewardScale:
        """Return the scale of rewards whose values are not known.

        at_goal: (N,), what the rewards would be if the achieved goal was the desired one. rewards: (N,), of the same steps.
        If no step falls short of a success, the scale is that of the rewards themselves, and 1 if they are all the same.
        """
        at_goal, rewards = (np.asarray(values, np.float64) for values in (at_goal, rewards))
        gap, rounding = at_goal - rewards, SAME * float(np.abs([at_goal, rewards]).max())
        missed, success = gap[gap > rounding], float(np.median(at_goal))
        if len(missed) and np.ptp(missed) <= rounding and len(missed) + (np.abs(gap) <= rounding).sum() == len(gap):
            return cls(success, success - float(np.median(missed)))
        low, high = np.quantile(rewards, [1 - FAILURE_QUANTILE, FAILURE_QUANTILE]).tolist()
        size = next((size for size in (float(np.quantile(gap, FAILURE_QUANTILE)), high - low) if size > rounding), 1.0)
        return cls(success, success - size, is_sparse=False)

    @property
    def is_unit(self) -> bool:
        """Whether rewards stay as they are."""
        return (self.failure, self.success) == UNIT_RANGE

    def to_units(self, rewards: Array) -> Array:
        """Return rewards, (...) of any dtype, in units of the task. Failure and success are exactly -1 and 0."""
        rewards = np.asarray(rewards)
        if self.is_unit:
            return rewards
        # Both rewards are rounded as the array rounds them, and float64 keeps their difference finite.
        exact = rewards.dtype if rewards.dtype.kind == "f" else np.dtype(np.float64)
        success, failure = (float(exact.type(reward)) for reward in (self.success, self.failure))
        return np.asarray((rewards.astype(np.float64) - success) / (success - failure)).astype(exact)

    def require_distinct(self, dtype: str) -> None:
        """Raise OptionError if both rewards are the same in this dtype."""
        if np.dtype(dtype).type(self.success) == np.dtype(dtype).type(self.failure):
            raise OptionError(
                f"The rewards {self.success!r} and {self.failure!r} are the same number in {dtype}. Subtract a constant "
                f"from the rewards, or set dtype='float64'."
            )

    def after_end(self, is_success: Array) -> Array:
        """Return the converted reward of each step after an end. is_success: (N,), whether the end was a success."""
        failure = -1.0 if self.is_sparse else float(self.to_units(np.zeros(())))
        return np.where(is_success, 0.0, failure)


def measure_scale(compute_reward: RewardOf, episodes: Sequence[Episode]) -> RewardScale:
    """Return the scale of the rewards of episodes. compute_reward: of the task, of N goals."""
    pairs = []
    for episode in episodes:
        achieved, info = episode.achieved_goal[1:], dict(episode.info)
        goals = (achieved, episode.desired_goal[:-1])
        pairs.append([np.asarray(compute_reward(achieved, goal, info), np.float64) for goal in goals])
    at_goal, rewards = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return RewardScale.measure(at_goal, rewards)


def scale_as_array(scale: RewardScale | None) -> Array:
    """Return a scale as an array for files, (3,) float64; NaN for None."""
    return np.array([np.nan] * 3 if scale is None else [scale.success, scale.failure, scale.is_sparse], np.float64)


def scale_from_array(array: Array) -> RewardScale | None:
    """Return the scale that `scale_as_array` made an array of. Raises FileError if it is none."""
    success, failure, is_sparse = array.tolist()
    if np.isnan(array).all():
        return None
    try:
        return RewardScale(success, failure, bool(is_sparse))
    except OptionError as problem:
        raise FileError(f"The stored scale of the rewards is damaged ({problem})") from None


def is_close(first: Array, second: Array) -> Array:
    """Return which of two arrays of rewards are equal up to rounding, beside the size of all of them."""
    size = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return np.isclose(first, second, rtol=1e-5, atol=1e-6 * size)


class GuardedReward:
    """The reward of N goals, or None if the function fails for goals that the environment may never have produced.

    Only for goals such as those between two others: goals may lie on a grid, or in a table. For those of the environment,
    an error is an error.
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
