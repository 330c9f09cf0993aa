"""Columns of the observation that hold the desired goal, and dimensions of the achieved goal that no column shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..records import Array
from ..records.statistics import FLOAT32_ROUNDING, are_noisy_copies
from .random_play import RandomEpisode

FEWEST_GOALS = 4  # values of a dimension of the goal; with fewer, other columns may equal it by chance
COPY_RTOL = 1e-4  # of the range of a column, which an environment may round


def changing_columns(with_goals: Sequence[RandomEpisode]) -> tuple[int, ...] | None:
    """Return the columns that change with the desired goal alone; None if that was not played, or if achieved goals change.

    with_goals: see `Probe.with_goals`. What differs between both episodes with the first goal does not count.
    """
    if not with_goals:
        return None
    seen, achieved = ([each.observations[key][-1] for each in with_goals] for key in ("observation", "achieved_goal"))
    if not np.array_equal(achieved[0], achieved[1]):
        return None
    changes = (seen[0] != seen[1]) & np.all([seen[0] == again for again in seen[2:]], axis=0)
    return tuple(np.flatnonzero(changes).tolist())


def dimensions_not_shown(episodes: Sequence[RandomEpisode]) -> tuple[int, ...]:
    """Return the dimensions of the achieved goal that no column of the observation shows in every step.

    A column shows one if it is its copy, up to little noise. If a column shows one in other units, only those are returned
    in which achieved and desired goals are all the same: the units of others follow from it. Empty for observations and
    goals that are not flat arrays of floats.
    """
    seen, achieved, desired = (
        np.concatenate([episode.observations[key] for episode in episodes])
        for key in ("observation", "achieved_goal", "desired_goal")
    )
    if any(values.ndim != 2 or values.dtype.kind != "f" for values in (seen, achieved)):
        return ()
    if not seen.shape[1]:
        return tuple(range(achieved.shape[1]))
    errors = np.array([np.square(seen.astype(np.float64) - values[:, None]).mean(0).min() for values in achieved.T])
    is_equal = errors <= np.square(FLOAT32_ROUNDING * np.abs(achieved).max(0))
    missing = np.flatnonzero(~(is_equal | are_noisy_copies(errors, achieved.var(0)))).tolist()
    in_other_units = any(np.ptp(achieved[:, k]) > 0 and _are_copies(seen, achieved[:, k]).any() for k in missing)
    differ = np.ptp(np.concatenate([achieved, desired]), axis=0) > 0
    return tuple(k for k in missing if not (in_other_units and differ[k]))


def columns_with_goals(episodes: Sequence[Mapping[str, Sequence[Array]]]) -> tuple[int, ...]:
    """Return the columns that hold a dimension of the desired goal, or its difference to something, in every step.

    They equal it, or they are its copy with another scale and offset. The difference may be that to the achieved goal or
    to another column, such as a hand, or the distance of both goals. Only dimensions that differ between episodes count. A
    column that always equals the achieved goal too is not one of the goal: an object may rest at its goal. Dimensions with
    few different values, such as those of a goal of zeros and ones, are often equalled by chance: they count if columns
    hold all that differ.
    Empty for observations and goals that are not flat arrays.
    episodes: the observations of each.
    """
    seen, achieved, desired = (
        np.concatenate([episode[key] for episode in episodes]) for key in ("observation", "achieved_goal", "desired_goal")
    )
    if any(values.ndim != 2 for values in (seen, achieved, desired)):
        return ()
    seen, achieved, desired = (
        values if values.dtype.kind == "f" else values.astype(float) for values in (seen, achieved, desired)
    )
    dtype = min((seen.dtype, desired.dtype), key=lambda each: each.itemsize)  # what one holds in float32 equals it there
    goals = np.stack([episode["desired_goal"][0] for episode in episodes])
    starts = np.cumsum([0, *(len(episode["desired_goal"]) for episode in episodes[:-1])])
    has_many_values, holding = list[bool](), list[Array]()  # of each dimension that differs
    for k, n_values in enumerate(len(np.unique(column)) for column in goals.T):
        goal, gap = desired[:, k], (desired - achieved)[:, k]
        if n_values == 1 or np.abs(gap).max() <= COPY_RTOL * np.ptp(goal):
            continue
        equal = (seen.astype(dtype) == goal.astype(dtype)[:, None]).all(0) | _are_copies(seen, gap)
        has_many_values.append(n_values >= FEWEST_GOALS)
        if has_many_values[-1]:
            equal = equal | _are_copies(seen, goal) | _are_gaps(seen, goal, starts)
        holding.append(equal)
    if not holding:
        return ()
    if any(has_many_values):
        holding.append(_are_copies(seen, np.linalg.norm(desired - achieved, axis=1)))
        has_many_values.append(True)
    counts = np.array(has_many_values) | all(columns.any() for columns in holding)
    return tuple(np.flatnonzero(np.stack(holding)[counts].any(0)).tolist())


def _are_gaps(columns: Array, goal: Array, starts: Array) -> Array:
    """Return which columns, (T, n), are a sum of another column and `goal`, (T,), each with a factor.

    So is the other column, then: of both, the gap is the one that follows the goal at the starts of episodes, (episodes,).
    """
    columns, goal = (part.astype(np.float64) - part.mean(0, np.float64) for part in (columns, goal))
    of_goal = goal @ columns / (goal @ goal)
    left, size = columns - np.outer(goal, of_goal), np.ptp(columns, axis=0)
    varies = (np.ptp(left, axis=0) > COPY_RTOL * size) & (np.abs(of_goal) * np.ptp(goal) > COPY_RTOL * size)
    first, goals = (part[starts] - part[starts].mean(0) for part in (columns, goal))
    follows = np.abs(goals @ first) / np.maximum(np.linalg.norm(first, axis=0), np.finfo(float).tiny)
    found = np.zeros(len(size), bool)
    for i in np.flatnonzero(varies):
        others = np.flatnonzero(varies & (follows < follows[i]))
        needs_goal = ~_are_copies(columns[:, others], columns[:, i])
        found[i] = (needs_goal & _are_copies(left[:, others], left[:, i])).any()
    return found


def _are_copies(columns: Array, values: Array) -> Array:
    """Return which columns, (T, n), are `values`, (T,), with another scale and offset. Constant ones are not."""
    values, columns = (part.astype(np.float64) - part.mean(0, np.float64) for part in (values, columns))
    scale = values @ columns / (values @ values)
    error, size = np.abs(values[:, None] * scale - columns).max(0), np.ptp(columns, axis=0)
    return np.asarray((error <= COPY_RTOL * size) & (size > 0))
