"""Chance: random numbers, and live rows drawn with them. The only source of chance in a buffer."""

from __future__ import annotations

import math

import numpy as np

from ..records import Array
from .kernels import draw_rows, row_layout, uniform
from .timeline import Timeline

FEWEST_LIVE = 1 / 64  # below this share of live rows none is proposed: they are taken from the exact list


class Chance:
    """Draws from a timeline, which is only ever read. state: all that the next draws depend on, one uint64."""

    def __init__(self, timeline: Timeline, seed: int | np.random.Generator) -> None:
        self.timeline = timeline
        self.state = np.random.default_rng(seed).integers(2**64, size=1, dtype=np.uint64)
        self._counts: Array = timeline.rows.view(np.int32)
        self._layout = row_layout(timeline.rows.dtype)
        self._u = np.zeros(0)

    @property
    def nbytes(self) -> int:
        """Memory of its own."""
        return self._u.nbytes

    def numbers(self, count: int) -> Array:
        """So many numbers in [0, 1), in memory that the next call overwrites."""
        u = self.room(count)[:count]
        uniform(self.state, u)
        return u

    def rows(self, size: int) -> Array:
        """So many live rows, each equally likely: proposed and kept if live, or else from the exact list."""
        row, n_proposals = np.empty(size, np.int64), self.count_proposals(size)
        if n_proposals:
            u = self.numbers(n_proposals)
            if draw_rows(self._counts, self._layout, u, self.timeline.high_water, row) == size:
                return row
        live = self.timeline.live_rows()
        return live[(self.numbers(size) * len(live)).astype(np.int64)]

    def count_proposals(self, size: int) -> int:
        """How many rows to propose so that nearly always `size` of them are live; 0 where the exact list is better."""
        share = self.timeline.num_transitions / self.timeline.high_water
        return int((size + 6 * math.sqrt(size * (1 - share))) / share) + 1 if share > FEWEST_LIVE else 0

    def room(self, count: int) -> Array:
        """Memory for at least so many numbers."""
        if len(self._u) < count:
            self._u = np.zeros(count)
        return self._u
