"""TransitionPriorities: cpprb's prioritized replay (Schaul et al. 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FileError, InputError, OptionError
from ..records import Array
from ..replay.priorities import SumTree
from .cpprb_fields import as_array

LARGEST_PRIORITY = 1e100  # the sum over any buffer is still finite


class NoneGivenError(InputError, TypeError):
    """None was given where values are needed."""


class TransitionPriorities:
    """Sample slots in proportion to (priority + eps)^alpha.

    n_slots: number of slots; a slot holds one transition or is empty.
    alpha: in [0, 1]; 0 samples uniformly.
    eps: above 0; added to each priority, so that every transition can be sampled.

    As in cpprb, a new transition gets the largest priority so far (1 at first), and weights are divided by the largest
    weight of all stored transitions, not of the batch.
    """

    def __init__(self, n_slots: int, alpha: float, eps: float) -> None:
        if not 0 <= alpha <= 1:
            raise OptionError(f"`alpha` must be between 0 and 1, got {alpha}.")
        if not 0 < eps < np.inf:
            raise OptionError(f"`eps` must be above 0, got {eps}: otherwise some transitions are never sampled again.")
        self._n_slots, self.alpha, self.eps = n_slots, float(alpha), float(eps)
        self.clear()

    def clear(self) -> None:
        """Empty all slots and forget the largest priority."""
        self._tree, self.largest = SumTree(self._n_slots), 1.0
        self._lowest, self._n_lowest = np.inf, 0  # the lowest value of an occupied slot, and how many slots have it

    def insert(self, slots: Array) -> None:
        """Give new transitions the largest priority so far."""
        self._set(slots, np.full(len(slots), (self.largest + self.eps) ** self.alpha))

    def remove(self, slots: Array) -> None:
        """Empty some slots."""
        self._set(slots, np.zeros(len(slots)))

    def update(self, slots: Array, priorities: Array) -> None:
        """Set the priorities of occupied slots; if a slot comes twice, the last one counts."""
        self._set(slots, (priorities + self.eps) ** self.alpha)
        self.largest = float(priorities.max(initial=self.largest))

    def draw(self, u: Array) -> Array:
        """Return the slots that belong to the fractions `u` of the sum of all values. u: (B,) in [0, 1)."""
        return self._tree.draw(u)

    def weights(self, slots: Array, beta: float) -> Array:
        """Return (N * probability)^-beta divided by its largest over all transitions, (B,) float32."""
        if self._n_lowest <= 0:
            self._find_lowest()
        weights: Array = ((self._lowest / self._tree.values(slots)) ** beta).astype(np.float32)
        return weights

    def _find_lowest(self) -> None:
        """Search all slots for the lowest value: only when the last slot that had it has changed."""
        values = self._tree.leaves
        self._lowest = float(values.min(where=values > 0, initial=np.inf))
        self._n_lowest = int(np.count_nonzero(values == self._lowest))

    def _set(self, slots: Array, values: Array) -> None:
        """Set the values of some slots, and keep count of those that have the lowest one."""
        self._n_lowest -= int(np.count_nonzero(self._tree.values(slots) == self._lowest))
        self._tree.set(slots, values)
        values = self._tree.values(slots)
        lowest = float(values.min(where=values > 0, initial=np.inf))
        if lowest < self._lowest:
            self._lowest, self._n_lowest = lowest, 0
        if lowest == self._lowest:
            self._n_lowest += len(np.unique(slots[values == lowest]))

    def state(self, slots: Array) -> dict[str, Array]:
        """Return what `load` needs. slots: all occupied slots."""
        return {"priorities": np.append(self._tree.values(slots), self.largest)}

    def load(self, state: Mapping[str, Array], slots: Array) -> None:
        """Take over the priorities of `slots`; all other slots are empty. Raises FileError or ValueError."""
        values = state["priorities"]
        is_valid = (values > 0) & (values <= 2 * LARGEST_PRIORITY)
        if values.dtype != np.float64 or values.shape != (len(slots) + 1,) or not is_valid.all():
            raise FileError(f"the priorities are not {len(slots)} finite numbers above 0")
        self.clear()
        self._set(slots, values[:-1])
        self.largest = float(values[-1])


def read_priorities(indexes: Any, priorities: Any, stop: int) -> tuple[Array, Array]:
    """Return the arguments of `update_priorities` as arrays, (N,) int64 and (N,) float64.

    stop: the index that the next transition will have.
    Raises NoneGivenError, or InputError for other kinds of values, unknown indexes, NaN, infinity and negative priorities.
    """
    if indexes is None or priorities is None:
        raise NoneGivenError("`indexes` and `priorities` must not be None. Give the indexes of a sample.")
    index, priority = as_array("indexes", indexes).ravel(), as_array("priorities", priorities).ravel()
    is_empty = not index.size and not priority.size
    if not is_empty and (index.dtype.kind not in "iu" or priority.dtype.kind not in "fiu" or index.shape != priority.shape):
        given = f"{index.shape} of {index.dtype} and {priority.shape} of {priority.dtype}"
        raise InputError(f"Expected integers for `indexes` and as many numbers for `priorities`, got {given}.")
    is_known = (index >= 0) & (index < stop)
    if not is_known.all():
        raise InputError(f'`indexes` holds {index[~is_known][0]}, which no sample had. Give the "indexes" of a sample.')
    index, priority = index.astype(np.int64), priority.astype(np.float64)
    is_valid = (priority >= 0) & (priority <= LARGEST_PRIORITY)
    if not is_valid.all():
        given, limit = priority[~is_valid][0], f"{LARGEST_PRIORITY:g}"
        raise InputError(f"`priorities` must be between 0 and {limit}, got {given}. Give the absolute TD errors.")
    return index, priority
