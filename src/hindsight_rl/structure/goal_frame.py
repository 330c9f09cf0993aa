"""Goals as inference sees them: the dimensions of each object one after another, from the origin of what columns show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..records import Array, Episode, GoalSpec
from ..records.reward_scale import RewardOf
from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry
from .columns import Units
from .findings import Structure
from .object_sequence import ObjectSequence
from .parts import Dimensions, Parts


@dataclass(frozen=True)
class GoalFrame:
    """A goal is seen as goal[order] - origin. Both have one value for each dimension."""

    order: Dimensions
    origin: tuple[float, ...]

    @property
    def is_usual(self) -> bool:
        """Whether goals are seen as they are."""
        return self.order == tuple(range(len(self.order))) and not any(self.origin)

    @property
    def inverse(self) -> GoalFrame:
        """The frame in which what this frame shows is seen as it was."""
        back = np.argsort(self.order)
        return GoalFrame(tuple(back.tolist()), tuple((-np.array(self.origin)[back]).tolist()))

    def of_goals(self, goals: Array) -> Array:
        """Return goals (N, g) as they are seen, in float64."""
        return np.asarray(goals[:, self.order] - np.array(self.origin))

    def of_episodes(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Return episodes whose goals are seen so."""
        return [
            replace(each, achieved_goal=self.of_goals(each.achieved_goal), desired_goal=self.of_goals(each.desired_goal))
            for each in episodes
        ]

    def of_reward(self, compute_reward: RewardOf | None, dtype: str) -> RewardOf | None:
        """Return the reward of goals that are seen so. dtype: of the goals of the task."""
        if compute_reward is None:
            return None
        ask, back = compute_reward, self.inverse

        def of_seen(achieved: Array, desired: Array, info: Any) -> Any:
            return ask(back.of_goals(achieved).astype(dtype), back.of_goals(desired).astype(dtype), info)

        return of_seen

    def of_symmetry(self, symmetry: Symmetry) -> Symmetry:
        """Return the symmetry that does with seen goals what another one does with goals."""
        goal, order, origin = symmetry.goal, np.array(self.order), np.array(self.origin)
        source, factor = np.argsort(order)[goal.source[order]], goal.factor[order]
        seen = AffineMap(source, factor, factor * origin[source] + goal.offset[order] - origin)
        return replace(symmetry, goal=seen)

    def _shift(self, sequence: ObjectSequence) -> dict[int, float]:
        """Return what is added to columns of steps, so that tool, objects and bodies are positions of goals as they are."""
        shift = {column: self.origin[k] for k, column in sequence.others}
        for dimensions, contact in zip(sequence.dimensions, sequence.contacts, strict=True):
            for k, *columns in zip(dimensions, contact.tool, contact.object_columns, strict=True):
                shift |= dict.fromkeys(columns, self.origin[k])
        return shift

    def restore(self, found: Structure, spec: GoalSpec) -> Structure:
        """Return what was found in seen goals, said of goals as they are."""
        back, sequence, workspace = self.inverse, found.sequence, found.workspace

        def of(dimensions: Sequence[int]) -> Dimensions:
            return tuple(self.order[k] for k in dimensions)

        parts = [replace(each, dimensions=tuple(sorted(of(each.dimensions)))) for each in found.parts.parts]
        shift: dict[int, float] = {}
        if sequence is not None:
            shift = self._shift(sequence)
            others = tuple((self.order[k], column) for k, column in sequence.others)
            sequence = replace(sequence, dimensions=tuple(map(of, sequence.dimensions)), others=others)
        if workspace is not None:
            low, high = back.of_goals(np.array([workspace.low, workspace.high])).tolist()
            workspace = replace(workspace, low=tuple(low), high=tuple(high))
        return replace(
            found,
            units=found.units.shifted(shift),
            parts=replace(found.parts, parts=tuple(sorted(parts, key=lambda part: part.dimensions))),
            copies=replace(found.copies, columns=tuple(found.copies.columns[k] for k in back.order)),
            sequence=sequence,
            workspace=workspace,
            handles=tuple(replace(each.shifted(shift), dimension=self.order[each.dimension]) for each in found.handles),
            without_handle=tuple(sorted(of(found.without_handle))),
        ).with_symmetries(back.of_symmetry, spec)


def find_frame(parts: Parts, units: Units) -> GoalFrame:
    """Return the frame in which the dimensions of each object are neighbours, and positions that columns show start at 0.

    units: if columns show all positions with one factor, but from another origin, these are the columns'.
    """
    n = sum(len(part.dimensions) for part in parts.parts)
    are_neighbours = all(each[-1] - each[0] == len(each) - 1 for each in parts.objects)
    order = tuple(range(n)) if are_neighbours else tuple(k for part in parts.parts for k in part.dimensions)
    return GoalFrame(order, tuple(units.origin[k] for k in order) if units.origin else (0.0,) * n)
