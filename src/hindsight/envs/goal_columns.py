"""Columns of the observation that hold the desired goal, found by their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Array
from .random_play import RandomEpisode

RTOL, ATOL = 1e-4, 1e-6  # of differences, which an environment may round


def columns_with_goals(episodes: Sequence[RandomEpisode]) -> tuple[int, ...]:
    """Return the columns that equal a number of the desired goal, or its difference to the achieved goal, in every step.

    Only numbers of the goal that differ between episodes count. A column that always equals the achieved goal too is not
    one of the goal. Empty for observations and goals that are not flat arrays of floats.
    """
    seen, achieved, desired = (
        np.concatenate([episode.observations[key] for episode in episodes])
        for key in ("observation", "achieved_goal", "desired_goal")
    )
    if any(values.ndim != 2 or values.dtype.kind != "f" for values in (seen, achieved, desired)):
        return ()
    dtype = min((seen.dtype, desired.dtype), key=lambda each: each.itemsize)
    found = set()
    for k in _numbers_that_differ(episodes):
        goal, reached = desired[:, [k]], achieved[:, [k]]
        is_goal = seen.astype(dtype) == goal.astype(dtype)
        found |= _columns(is_goal.all(0) & (goal != reached).any())
        gap = (goal - reached).astype(np.float64)
        is_gap = np.isclose(np.abs(seen), np.abs(gap), RTOL, ATOL * max(np.ptp(gap), 1e-12)).all(0)
        signs = np.sign(seen) * np.sign(gap)
        found |= _columns(is_gap & ((signs >= 0).all(0) | (signs <= 0).all(0)) & (np.ptp(gap) > 0))
    return tuple(sorted(found))


def _numbers_that_differ(episodes: Sequence[RandomEpisode]) -> list[int]:
    goals = np.stack([episode.observations["desired_goal"][0] for episode in episodes])
    return np.flatnonzero((goals != goals[0]).any(0)).tolist()


def _columns(is_found: Array) -> set[int]:
    return set(np.flatnonzero(is_found).tolist())
