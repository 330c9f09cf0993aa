"""Relabelling: strategies for goals, each one line of arithmetic on rows, and rules for terminations.

The rows of an episode are adjacent, so a later row of the same episode is a sum. `u` is uniform in [0, 1). Products are
floored (by the cast), never rounded: rounding would give both ends half of the probability of the other rows.

Which `relabel_terminated` fits which environment:

| environment | what ends an episode | relabel_terminated |
|---|---|---|
| Fetch, Hand and Maze by default | only the time limit | any except "success", which would end relabelled samples alone |
| Panda, BitFlipping, PointReach with termination | reaching the goal | None with compute_terminated, else "success" |
| parking | reaching the goal, or a crash | "success": the crash stays, as every end that its own goal does not explain |
| walkers that can fall | events that do not depend on the goal | "keep" |
| environments whose reported termination is wrong | reaching the goal | "never": values bootstrap over it |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, OptionError, UnknownNameError, nearest
from ..options.replay import STRATEGIES, Relabel, StrategyFunction, UnavailableFunction
from ..records import Array

RewardFunction = Callable[[Array, Array, dict[str, Array]], Any]
Strategy = str | Relabel | StrategyFunction


def future_rows(row: Array, steps_left: Array, u: Array) -> Array:
    """Sample goal rows uniformly from the rest of the episode (strategy "future", Andrychowicz et al. 2017).

    row: (B,) int64, rows that start a transition.
    steps_left: (B,) integers, at least 1.
    u: (B,) float64 in [0, 1).
    Returns (B,) int64 rows, the transition's own outcome included.
    """
    return row + 1 + (u * steps_left).astype(np.int64)


def final_rows(row: Array, steps_left: Array) -> Array:
    """Return the last row of each episode (strategy "final", Andrychowicz et al. 2017). All (B,) integers."""
    return row + steps_left


def episode_rows(row: Array, steps_done: Array, steps_left: Array, u: Array) -> Array:
    """Sample goal rows uniformly from all outcomes of the episode: every row except the first.

    Strategy "episode" (Andrychowicz et al. 2017). row, steps_done, steps_left: (B,) integers. u: (B,) in [0, 1).
    """
    goal_row: Array = row - steps_done + 1 + (u * (steps_done + steps_left)).astype(np.int64)
    return goal_row


def random_rows(other_row: Array) -> Array:
    """Return the outcomes of other transitions (strategy "random", Andrychowicz et al. 2017).

    other_row: (B,) rows that start a transition, drawn independently of the batch.
    """
    return other_row + 1


def goal_rows(strategy: str, row: Array, steps_done: Array, steps_left: Array, u: Array, other_row: Array) -> Array:
    """Return the goal rows of a named strategy. All (B,). Only "random" reads `other_row`. Raises UnknownNameError."""
    match strategy:
        case "future":
            return future_rows(row, steps_left, u)
        case "final":
            return final_rows(row, steps_left)
        case "episode":
            return episode_rows(row, steps_done, steps_left, u)
        case "random":
            return random_rows(other_row)
        case _:
            raise UnknownNameError(f"Expected one of {', '.join(STRATEGIES)} as `strategy`, got {strategy!r}.")


def custom_rows(strategy: StrategyFunction, row: Array, steps_done: Array, steps_left: Array, u: Array) -> Array:
    """Return the goal rows of a user's strategy, (B,) int64. Raises InputError unless it returns (B,) integers."""
    goal_row = np.asarray(strategy(row, steps_done, steps_left, u))
    if goal_row.shape != row.shape or goal_row.dtype.kind not in "iu":
        got = f"{goal_row.shape} of {goal_row.dtype}"
        raise InputError(f"The strategy must return integers of shape {row.shape}, got {got}.")
    return goal_row.astype(np.int64, copy=False)


def check_strategy(strategy: Strategy) -> Strategy:
    """Return `strategy` if it is a known name, a Relabel or a function. Raises UnknownNameError or OptionError."""
    if isinstance(strategy, UnavailableFunction):
        strategy()  # raises now, not at the first sample
    if callable(strategy) or isinstance(strategy, Relabel) or strategy in STRATEGIES:
        return strategy
    choice = f"one of {', '.join(STRATEGIES)}, a Relabel, or a function (rows, steps_done, steps_left, u) -> goal rows"
    if not isinstance(strategy, str):
        raise OptionError(f"strategy must be {choice}, got {strategy!r}.")
    raise UnknownNameError(f"strategy must be {choice}, got {strategy!r}.{nearest(strategy, STRATEGIES)}")


def read_strategy(stored: Any) -> Strategy | None:
    """Return a strategy that was written as text; None for a function."""
    if stored is None:
        return None
    return check_strategy(Relabel.parse(stored) if "=" in stored else stored)


class Termination(NamedTuple):
    """How `terminated` of relabelled samples is recomputed: by a function, by a least reward, or not at all.

    keeps_events: whether an end that the sample's own goal does not explain, such as a crash, stays.
    """

    function: RewardFunction | None = None
    least_reward: float | None = None
    keeps_events: bool = True


AS_STORED = Termination()


def choose_termination(
    rule: str | None,
    compute_terminated: RewardFunction | None,
    compute_success: RewardFunction | None,
    success_reward: float,
) -> Termination:
    """Return how `terminated` of relabelled samples is recomputed. Samples with their own goal keep the stored value.

    So do samples whose own goal does not explain their end, such as a crash, unless the rule is "never".
    rule: None calls compute_terminated, or keeps the stored value without one. "keep" keeps it. "never" clears it.
        "success" calls compute_success; without one, a reward of at least success_reward terminates.
    Raises OptionError.
    """
    if compute_success is not None and rule != "success":
        raise OptionError(f"compute_success needs relabel_terminated='success', got relabel_terminated={rule!r}.")
    match rule:
        case "success":
            return Termination(compute_success) if compute_success else Termination(least_reward=success_reward)
        case "never":
            return Termination(_never, keeps_events=False)
        case "keep":
            return AS_STORED
        case _:
            return Termination(compute_terminated) if compute_terminated else AS_STORED


def _never(achieved_goal: Array, goal: Array, info: dict[str, Array]) -> Array:
    return np.zeros(len(goal), np.bool_)
