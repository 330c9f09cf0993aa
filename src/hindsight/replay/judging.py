"""Judging: what the environment says of a step under a goal that was put in hindsight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import GoalEnvError
from ..records import Array, Batch
from .ends import RewardFunction, Termination
from .kernels import merge

JUDGE_OF_ENDS = "compute_terminated (or compute_success)"


class Steps(NamedTuple):
    """What of a batch is judged, (B, ...): outcomes and goals, and the verdicts, which are written where relabelled."""

    next_achieved_goal: Array
    goal: Array
    is_relabelled: Array
    reward: Array
    terminated: Array


class Judging:
    """The reward, and whether the step was an end, of steps under new goals; see `replay.ends`.

    extra_reward: what a step paid besides compute_reward under its own goal, as for a crash, it pays under every goal.
    """

    def __init__(self, compute_reward: RewardFunction, ends: Termination, extra_reward: bool = False) -> None:
        self.compute_reward, self.ends, self.extra_reward = compute_reward, ends, extra_reward
        self._is_probed = False

    def judge(self, steps: Batch | Steps, info: dict[str, Array], own_goal: Array | None = None) -> None:
        """Write reward and terminated where relabelled; own_goal: what was asked, needed with extra_reward.

        Raises GoalEnvError where a function is unusable.
        """
        if not self._is_probed:
            self._probe(steps, info)
        judged = paid = _call(self.compute_reward, "compute_reward", steps, info)
        if self.extra_reward and own_goal is not None:
            paid = judged + steps.reward - np.asarray(self.compute_reward(steps.next_achieved_goal, own_goal, info))
        if not merge(paid, steps.reward, steps.is_relabelled):
            raise GoalEnvError(
                "compute_reward returned NaN or infinity for a relabelled goal: the reward must be finite for every goal "
                "that was ever achieved"
            )
        if self.ends.judge is not None:
            ended = _call(self.ends.judge, JUDGE_OF_ENDS, steps, info)
            np.copyto(steps.terminated, ended.astype(np.bool_), where=steps.is_relabelled)
        elif self.ends.reward is not None:
            is_success = judged.astype(steps.reward.dtype) >= self.ends.reward  # whatever was paid besides
            np.copyto(steps.terminated, is_success, where=steps.is_relabelled)

    def _probe(self, steps: Batch | Steps, info: dict[str, Array]) -> None:
        """Once: refuse a compute_reward that writes into its arguments, which would spoil every batch."""
        arguments = [steps.next_achieved_goal, steps.goal, *info.values()]
        before = [argument.copy() for argument in arguments]
        for name, judge in (("compute_reward", self.compute_reward), (JUDGE_OF_ENDS, self.ends.judge)):
            if judge is not None:
                _call(judge, name, steps, info)
                if not all(map(np.array_equal, before, arguments)):
                    raise GoalEnvError(f"{name} writes into its arguments: let it work on copies")
        self._is_probed = True


def _call(judge: RewardFunction, name: str, steps: Batch | Steps, info: dict[str, Array]) -> Array:
    """What the environment says of every step, (B,)."""
    judged = np.asarray(judge(steps.next_achieved_goal, steps.goal, info))
    if judged.shape != steps.reward.shape or judged.dtype.kind not in "fiub":
        size = len(steps.reward)
        raise GoalEnvError(
            f"{name} returned shape {judged.shape} of {judged.dtype} for {size} goals, but ({size},) numbers are needed: "
            f"vectorise it, or take that of make_goal_env, which goes row by row"
        )
    return judged
