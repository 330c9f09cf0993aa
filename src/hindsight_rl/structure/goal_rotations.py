"""Which columns of a goal are a rotation: a unit vector of cosine and sine, or a unit quaternion."""

from __future__ import annotations

import numpy as np

from ..records.statistics import FLOAT32_ROUNDING
from ..task_structure.rotations import ROTATION_SIZES
from .steps import MOST_DEVIATIONS, Steps


def find_rotations(steps: Steps) -> tuple[tuple[int, ...], ...]:
    """Return the columns of each rotation in the goal: neighbours whose norm is always 1, while two or more of them vary.

    The order of quaternions is taken to be w, x, y, z.
    """
    goals = np.concatenate([steps.achieved_goal, steps.next_achieved_goal, steps.desired_goal])
    varies = np.ptp(goals, axis=0) > 0
    found: list[tuple[int, ...]] = []
    first = 0
    while first < steps.goal_size:
        columns = next((each for each in _from(first, steps.goal_size) if _is_unit(goals, each, varies)), ())
        found += [columns] if columns else []
        first += max(len(columns), 1)
    return tuple(found)


def _from(first: int, goal_size: int) -> list[tuple[int, ...]]:
    return [tuple(range(first, first + size)) for size in ROTATION_SIZES if first + size <= goal_size]


def _is_unit(goals: np.ndarray, columns: tuple[int, ...], varies: np.ndarray) -> bool:
    error = np.abs(np.square(goals[:, columns]).sum(1) - 1).max()
    return bool(varies[list(columns)].sum() > 1 and error <= MOST_DEVIATIONS * FLOAT32_ROUNDING)
