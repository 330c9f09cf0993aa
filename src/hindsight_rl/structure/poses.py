"""Symmetries of objects whose goals have more than their position: a height that stays, or an angle that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry
from .axis_symmetries import AxisSymmetries
from .columns import Units
from .findings import Structure
from .object_sequence import ObjectSequence
from .parts import Dimensions
from .steps import ROUNDED, Steps
from .success import RewardPairs
from .symmetry_verdicts import SymmetryVerdict, as_known, with_consequences, with_rewards


@dataclass(frozen=True)
class Poses:
    """The dimensions of a goal that are positions, ascending, and the size of the goal.

    columns: the column of each other dimension that changes, as it changes with it. All others stay as they are.
    headings: of these columns, cosine and sine of an angle.
    """

    positions: Dimensions
    goal_size: int
    columns: Mapping[int, int]
    headings: Sequence[tuple[int, int]] = ()

    def of_steps(self, steps: Steps) -> Steps:
        """Return the steps with positions as goals."""
        return steps.of_objects([self.positions])[0]

    def of_symmetries(self, symmetries: Sequence[Symmetry]) -> list[Symmetry]:
        """Return what symmetries of whole goals do with positions, without those that exchange positions with others."""
        at, found = list(self.positions), []
        for each in symmetries:
            source, factor, offset = (part[at] for part in (each.goal.source, each.goal.factor, each.goal.offset))
            if set(source.tolist()) == set(at):
                found.append(replace(each, goal=AffineMap(np.searchsorted(at, source), factor, offset)))
        return found

    def can_complete(self, symmetry: Symmetry) -> bool:
        """Whether each dimension that changes gets the place of another one, and angles turn back.

        A mirror changes the sign of either the cosine or the sine. Steps show that badly: an object turns in few of them.
        """
        columns, factor = [*self.columns.values()], symmetry.observation.factor
        turns_back = all(factor[cosine] * factor[sine] < 0 for cosine, sine in self.headings)
        return turns_back and set(symmetry.observation.source[columns].tolist()) == set(columns)

    def completed(self, verdict: SymmetryVerdict, units: Units, known: Sequence[Symmetry]) -> SymmetryVerdict:
        """Return a verdict about positions as one about whole goals.

        units: how the observation holds the columns. known: symmetries that held before.
        """
        of_positions, goal, at = verdict.candidate.symmetry, AffineMap.identity(self.goal_size), np.array(self.positions)
        moved, seen = of_positions.goal, of_positions.observation
        goal.source[at], goal.factor[at], goal.offset[at] = at[moved.source], moved.factor, moved.offset
        dimension_of = {column: k for k, column in self.columns.items()}
        for k, column in self.columns.items():
            goal.source[k] = dimension_of[int(seen.source[column])]
            goal.factor[k], goal.offset[k] = seen.factor[column], seen.offset[column]
        whole = replace(of_positions, goal=goal)
        candidate = replace(verdict.candidate, symmetry=whole)
        return replace(verdict, candidate=candidate, text=as_known(whole, units, known)[0].text())


def find_symmetries(
    steps: Steps,
    visible: Sequence[int],
    found: Structure,
    sequence: ObjectSequence,
    known: Sequence[Symmetry],
    rewards: RewardPairs | None = None,
) -> tuple[SymmetryVerdict, ...]:
    """Return the verdict of each symmetry of a task with objects that is proposed.

    An angle that changes may change its sign in a mirror. That of its column decides, be it hidden.

    steps: in the units of the goal. visible: observation columns that the networks see. known: symmetries that held before.
    rewards: of the task.
    """
    contact = sequence.joint
    if not contact.has_equal_objects:
        return ()
    columns = {k: found.copies.complete[k] for k in changing_dimensions(steps, sequence)}
    angles, headings = [*columns.values()], [(columns[k], columns[m]) for k, m in find_headings(steps, [*columns])]
    poses = Poses(sequence.joint_dimensions, steps.goal_size, columns, headings)
    of_positions, known_there = poses.of_steps(steps), poses.of_symmetries(known)
    shown, options = sorted({*visible, *angles}), (known_there, found.has_choices, angles)
    axes = AxisSymmetries(of_positions, shown, contact, found.controlled, found.units, *options)
    possible = [each for each in axes.find() if poses.can_complete(each.candidate.symmetry)]
    whole = [poses.completed(each, found.units, known) for each in possible]
    return tuple(with_consequences(with_rewards(whole, rewards)))


def find_headings(steps: Steps, dimensions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of dimensions of the goal that are cosine and sine of an angle."""
    square = np.square(steps.achieved_goal)
    pairs = combinations(dimensions, 2)
    return [(k, m) for k, m in pairs if np.allclose(square[:, k] + square[:, m], 1, atol=ROUNDED)]


def changing_dimensions(steps: Steps, sequence: ObjectSequence) -> list[int]:
    """Return the dimensions of the goal that are no position and change, as angles do."""
    others = np.array(sorted({*range(steps.goal_size)}.difference(sequence.joint_dimensions)), np.int64)
    goals = np.concatenate([steps.achieved_goal, steps.next_achieved_goal, steps.desired_goal])[:, others]
    return [int(k) for k in others[np.ptp(goals, axis=0) > 0]]
