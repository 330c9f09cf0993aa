"""What symmetries and subgoals do to sampled transitions. These are steps of the sampler's pipeline."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numba import njit

from ..errors import OptionError
from ..records import Array, Batch
from .subgoals import TASK, Subgoals
from .symmetries import SymmetryGroup

PART_OF_FIELD = {
    "observation": "observation",
    "next_observation": "observation",
    "achieved_goal": "goal",
    "next_achieved_goal": "goal",
    "goal": "goal",
    "action": "action",
}  # field of a batch that a symmetry changes: the columns that it holds


class Uniform(Protocol):
    """A source of random numbers."""

    def uniform(self, count: int) -> Array:
        """Return `count` numbers in [0, 1), in memory that the next call overwrites."""


class Sample(Protocol):
    """What is known of a batch besides its arrays (..., B): `goal_at` is the first byte of each goal in the ring, (B,)."""

    @property
    def batch(self) -> Batch:
        """The batch that is returned."""

    @property
    def goal_at(self) -> Array:
        """The first byte of each sample's goal in the ring, (B,) int64."""


class SymmetryTransform:
    """Apply a random group element to each sample. Rewards are computed before: no symmetry changes them."""

    def __init__(self, group: SymmetryGroup) -> None:
        self._group = group

    def __call__(self, batch: Batch, draw: Sample, rng: Uniform) -> None:
        """Transform observations, goals and actions in place."""
        self.apply(batch, rng)

    def apply(self, batch: Batch, rng: Uniform) -> Array:
        """Transform the rows of a batch in place. Return the random group elements, (B,) int64."""
        element = (rng.uniform(len(batch)) * len(self._group)).astype(np.int64)
        for field, part in PART_OF_FIELD.items():
            self.apply_to(getattr(batch, field), part, element)
        return element

    def apply_to(self, values: Array, part: str, element: Array) -> None:
        """Transform observations, goals or actions in place. part: which of them `values`, (B, n), are.

        Discrete actions are (B,).
        """
        if part == "action" and self._group.has_choices:
            values[:] = self._group.exchanged(values, element)
            return
        maps = self._group.maps[part]
        apply_symmetry(values, element, maps.source, maps.factor, maps.offset)


@njit(cache=True, nogil=True, error_model="numpy")
def apply_symmetry(values: Array, element: Array, source: Array, factor: Array, offset: Array) -> None:
    """Replace every row x of `values` by factor * x[source] + offset, with the maps of its group element.

    NumPy takes ten times as long: 160 instead of 16 microseconds for all fields of 256 samples of FetchPush.

    values: (B, n) floats.
    element: (B,), one of the G group elements. Element 0 is the identity and is skipped.
    source, factor, offset: (G, n), see `AffineMap`.
    """
    row = np.empty(values.shape[1], values.dtype)
    for i in range(len(values)):
        g = element[i]
        if g:
            for j in range(len(row)):  # an assignment of the slice takes 2 s more to compile
                row[j] = values[i, j]
            for j in range(len(row)):
                values[i, j] = factor[g, j] * row[source[g, j]] + offset[g, j]


class SubgoalTransform:
    """Relabel a fraction of the samples with the goals of subgoals (relay HER, Luo et al. 2023).

    With objects, the other samples are split evenly between the task's goal and goals that ask for the first objects only.

    rows: of the timeline. The fraction is split evenly between the subgoals.
    rewards: where a subgoal is missed, and where it is reached.
    group: the symmetries of the samples. With objects they are applied here, before: they may exchange objects. Others are
        applied later, and must transform the columns of subgoals as they transform goals.
    Raises OptionError if they do not.
    """

    def __init__(
        self, rows: Array, subgoals: Subgoals, fraction: float, rewards: tuple[float, float], group: SymmetryGroup
    ) -> None:
        self.subgoals, self.fraction, (self._missed, self._reached) = subgoals, fraction, rewards
        self._symmetry = SymmetryTransform(group) if subgoals.has_objects and len(group) > 1 else None
        for subgoal in subgoals if self._symmetry is None and len(group) > 1 else ():
            if (columns := group.differing_columns(subgoal)) is not None:
                which = f"the columns {columns} of the subgoal {subgoal.name}"
                raise OptionError(f"The symmetries must transform {which} as they transform goals.")
        self._observations: Array = rows["observation"]
        fields: Any = rows.dtype.fields
        self._row_bytes, self._desired_at = rows.itemsize, fields["desired_goal"][1]

    def __call__(self, batch: Batch, draw: Sample, rng: Uniform) -> None:
        """Choose the samples of each subgoal. `subgoal` of the batch says which subgoal a sample has, 0 for none."""
        element = None if self._symmetry is None else self._symmetry.apply(batch, rng)
        subgoal, size = self._draw(rng.uniform(len(batch))), len(self.subgoals)
        place = np.zeros((len(batch), self.subgoals.n_added), batch.goal.dtype)
        for k in range(1, self.subgoals.n_indices - size + 1):
            self._ask_for_first(batch, np.flatnonzero(subgoal == size + k), k)
        for index in range(1, size + 1):
            self._relabel(batch, place, draw.goal_at, np.flatnonzero(subgoal == index), index, element)
        draw.batch.subgoal = subgoal.reshape(draw.batch.row.shape)
        if self.subgoals.n_added:
            draw.batch.place = place.reshape(*draw.batch.row.shape, -1)

    def _draw(self, u: Array) -> Array:
        """Return the index of the subgoal of each sample, (B,). u: (B,) in [0, 1)."""
        size = len(self.subgoals)
        reach = 1 + (u / max(self.fraction, 1e-9) * size).astype(np.int64)
        n_first = self.subgoals.n_indices - size
        first = ((u - self.fraction) / max(1 - self.fraction, 1e-9) * (n_first + 1)).astype(np.int64)
        return np.where(u < self.fraction, reach, np.where(first > 0, size + first, TASK))

    def _ask_for_first(self, batch: Batch, here: Array, k: int) -> None:
        """Write goals and rewards into the samples `here` that ask for the positions of the first k objects."""
        goal = batch.goal[here]
        batch.achieved_goal[here] = self.subgoals.of_first(k, batch.achieved_goal[here], goal)
        batch.next_achieved_goal[here] = reached = self.subgoals.of_first(k, batch.next_achieved_goal[here], goal)
        self._reward(batch, here, self._are_placed(k, reached, goal))

    def _relabel(self, batch: Batch, place: Array, goal_at: Array, here: Array, index: int, element: Array | None) -> None:
        """Write goals and rewards of a subgoal into the samples `here`.

        The goal comes from the row of the sample's goal: the subgoal achieved there if relabelled, else desired there.
        Objects before it stay where the sample's own goal asks for them; the dimensions of those after it count as reached.
        place: of all samples, (B, dimensions that subgoals add), where a goal that is no position in the task's goal goes.
        element: by which the samples were transformed; None: by none.
        """
        subgoal = self.subgoals.items[index - 1]
        goal_row, first_byte = np.divmod(goal_at[here], self._row_bytes)
        is_desired = (first_byte == self._desired_at)[:, None]
        there = self._observations[goal_row]
        if self._symmetry is not None and element is not None:
            self._symmetry.apply_to(there, "observation", element[here])
        own, observations = batch.goal[here], (batch.observation[here], batch.next_observation[here])
        goal = np.where(is_desired, subgoal.goal.of(there), subgoal.achieved.of(there))
        before, after = (
            self.subgoals.reach(index, observation, achieved, own)[0]
            for observation, achieved in zip(
                observations, (batch.achieved_goal[here], batch.next_achieved_goal[here]), strict=True
            )
        )
        gap = subgoal.achieved.of(observations[1]) - goal
        is_met = np.sqrt(np.square(gap).sum(1)) < subgoal.tolerance
        is_met &= self._are_placed(index - 1, batch.next_achieved_goal[here], own)
        size = own.shape[-1]
        batch.achieved_goal[here], batch.next_achieved_goal[here] = before[:, :size], after[:, :size]
        if subgoal.n_added:
            place[here] = goal
        else:
            batch.goal[here] = subgoal.fill(goal, own)
        self._reward(batch, here, is_met)

    def _are_placed(self, k: int, achieved_goal: Array, goal: Array) -> Array:
        """Return whether the first k objects are where goals (N, g) ask for them, (N,) bool."""
        placed = [each.is_placed(achieved_goal, goal) for each in self.subgoals.items[:k]]
        return np.logical_and.reduce(placed, axis=0) if placed else np.ones(len(goal), np.bool_)

    def _reward(self, batch: Batch, here: Array, is_met: Array) -> None:
        """Write the rewards of subgoals, (N,) bool. None of them ends an episode."""
        batch.reward[here] = np.where(is_met, self._reached, self._missed)
        batch.terminated[here] = False
