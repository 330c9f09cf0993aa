"""Open tasks: developers may read and change them."""

from ..task import Task
from .disc_puck import TASK as DISC_PUCK

TASKS: tuple[Task, ...] = (DISC_PUCK,)
