"""The proving ground: small goal environments in NumPy, of fourteen families. Importing it registers them."""

from .closed import TASKS as CLOSED
from .open import TASKS as OPEN

TASKS = {task.name: task for task in (*OPEN, *CLOSED)}
for _task in TASKS.values():
    _task.register()
