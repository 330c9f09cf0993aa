"""The structure of a task: its symmetries, subgoals, waypoints and states. Each is read, applied and written here.

`structure` infers them from steps. `replay` and `agents` only call them.
"""
