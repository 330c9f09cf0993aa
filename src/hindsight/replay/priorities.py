"""Priorities: rows drawn in proportion to a number of their own, by how wrong their values were or how far things moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileError, InputError, OptionError
from ..records import Array
from .kernels import are_errors, draw_leaves, set_leaves, tree_starts

SMALLEST_ERROR = 1e-6  # added to every error, so that no transition is lost for good
LARGEST = 1e100  # error or distance, whose sum over any ring is still finite
SMALLEST_MOVE = 1e-3  # in the goal's units, added to every distance, so that episodes in which nothing moved are seen too
SHARE_AT_REST = 0.1  # with `ahead`: what all rows count besides, so that rest at a goal is learnt too


class Priorities:
    """One number per row, and the sums of these, 16 to a node: setting and drawing cost the same few steps in any ring.

    n_rows: rows of the ring. All numbers start at 0, which is never drawn. per_row: above 1, every row has so many numbers,
    one after the other, and wherever "rows" are drawn or set, these are meant: row * per_row + 0, 1, ...
    """

    def __init__(self, n_rows: int, per_row: int = 1) -> None:
        self.per_row, self.n_numbers = per_row, n_rows * per_row
        self._starts = tree_starts(self.n_numbers)
        self._tree = np.zeros((2, self._starts[-1]))

    @property
    def nbytes(self) -> int:
        """All memory that is held."""
        return self._tree.nbytes

    @property
    def total(self) -> float:
        """The sum of all."""
        return float(self._tree[0, -1])

    def of(self, rows: Array) -> Array:
        """The numbers of `rows`, a copy, (B,) float64."""
        values: Array = self._tree[0, rows]
        return values

    def set(self, rows: Array, values: Array) -> None:
        """Give `rows`, (B,) integers, the numbers `values`, (B,) float64, finite and not negative; the last counts."""
        set_leaves(self._tree, self._starts, rows, values)

    def draw(self, u: Array) -> Array:
        """The rows, (B,) int64, into which the shares `u`, (B,) in [0, 1), of the sum fall; `total` must be above 0."""
        rows = np.empty(len(u), np.int64)
        draw_leaves(self._tree, self._starts, u, rows)
        return rows

    def leave(self, first: int, steps: int) -> None:
        """Forget an evicted episode of so many steps, whose first row was `first`."""
        self.fill(first, steps, 0.0)

    def fill(self, first: int, steps: int, value: float) -> None:
        """Give all numbers of `steps` rows from `first` on the same value."""
        rows = np.arange(first * self.per_row, (first + steps) * self.per_row)
        self.set(rows, np.full(len(rows), value))

    def state(self, n_rows: int) -> dict[str, Array]:
        """All that `load` needs; the numbers of the first `n_rows` rows are a view."""
        return {"priorities": self._tree[0, : n_rows * self.per_row]}

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """Raise FileError unless in `state` exactly those rows have a number that start a transition."""
        values, is_row_live = state["priorities"], np.repeat(steps_left > 0, self.per_row)
        if values.dtype != np.float64 or values.shape != is_row_live.shape:
            raise FileError(f"the priorities are {values.shape} of {values.dtype}, not {is_row_live.shape} of float64")
        is_live = values > 0
        if not np.isfinite(values.sum()) or (is_live != is_row_live).any() or values[~is_live].any():
            raise FileError("the priorities do not belong to the stored rows, or are not finite")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the numbers of the first rows, after `check`; the others have none."""
        self._tree[:] = 0.0
        self.set(np.arange(len(state["priorities"])), state["priorities"])


class ByError(Priorities):
    """Rows count by how wrong their value was when last learnt from, to the power alpha (Schaul et al. 2016).

    Transitions that were not learnt from yet count as much as the largest error so far, 1 at first. smallest_error: is
    added to every error.
    """

    names = "row", "those of a batch, batch.row"  # what a refusal calls the rows, and where they come from

    def __init__(self, n_rows: int, alpha: float, per_row: int = 1, smallest_error: float = SMALLEST_ERROR) -> None:
        if not 0 <= alpha <= 1:
            raise OptionError(f"alpha is {alpha}, but it must lie between 0 (all rows alike) and 1")
        super().__init__(n_rows, per_row)
        self.alpha, self.smallest_error, self.largest_error = alpha, smallest_error, 1.0
        self._gone: list[tuple[int, int]] | None = None  # first and stop of rows evicted since the last draw, if any was

    def enter(self, first: int, rows: Array) -> None:
        """Take in an episode, the T + 1 records that were written from row `first` on."""
        self.fill(first, len(rows) - 1, (self.largest_error + self.smallest_error) ** self.alpha)

    def leave(self, first: int, steps: int) -> None:
        """As `Priorities.leave`; updates for these rows are dropped until the next draw."""
        super().leave(first, steps)
        if self._gone is not None:
            is_next = self._gone and self._gone[-1][1] == first  # so that the list stays short, however many leave
            start = self._gone.pop()[0] if is_next else first
            self._gone.append((start, first + steps + 1))

    def draw(self, u: Array) -> Array:
        """As `Priorities.draw`."""
        self._gone = []
        return super().draw(u)

    def weights(self, rows: Array, beta: float) -> Array:
        """(N * p / total)^-beta over its largest in the batch, (..., B) as `rows`, float32: N and total cancel out."""
        values = self.of(rows)
        weights: Array = ((values.min(axis=-1, keepdims=True) / values) ** beta).astype(np.float32)
        return weights

    def update(self, rows: Any, errors: Any) -> None:
        """See `HindsightBuffer.update_priorities`."""
        rows, errors = np.asarray(rows), np.asarray(errors)
        if rows.dtype.kind not in "iu" or errors.dtype.kind not in "fiu" or rows.shape != errors.shape:
            raise InputError(
                f"{self.names[0]} is {rows.shape} of {rows.dtype} and priority {errors.shape} of {errors.dtype}, but "
                f"integers and numbers of one shape are needed"
            )
        rows, errors = rows.astype(np.int64).ravel(), errors.astype(np.float64).ravel()
        if self._gone or not are_errors(self._tree[0], self.n_numbers, rows, errors, LARGEST):
            is_left = self._check(rows, errors)
            rows, errors = rows[is_left], errors[is_left]
        self.set(rows, (errors + self.smallest_error) ** self.alpha)
        self.largest_error = float(errors.max(initial=self.largest_error))

    def _check(self, rows: Array, errors: Array) -> Array:
        """Refuse what is wrong, in words; returns which of the rows were not evicted since the last draw."""
        name, source = self.names
        is_good, is_row = (errors >= 0) & (errors <= LARGEST), (rows >= 0) & (rows < self.n_numbers)
        if not is_good.all():
            raise InputError(
                f"a priority is {errors[~is_good][0]}, but all must lie between 0 and {LARGEST:g}: give the size of "
                f"each sample's error"
            )
        if not is_row.all():
            raise InputError(f"{name} {rows[~is_row][0]} is none of the {self.n_numbers} {name}s: give {source}")
        is_left = np.ones(len(rows), np.bool_)
        for first, stop in self._gone or ():
            is_left &= (rows < first * self.per_row) | (rows >= stop * self.per_row)
        is_empty = is_left & (self.of(rows) == 0)
        if is_empty.any():
            raise InputError(f"{name} {rows[is_empty][0]} starts no transition: give {source}")
        return is_left

    def state(self, n_rows: int) -> dict[str, Array]:
        """As `Priorities.state`."""
        return super().state(n_rows) | {"largest_error": np.array([self.largest_error])}

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """As `Priorities.check`."""
        super().check(state, steps_left)
        largest = state["largest_error"]
        if largest.dtype != np.float64 or largest.shape != (1,) or not 0 < largest[0] < np.inf:
            raise FileError(f"the largest priority is {largest} of {largest.dtype}, not one finite float64 above 0")

    def load(self, state: Mapping[str, Array]) -> None:
        """As `Priorities.load`."""
        super().load(state)
        self.largest_error = float(state["largest_error"][0])
        self._gone = None


class ByEnergy(Priorities):
    """Rows count by how far the achieved goal moved in their episode, step by step.

    After energy-based prioritisation (Zhao and Tresp 2018), with the length of the path for the energy. No weights: as
    there, what is seen more often is meant to count more. limit: a longer way counts no more than this. ahead: a row counts
    by the way that is still ahead of it, and by a tenth of the whole: past the last move no hindsight goal is a new one.
    """

    def __init__(self, n_rows: int, limit: float | None = None, ahead: bool = False) -> None:
        super().__init__(n_rows)
        self.limit, self.ahead = LARGEST if limit is None else min(limit, LARGEST), ahead

    def enter(self, first: int, rows: Array) -> None:
        """Take in an episode, the T + 1 records that were written from row `first` on."""
        steps = len(rows) - 1
        moves = np.diff(rows["achieved_goal"].reshape(steps + 1, -1).astype(np.float64), axis=0)
        ways = np.minimum(np.linalg.norm(moves, axis=1)[::-1].cumsum()[::-1], self.limit)
        counts = ways + SHARE_AT_REST * ways[0] if self.ahead else np.full(steps, ways[0])
        self.set(np.arange(first, first + steps), counts + SMALLEST_MOVE)

    def weights(self, rows: Array, beta: float) -> None:
        """None: all samples count alike."""

    def update(self, rows: Any, errors: Any) -> None:
        """Refuse: how far things moved stays as it was."""
        raise InputError("this buffer draws by energy, which nothing updates: make it with prioritized=True instead")


Rule = ByError | ByEnergy
