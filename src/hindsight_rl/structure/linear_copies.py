"""Columns that show a position in another frame, as that of a robot's base, or a finger beside the hand.

What a symmetry does with them follows from what it does with the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..task_structure.affine import AffineMap
from .steps import HARDLY, Steps, correlations, rounded


@dataclass(frozen=True)
class LinearCopy:
    """A column that is factor * position + constant. rank: its number among those of one position."""

    column: int
    position: int
    factor: float
    constant: float
    rank: int


def find_linear_copies(steps: Steps, positions: Sequence[int], columns: Sequence[int]) -> list[LinearCopy]:
    """Return which of the columns are linear functions of a position, up to little noise. They are no positions."""
    at, others = list(dict.fromkeys(positions)), [c for c in columns if c not in positions]
    if not others:
        return []
    alike = np.abs(correlations(steps.observation[:, others], steps.observation[:, at].T))
    found, n_copies = [], dict.fromkeys(at, 0)
    for column, row in zip(others, alike, strict=True):
        position = at[int(row.argmax())]
        if row.max() ** 2 > 1 - HARDLY**2:
            seen = steps.observation[:, column]
            factor, constant = np.polyfit(steps.observation[:, position], seen, 1)
            # rounded, so that the symmetries form a finite group
            factor, constant = float(rounded(factor, abs(factor))), float(rounded(constant, seen.std()))
            found.append(LinearCopy(column, position, factor, constant, n_copies[position]))
            n_copies[position] += 1
    return found


def follow_positions(observation: AffineMap, copies: Sequence[LinearCopy]) -> None:
    """Let copies change as their positions do. One whose position gets the place of a position without a copy stays."""
    copy_of = {(each.position, each.rank): each for each in copies}
    for each in copies:
        other = copy_of.get((int(observation.source[each.position]), each.rank))
        if other is not None:
            factor = each.factor * observation.factor[each.position] / other.factor
            observation.source[each.column], observation.factor[each.column] = other.column, factor
            moved = each.factor * observation.offset[each.position] + each.constant
            observation.offset[each.column] = moved - factor * other.constant
