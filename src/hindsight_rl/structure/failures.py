"""Where episodes fail, and whether a symmetry leads there from where they fail."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..records import Array
from .model import COMPARED_STEPS, Difference, mean_and_error, squared_distances
from .steps import FEWEST, at_equal_intervals

N_NEAREST = 5  # states: one fails or does not, which is coarse; more lie farther away


class Failures:
    """Knows the states that steps lead to, (N, k), and in which of them episodes fail, (N,) bool. episode: (N,) numbers."""

    def __init__(self, states: Array, fails: Array, episode: Array) -> None:
        deviation = states.std(0)
        self._scale = np.where(deviation > 0, deviation, np.inf)
        self._states, self._fails, self._episode = states / self._scale, fails, episode
        rows = np.flatnonzero(fails)
        self._rows = rows[at_equal_intervals(len(rows), COMPARED_STEPS)]

    @cached_property
    def _beside(self) -> Array:
        return self._fraction_beside(self._states)

    @property
    def is_known(self) -> bool:
        """Whether a failure says that episodes fail beside it: at least FEWEST did, and more often than elsewhere."""
        return len(self._rows) >= FEWEST and mean_and_error(self._beside - self._fails.mean()).is_above(0.0, 1)

    def lost(self, states: Array) -> Difference:
        """Return how much less often episodes fail beside transformed failures than beside these, relative to that.

        states: all states as a symmetry transforms them, (N, k).
        """
        return mean_and_error((self._beside - self._fraction_beside(states / self._scale)) / self._beside.mean())

    def _fraction_beside(self, states: Array) -> Array:
        """Return the fraction of failures among the states nearest to each failure, of other episodes, (failures,)."""
        square = squared_distances(states[self._rows], self._states)
        square[self._episode[self._rows, None] == self._episode] = np.inf
        nearest = np.argpartition(square, N_NEAREST, axis=1)[:, :N_NEAREST]
        return np.asarray(self._fails[nearest].mean(1))
