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
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ..errors import OptionError
from ..records import Array

Judge = Callable[[Array, Array, dict[str, Array]], Any]
Rule = Literal["success", "keep", "never"]


class Ends(NamedTuple):
    """Who says whether a relabelled step was an end: `judge`, or a reward of `reward` or more, or what was stored."""

    judge: Judge | None = None
    reward: float | None = None


AS_STORED = Ends()


def choose_ends(
    rule: str | None, compute_terminated: Judge | None, compute_success: Judge | None, success_reward: float
) -> Ends:
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
            return Ends(compute_success) if compute_success else Ends(reward=success_reward)
        case "never":
            return Ends(_never)
        case "keep":
            return AS_STORED
        case _:
            return Ends(compute_terminated)


def _never(achieved_goal: Array, goal: Array, info: dict[str, Array]) -> Array:
    return np.zeros(len(goal), np.bool_)
