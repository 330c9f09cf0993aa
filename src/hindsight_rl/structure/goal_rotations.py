"""Which columns of a goal are a rotation: a unit quaternion."""

from __future__ import annotations

import numpy as np

from ..records import Array
from ..records.statistics import FLOAT32_ROUNDING
from ..task_structure.rotations import QUATERNION
from .steps import MOST_DEVIATIONS, Steps


def find_rotations(steps: Steps) -> tuple[tuple[int, ...], ...]:
    """Return the columns of each rotation in the goal: four neighbours whose norm is always 1, while two or more vary.

    Their order is taken to be w, x, y, z.
    """
    goals = np.concatenate([steps.achieved_goal, steps.next_achieved_goal, steps.desired_goal])
    found: list[tuple[int, ...]] = []
    first = 0
    while first + QUATERNION <= steps.goal_size:
        columns = tuple(range(first, first + QUATERNION))
        is_quaternion = _is_unit(goals[:, columns])
        found += [columns] if is_quaternion else []
        first += QUATERNION if is_quaternion else 1
    return tuple(found)


def _is_unit(values: Array) -> bool:
    error = np.abs(np.square(values).sum(1) - 1).max()
    return bool((np.ptp(values, axis=0) > 0).sum() > 1 and error <= MOST_DEVIATIONS * FLOAT32_ROUNDING)
