"""Open tasks: developers may read and change them."""

from ..task import Task
from . import angles, fragile, grasp, grids, hit, later, other_rewards, plants, poses, pull, push, puzzles, several, walls

FILES = (walls, fragile, push, pull, grasp, several, hit, later, angles, poses, other_rewards, plants, grids, puzzles)
TASKS: tuple[Task, ...] = tuple(task for file in FILES for task in file.TASKS)
