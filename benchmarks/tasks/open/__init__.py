"""Open tasks: developers may read and change them."""

from ..task import Task

TASKS: tuple[Task, ...] = ()
