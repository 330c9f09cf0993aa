"""Where a hindsight goal comes from: each strategy is one line of arithmetic on row numbers.

The rows of an episode are adjacent, so a later row of the same episode is a sum. `u` is uniform in [0, 1). Numbers are
floored (by the cast), never rounded: rounding would give the two ends half the weight of the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import OptionError, UnknownNameError, nearest
from ..records import Array

Strategy = Callable[[Array, Array, Array, Array], Array]
STRATEGIES = ("future", "final", "episode", "random")


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


def check_strategy(strategy: str | Strategy) -> str | Strategy:
    """Return `strategy` if it is a known name or a function; raises UnknownNameError or OptionError otherwise."""
    if callable(strategy) or strategy in STRATEGIES:
        return strategy
    if not isinstance(strategy, str):
        raise OptionError(
            f"strategy is {strategy!r}, but a name ({', '.join(STRATEGIES)}) or a function "
            f"(rows, steps_done, steps_left, u) -> goal rows is needed"
        )
    raise UnknownNameError(
        f"there is no strategy {strategy!r}: choose one of {', '.join(STRATEGIES)}, or give a function "
        f"(rows, steps_done, steps_left, u) -> goal rows.{nearest(strategy, STRATEGIES)}"
    )
