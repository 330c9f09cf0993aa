"""Open tasks: developers may read and change them."""

from ..task import Task
from . import (
    aisles,
    angles,
    boxes,
    fragile,
    grasp,
    grids,
    hit,
    later,
    loads,
    machines,
    other_rewards,
    passages,
    picking,
    plants,
    poses,
    processes,
    pull,
    push,
    puzzles,
    rolling,
    several,
    walls,
)

_PHYSICS = (
    walls,
    fragile,
    push,
    pull,
    grasp,
    rolling,
    several,
    hit,
    later,
    angles,
    poses,
    other_rewards,
    plants,
    machines,
    loads,
    processes,
    boxes,
    picking,
    passages,
)
_PUZZLES = (grids, puzzles, aisles)
TASKS: tuple[Task, ...] = tuple(task for file in (*_PHYSICS, *_PUZZLES) for task in file.TASKS)
