"""Which numbers of the achieved goal are the place of one object, if there are several objects."""

from __future__ import annotations

import numpy as np

from ..records import Array
from .rest import AT_REST, MOVING
from .steps import Steps

Numbers = tuple[int, ...]  # of the goal
MIN_SIZE = 2  # numbers of a place: with one, nearness to a tool says little
MIN_MOVES = 5  # steps in which each object must move
ALONE = 0.5  # fraction of the steps with a moving object in which all others rest


def find_objects(steps: Steps) -> tuple[Numbers, ...]:
    """Return the numbers of each object: the smallest equal, consecutive groups that mostly move one at a time.

    One group of all numbers means one object.
    """
    size = steps.achieved_goal.shape[1]
    for group_size in range(MIN_SIZE, size // 2 + 1):
        groups = np.arange(size).reshape(-1, group_size) if size % group_size == 0 else np.empty((0, group_size), int)
        if len(groups) and _move_alone(steps, groups):
            return tuple(tuple(group.tolist()) for group in groups)
    return (tuple(range(size)),)


def _move_alone(steps: Steps, groups: Array) -> bool:
    each = [steps.of_numbers(group) for group in groups]
    if any(one.goal_std == 0 for one in each):
        return False
    moves = np.stack([one.move / one.goal_std for one in each])
    is_moving, is_resting = moves > MOVING, moves < AT_REST
    is_alone = [(is_moving[k] & np.delete(is_resting, k, 0).all(0)).sum() for k in range(len(each))]
    return all(
        moving >= MIN_MOVES and alone >= ALONE * moving for moving, alone in zip(is_moving.sum(1), is_alone, strict=True)
    )
