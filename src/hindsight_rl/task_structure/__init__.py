"""The structure of a task: its symmetries, subgoals and waypoints. Each is read, applied and written here.

`structure` infers them from steps. `replay` and `agents` only call them.
"""
