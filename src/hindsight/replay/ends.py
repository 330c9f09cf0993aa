"""Whether a step that is retold under another goal ended its episode.

| environments | what ends an episode | `relabel_terminated` |
|---|---|---|
| Fetch, Hand, Maze as it comes | only the time limit | any but "success", which would end hindsight goals alone |
| Panda, bit flipping, PointReach with ends | reaching the goal | None with a compute_terminated, else "success" |
| walkers that may fall | what no goal changes | "keep" |
| reaching the goal, but reports are not to be trusted | | "never": values go on as if there were no end |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np

from ..errors import OptionError
from ..options.replay import Rule
from ..records import Array

RewardFunction = Callable[[Array, Array, dict[str, Array]], Any]


class Termination(NamedTuple):
    """Who says whether a relabelled step was an end: `judge`, or a reward of `reward` or more, or what was stored."""

    judge: RewardFunction | None = None
    reward: float | None = None


AS_STORED = Termination()


def choose_termination(
    rule: str | None,
    compute_terminated: RewardFunction | None,
    compute_success: RewardFunction | None,
    success_reward: float,
) -> Termination:
    """What `relabel_terminated` means. Samples with their own goal always stay as stored.

    rule: None asks compute_terminated, and without one is "keep", which leaves what was stored; "never" ends nothing;
    "success" ends where compute_success says so, or without one where the reward under the new goal is at least
    success_reward. Raises OptionError.
    """
    if rule is not None and rule not in get_args(Rule):
        raise OptionError(f"relabel_terminated is {rule!r}, but None or one of {', '.join(get_args(Rule))} is needed")
    if compute_success is not None and rule != "success":
        raise OptionError(
            f"compute_success is given, but relabel_terminated is {rule!r}, which does not read it: "
            f'pass relabel_terminated="success"'
        )
    if isinstance(success_reward, bool) or not isinstance(success_reward, int | float) or not math.isfinite(success_reward):
        raise OptionError(f"success_reward is {success_reward!r}, but a finite number is needed")
    match rule:
        case "success":
            return Termination(compute_success) if compute_success else Termination(reward=success_reward)
        case "never":
            return Termination(_never)
        case "keep":
            return AS_STORED
        case _:
            return Termination(compute_terminated)


def _never(achieved_goal: Array, goal: Array, info: dict[str, Array]) -> Array:
    return np.zeros(len(goal), np.bool_)
