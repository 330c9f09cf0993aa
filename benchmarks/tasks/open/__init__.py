"""Open tasks: developers may read and change them."""

from ..task import Task
from . import (
    angles,
    fragile,
    grasp,
    grids,
    hit,
    later,
    other_rewards,
    plants,
    poses,
    pull,
    push,
    puzzles,
    rolling,
    several,
    walls,
)

FILES = (walls, fragile, push, pull, grasp, rolling, several, hit, later, angles, poses, other_rewards, plants, grids)
TASKS: tuple[Task, ...] = tuple(task for file in (*FILES, puzzles) for task in file.TASKS)
