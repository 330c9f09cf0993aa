"""Priorities: one number per row, in proportion to which rows are sampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileError, InputError
from ..options import ReplayOptions
from ..records import Array
from .kernels import compiled, prefetch_bytes
from .rows import check_stored

SMALLEST_ERROR = 1e-6  # added to every TD error, so that every transition can be sampled again
FAN = 16  # children of a node of the sum tree: two cache lines
LARGEST_PRIORITY = 1e100  # error or distance: the sum over any ring remains finite
LEAST_FRACTION = 0.005  # of the way from start to goal, added to every path, so that episodes without movement are sampled
SMALLEST_ENERGY = 1e-150  # what is added where an episode starts at its goal
BASE_FRACTION = 0.1  # with `remaining`: fraction of the whole distance that counts for every row of the episode


class Priorities:
    """One number per row of a timeline, 0 at first. A row is sampled in proportion to it, and never if it is 0.

    The numbers are the leaves of a tree of sums with 16 children per node. So setting and drawing take the same few steps
    for any number of rows.
    """

    def __init__(self, n_rows: int) -> None:
        self._starts = tree_starts(n_rows)
        self._tree = np.zeros((2, self._starts[-1]))
        self._n_rows = n_rows

    @property
    def leaves(self) -> Array:
        """The numbers of all rows, a view."""
        return self._tree[0, : self._n_rows]

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._tree.nbytes

    @property
    def total(self) -> float:
        """Sum of all numbers."""
        return float(self._tree[0, -1])

    def values(self, rows: Array) -> Array:
        """Return the numbers of `rows`, a copy, (B,) float64."""
        values: Array = self._tree[0, rows]
        return values

    def set(self, rows: Array, values: Array) -> None:
        """Set the numbers of `rows`, (B,) integers, to `values`, (B,) float64, finite and at least 0; the last counts."""
        set_leaves(self._tree, self._starts, rows, values)

    def draw(self, u: Array) -> Array:
        """Return the rows, (B,) int64, at the fractions `u`, (B,) in [0, 1), of the total, which must be above 0."""
        rows = np.empty(len(u), np.int64)
        draw_leaves(self._tree, self._starts, u, rows)
        return rows

    def enter(self, first: int, rows: Array) -> None:
        """Add an episode whose T + 1 records were written from row `first` on."""
        raise NotImplementedError

    def leave(self, first: int, steps: int) -> None:
        """Remove an evicted episode of `steps` steps, whose first row is `first`."""
        self._fill(first, steps, 0.0)

    def _fill(self, first: int, steps: int, value: float) -> None:
        self.set(np.arange(first, first + steps), np.full(steps, value))

    def state(self, n_rows: int) -> dict[str, Array]:
        """Return what `load` needs: a view of the priorities of the first `n_rows` rows."""
        return {"priorities": self.leaves[:n_rows]}

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """Raise FileError unless exactly the rows that start a transition have a priority in `state`."""
        values = state["priorities"]
        check_stored("priorities", values, steps_left.shape, np.float64)
        is_live = values > 0
        if not np.isfinite(values.sum()) or (is_live != (steps_left > 0)).any() or values[~is_live].any():
            raise FileError("The stored priorities do not fit the stored rows, or are not finite. The file is damaged.")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the priorities of the first rows from a checked state. The other rows have none."""
        self._tree[:] = 0.0
        self.set(np.arange(len(state["priorities"])), state["priorities"])


class ErrorPriorities(Priorities):
    """Prioritized replay: (TD error + 1e-6) ** alpha (Schaul et al. 2016).

    New transitions get the largest error so far, 1 at first.
    """

    def __init__(self, n_rows: int, alpha: float) -> None:
        super().__init__(n_rows)
        self.alpha, self.largest_error = alpha, 1.0

    def enter(self, first: int, rows: Array) -> None:
        """As `Priorities.enter`."""
        self._fill(first, len(rows) - 1, (self.largest_error + SMALLEST_ERROR) ** self.alpha)

    def update(self, position: Any, errors: Any, first: int, stop: int) -> None:
        """Set new TD errors, see `HindsightBuffer.update_priorities`.

        position: write positions. first, stop: the range of those that are stored.
        """
        position, errors = np.asarray(position), np.asarray(errors)
        if position.dtype.kind not in "iu" or errors.dtype.kind not in "fiu" or position.shape != errors.shape:
            got = f"{position.shape} of {position.dtype} and {errors.shape} of {errors.dtype}"
            raise InputError(f"row and priority must be integers and numbers of one shape, got {got}.")
        position, errors = position.astype(np.int64, copy=False).ravel(), errors.astype(np.float64, copy=False).ravel()
        rows = np.empty(len(position), np.int64)
        if not find_rows(self.leaves, position, errors, first, stop, LARGEST_PRIORITY, rows):
            is_held = self._check(position, errors, rows, first, stop)
            rows, errors = rows[is_held], errors[is_held]
        self.set(rows, (errors + SMALLEST_ERROR) ** self.alpha)
        self.largest_error = float(errors.max(initial=self.largest_error))

    def _check(self, position: Array, errors: Array, rows: Array, first: int, stop: int) -> Array:
        """Raise InputError for invalid values. Return which of the rows are still stored."""
        is_good = (errors >= 0) & (errors <= LARGEST_PRIORITY)
        if not is_good.all():
            raise InputError(f"A priority must be between 0 and {LARGEST_PRIORITY:g}, got {errors[~is_good][0]}.")
        is_held = position >= first
        is_known = (position >= 0) & (position < stop) & (~is_held | (self.values(rows) > 0))
        if not is_known.all():
            raise InputError(f"row {position[~is_known][0]} starts no transition. Pass batch.row of a sample.")
        return is_held

    def state(self, n_rows: int) -> dict[str, Array]:
        """As `Priorities.state`."""
        return super().state(n_rows) | {"largest_error": np.array([self.largest_error])}

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """As `Priorities.check`."""
        super().check(state, steps_left)
        largest = state["largest_error"]
        check_stored("largest priority", largest, (1,), np.float64)
        if not 0 < largest[0] < np.inf:
            raise FileError(f"The stored largest priority must be finite and above 0, got {largest[0]}.")

    def load(self, state: Mapping[str, Array]) -> None:
        """As `Priorities.load`."""
        super().load(state)
        self.largest_error = float(state["largest_error"][0])


class EnergyPriorities(Priorities):
    """Sample episodes in proportion to the distance that the achieved goal moved (after Zhao and Tresp 2018).

    The length of the path stands for the energy. As in the paper, samples have no importance weights.
    cap: longer paths count as this length, in the unit of the goal. None: no cap.
    remaining: each row counts by the path that remains from its step on, plus BASE_FRACTION of the whole.
    """

    def __init__(self, n_rows: int, cap: float | None = None, remaining: bool = False) -> None:
        super().__init__(n_rows)
        self.cap, self.remaining = LARGEST_PRIORITY if cap is None else min(cap, LARGEST_PRIORITY), remaining

    def enter(self, first: int, rows: Array) -> None:
        """As `Priorities.enter`."""
        steps = len(rows) - 1
        moves = np.diff(rows["achieved_goal"].reshape(steps + 1, -1).astype(np.float64), axis=0)
        paths = np.minimum(np.linalg.norm(moves, axis=1)[::-1].cumsum()[::-1], self.cap)
        counts = paths + BASE_FRACTION * paths[0] if self.remaining else np.full(steps, paths[0])
        start = rows[:1]
        way = np.linalg.norm(start["desired_goal"].astype(np.float64) - start["achieved_goal"].astype(np.float64))
        least = min(max(LEAST_FRACTION * float(way), SMALLEST_ENERGY), LARGEST_PRIORITY)
        self.set(np.arange(first, first + steps), counts + least)


def make_priorities(n_rows: int, options: ReplayOptions) -> ErrorPriorities | EnergyPriorities | None:
    """Return the priorities that the options ask for, or None for uniform sampling."""
    if options.prioritized:
        return ErrorPriorities(n_rows, options.alpha)
    return EnergyPriorities(n_rows, options.energy_cap, options.energy_remaining) if options.energy_priority else None


def tree_starts(n_leaves: int) -> Array:
    """Return where the levels of a sum tree start, the leaves first, and the length of the tree as the last number.

    A node has FAN children. Levels are padded to whole blocks of FAN, except for the root, which is the sum of all leaves.
    """
    starts, count = [0], n_leaves
    while len(starts) < 2 or count > 1:
        starts.append(starts[-1] - -count // FAN * FAN)
        count = -(-count // FAN)
    return np.array([*starts, starts[-1] + 1], np.int64)


@compiled
def set_leaves(tree: Array, starts: Array, row: Array, value: Array) -> None:
    """Write `value` into the leaves `row` and update all sums above them. If a row is repeated, its last value counts.

    tree: (2, length): the numbers of all levels, and the running sum of each block beside them.
    starts: see `tree_starts`.
    Sums are recomputed from the left, so that rounding errors do not accumulate and equal leaves have equal sums.
    """
    numbers, sums = tree[0], tree[1]
    for i in range(len(row)):
        prefetch_bytes(numbers.ctypes.data + 8 * FAN * (row[i] // FAN), 8 * FAN)
        prefetch_bytes(sums.ctypes.data + 8 * FAN * (row[i] // FAN), 8 * FAN)
    for i in range(len(row)):
        numbers[row[i]] = value[i]
    size = 1
    for level in range(len(starts) - 2):
        size, last = size * FAN, -1
        for i in range(len(row)):
            node = row[i] // size
            if node != last:
                first, total, last = starts[level] + FAN * node, 0.0, node
                for j in range(FAN):
                    total += numbers[first + j]
                    sums[first + j] = total
                numbers[starts[level + 1] + node] = total


@compiled
def draw_leaves(tree: Array, starts: Array, u: Array, row: Array) -> None:
    """Fill `row` with the leaves at the fractions `u`, (B,) in [0, 1), of the total sum: never a leaf that holds 0.

    tree, starts: see `set_leaves`. The total must be above 0.
    All samples descend level by level, and the blocks of the next level are prefetched. Blocks are searched by bisection
    without branches, because a branch would be mispredicted half of the time.
    """
    sums, root = tree[1], len(starts) - 2
    rest = u * tree[0, starts[root]]
    row[:] = 0
    for level in range(root - 1, -1, -1):
        for i in range(len(row)):
            first = starts[level] + FAN * row[i]
            at, remaining, total = first, rest[i], sums[first + FAN - 1]
            if remaining < total:
                at += 8 * (sums[at + 7] <= remaining)
                at += 4 * (sums[at + 3] <= remaining)
                at += 2 * (sums[at + 1] <= remaining)
                at += sums[at] <= remaining
            else:  # by rounding: the last child that is not 0 is meant
                while sums[at] < total:
                    at += 1
            rest[i] = remaining - (sums[at - 1] if at > first else 0.0)
            row[i] = FAN * row[i] + at - first
            if level:
                prefetch_bytes(sums.ctypes.data + 8 * (starts[level - 1] + FAN * row[i]), 8 * FAN)
            else:  # the caller reads the numbers of these leaves next
                prefetch_bytes(tree.ctypes.data + 8 * row[i], 8)


@compiled
def find_rows(leaves: Array, position: Array, error: Array, first: int, stop: int, largest: float, row: Array) -> bool:
    """Fill `row` with the rows at these write positions. Return whether all are live and all errors are valid.

    leaves: one number per row, above 0 if the row is live.
    first, stop: the range of positions that are stored. They are at most len(leaves) apart.
    """
    is_good = True
    for i in range(len(position)):
        is_stored = first <= position[i] < stop
        row[i] = position[i] % len(leaves) if is_stored else 0
        is_good &= is_stored and leaves[row[i]] > 0 and 0 <= error[i] <= largest
    return is_good
