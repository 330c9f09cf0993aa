"""Where a hindsight goal comes from: each strategy is one line of arithmetic on row numbers.

The rows of an episode are adjacent, so a later row of the same episode is a sum. `u` is uniform in [0, 1). Numbers are
floored (by the cast), never rounded: rounding would give the two ends half the weight of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import InputError, OptionError, UnknownNameError, nearest
from ..options.relabel import (
    DEFAULT_N_SAMPLED_GOAL,
    DESIRED,
    STRATEGIES,
    Relabel,
)
from ..records import Array

Strategy = Callable[[Array, Array, Array, Array], Array]
_LARGEST_U = math.nextafter(1.0, 0.0)


def future_rows(row: Array, steps_left: Array, u: Array) -> Array:
    """Rows whose achieved goals replace the goals of `row`: uniform over the rest of the episode.

    Andrychowicz et al. 2017, strategy "future"; inclusive of the transition's own outcome.
    row, steps_left: (B,) integers, steps_left > 0. u: (B,) in [0, 1). Returns (B,) integers.
    """
    return row + 1 + (u * steps_left).astype(np.int64)


def final_rows(row: Array, steps_left: Array) -> Array:
    """The last row of the episode of each `row`. Andrychowicz et al. 2017, strategy "final". All (B,) integers."""
    return row + steps_left


def episode_rows(row: Array, steps_done: Array, steps_left: Array, u: Array) -> Array:
    """Uniform over all outcomes of the episode: every row of it but the first.

    Andrychowicz et al. 2017, strategy "episode". row, steps_done, steps_left: (B,) integers. u: (B,) in [0, 1).
    """
    goal_row: Array = row - steps_done + 1 + (u * (steps_done + steps_left)).astype(np.int64)
    return goal_row


def random_rows(other_row: Array) -> Array:
    """The outcomes of transitions drawn apart from the batch: any live row that is not a first row.

    Andrychowicz et al. 2017, strategy "random". other_row: (B,) rows drawn like the batch's own. Returns (B,) integers.
    """
    return other_row + 1


def goal_rows(strategy: str, row: Array, steps_done: Array, steps_left: Array, u: Array, other_row: Array) -> Array:
    """The goal rows of a strategy by its name; `other_row` is read by "random" alone. All (B,)."""
    match strategy:
        case "future":
            return future_rows(row, steps_left, u)
        case "final":
            return final_rows(row, steps_left)
        case "episode":
            return episode_rows(row, steps_done, steps_left, u)
        case _:
            return random_rows(other_row)


def mixed_rows(
    relabel: Relabel, row: Array, steps_done: Array, steps_left: Array, u: Array, other_row: Array
) -> tuple[Array, Array]:
    """The goal row of every sample of a mixture, and its source: a place in SOURCES, or REAL. All (B,).

    u: in [0, 1), says which source, and what is left of it, again uniform in [0, 1), which row. The goal is what was
    achieved there, or from DESIRED on what was asked. `other_row` is read by random and desired.
    """
    shares = np.array(list(relabel.shares().values()))
    ends = np.cumsum(shares)
    source, goal_row = np.searchsorted(ends, u, side="right"), row.copy()
    for place in np.flatnonzero(shares):
        here = source == place
        rest = np.minimum((u[here] - (ends[place - 1] if place else 0.0)) / shares[place], _LARGEST_U)
        if place == DESIRED:
            goal_row[here] = other_row[here]
        else:
            parts = (steps_done[here], steps_left[here], rest, other_row[here])
            goal_row[here] = goal_rows(STRATEGIES[place], row[here], *parts)
    return goal_row, source


def users_rows(strategy: Strategy, row: Array, steps_done: Array, steps_left: Array, u: Array) -> Array:
    """The goal rows of a user's own strategy, (B,) int64. Raises InputError for anything but (B,) integers."""
    goal_row = np.asarray(strategy(row, steps_done, steps_left, u))
    if goal_row.shape != row.shape or goal_row.dtype.kind not in "iu":
        raise InputError(
            f"the strategy returned shape {goal_row.shape} of {goal_row.dtype}, but {row.shape} integers are needed"
        )
    return goal_row.astype(np.int64, copy=False)


def refuse_goal_rows(goal_row: Array, is_live: Array) -> None:
    """Raise InputError unless all goal rows belong to an episode, as `is_live` says of each; both (B,)."""
    if not is_live.all():
        raise InputError(
            f"the strategy returned row {goal_row[~is_live][0]}, which belongs to no episode in the buffer: "
            f"stay between row - steps_done and row + steps_left"
        )


def relabelled_share(strategy: str | Strategy | Relabel, n_sampled_goal: int | None) -> float:
    """The share of samples that get another goal: k/(k+1), k = 4 where None, or the sum of a mixture's shares.

    Raises OptionError where both say it.
    """
    if not isinstance(strategy, Relabel):
        k = DEFAULT_N_SAMPLED_GOAL if n_sampled_goal is None else n_sampled_goal
        return k / (k + 1)
    if n_sampled_goal is not None:
        raise OptionError(
            f"n_sampled_goal is {n_sampled_goal}, but the Relabel ({strategy}) says already how many goals are put in "
            f"hindsight: give one of the two"
        )
    return strategy.share


def check_strategy(strategy: str | Strategy | Relabel) -> str | Strategy | Relabel:
    """`strategy` if it is a known name, a mixture or a function; raises UnknownNameError or OptionError otherwise."""
    if callable(strategy) or isinstance(strategy, Relabel) or strategy in STRATEGIES:
        return strategy
    if not isinstance(strategy, str):
        raise OptionError(
            f"strategy is {strategy!r}, but a name ({', '.join(STRATEGIES)}), a Relabel or a function "
            f"(rows, steps_done, steps_left, u) -> goal rows is needed"
        )
    raise UnknownNameError(
        f"there is no strategy {strategy!r}: choose one of {', '.join(STRATEGIES)}, or give a function "
        f"(rows, steps_done, steps_left, u) -> goal rows.{nearest(strategy, STRATEGIES)}"
    )
