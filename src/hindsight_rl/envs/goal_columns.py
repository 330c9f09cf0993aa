"""Columns of the observation that hold the desired goal, found by their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Array
from .random_play import RandomEpisode

MIN_VALUES = 4  # of a number of the goal, from which a scaled copy is told from a column that is constant in each episode
RTOL = 1e-4  # of the range of a column, which an environment may round


def columns_with_goals(episodes: Sequence[RandomEpisode]) -> tuple[int, ...]:
    """Return the columns that hold a number of the desired goal, or its difference to the achieved goal, in every step.

    They equal it, or they are its copy with another scale and offset. Only numbers of the goal that differ between episodes
    count. A column that always equals the achieved goal too is not one of the goal.
    Empty for observations and goals that are not flat arrays of floats.
    """
    seen, achieved, desired = (
        np.concatenate([episode.observations[key] for episode in episodes])
        for key in ("observation", "achieved_goal", "desired_goal")
    )
    if any(values.ndim != 2 or values.dtype.kind != "f" for values in (seen, achieved, desired)):
        return ()
    dtype = min((seen.dtype, desired.dtype), key=lambda each: each.itemsize)
    goals = np.stack([episode.observations["desired_goal"][0] for episode in episodes])
    is_held = np.zeros(seen.shape[1], np.bool_)
    for k, n_values in enumerate(len(np.unique(column)) for column in goals.T):
        goal, gap = desired[:, k], (desired - achieved)[:, k]
        if n_values > 1 and gap.any():
            is_held |= (seen.astype(dtype) == goal.astype(dtype)[:, None]).all(0) | _are_copies(seen, gap)
        if n_values >= MIN_VALUES and gap.any():
            is_held |= _are_copies(seen, goal)
    return tuple(np.flatnonzero(is_held).tolist())


def _are_copies(columns: Array, values: Array) -> Array:
    """Return which columns, (T, n), are `values`, (T,), with another scale and offset. Constant ones are not."""
    values, columns = (part.astype(np.float64) - part.mean(0, np.float64) for part in (values, columns))
    scale = values @ columns / (values @ values)
    error, size = np.abs(values[:, None] * scale - columns).max(0), np.ptp(columns, axis=0)
    return np.asarray((error <= RTOL * size) & (size > 0))
