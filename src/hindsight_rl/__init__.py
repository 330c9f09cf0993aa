"""Hindsight Experience Replay: train agents that reach goals from sparse rewards."""

from __future__ import annotations

import importlib
from typing import Any

from .envs import register_environments

__version__ = "0.1.0"

_HOMES = {
    "HER": "hindsight_rl.her",
    "AddColumns": "hindsight_rl.envs.wrappers",
    "DiscreteActions": "hindsight_rl.envs.wrappers",
    "Batch": "hindsight_rl.records",
    "BitFlipping": "hindsight_rl.envs.small_tasks",
    "Episode": "hindsight_rl.records",
    "GoalSpec": "hindsight_rl.records",
    "HindsightBuffer": "hindsight_rl.replay.buffer",
    "Relabel": "hindsight_rl.options",
    "ReplayOptions": "hindsight_rl.options",
    "Timeline": "hindsight_rl.replay.timeline",
    "PointReach": "hindsight_rl.envs.small_tasks",
    "check_goal_env": "hindsight_rl.envs.check",
    "make_buffer": "hindsight_rl.buffers",
    "make_goal_env": "hindsight_rl.envs.goal_env",
    "read_spec": "hindsight_rl.envs.goal_env",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hindsight_rl' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register_environments()
