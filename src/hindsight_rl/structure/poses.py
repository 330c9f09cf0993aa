"""Symmetries of objects that have a height that stays, say, besides their position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..task_structure.affine import AffineMap
from ..task_structure.symmetries import Symmetry
from .axis_symmetries import AxisSymmetries
from .columns import Units
from .findings import Structure
from .object_sequence import ObjectSequence
from .parts import Dimensions
from .steps import Steps
from .symmetry_verdicts import SymmetryVerdict, as_known


@dataclass(frozen=True)
class Poses:
    """The dimensions of a goal that are positions, ascending, and the size of the goal. All others stay as they are."""

    positions: Dimensions
    goal_size: int

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

    def completed(self, verdict: SymmetryVerdict, units: Units, known: Sequence[Symmetry]) -> SymmetryVerdict:
        """Return a verdict about positions as one about whole goals.

        units: how the observation holds the columns. known: symmetries that held before.
        """
        of_positions, goal, at = verdict.candidate.symmetry, AffineMap.identity(self.goal_size), np.array(self.positions)
        moved = of_positions.goal
        goal.source[at], goal.factor[at], goal.offset[at] = at[moved.source], moved.factor, moved.offset
        whole = replace(of_positions, goal=goal)
        candidate = replace(verdict.candidate, symmetry=whole)
        return replace(verdict, candidate=candidate, text=as_known(whole, units, known)[0].text())


def find_symmetries(
    steps: Steps, visible: Sequence[int], found: Structure, sequence: ObjectSequence, known: Sequence[Symmetry]
) -> tuple[SymmetryVerdict, ...]:
    """Return the verdict of each symmetry of a task with objects that is proposed.

    An angle may change its sign in a mirror, which nothing tests: with angles that change no symmetry is proposed.

    steps: in the units of the goal. visible: observation columns that the networks see. known: symmetries that held before.
    """
    contact, poses = sequence.joint, Poses(sequence.joint_dimensions, steps.goal_size)
    if not (contact.has_equal_objects and are_constant(steps, sequence)):
        return ()
    of_positions, known_there = poses.of_steps(steps), poses.of_symmetries(known)
    axes = AxisSymmetries(of_positions, visible, contact, found.controlled, found.units, known_there, found.has_choices)
    return tuple(poses.completed(each, found.units, known) for each in axes.find())


def are_constant(steps: Steps, sequence: ObjectSequence) -> bool:
    """Whether all dimensions of the goal that are no position are always the same."""
    others = sorted({*range(steps.goal_size)}.difference(sequence.joint_dimensions))
    goals = np.concatenate([steps.achieved_goal, steps.next_achieved_goal, steps.desired_goal])[:, others]
    return not np.ptp(goals, axis=0).any()
