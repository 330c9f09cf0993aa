"""Hindsight Experience Replay: train agents that reach goals from sparse rewards."""

from __future__ import annotations

import importlib
from typing import Any

from .envs import register_environments

__version__ = "0.1.0"

_HOMES = {
    "HER": "hindsight.her",
    "AddColumns": "hindsight.envs.columns",
    "Batch": "hindsight.records",
    "BitFlipping": "hindsight.envs.bit_flipping",
    "Episode": "hindsight.records",
    "GoalSpec": "hindsight.records",
    "HindsightBuffer": "hindsight.replay.buffer",
    "Relabel": "hindsight.options",
    "ReplayOptions": "hindsight.options",
    "Timeline": "hindsight.replay.timeline",
    "PointReach": "hindsight.envs.point_reach",
    "check_goal_env": "hindsight.envs.check",
    "make_buffer": "hindsight.buffers",
    "make_goal_env": "hindsight.envs.goal_env",
    "read_spec": "hindsight.envs.goal_env",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from .options.other_names import other_names

        if hint := other_names().get(name):
            raise ImportError(f"hindsight has no {name!r}. {hint}")  # `from hindsight import` hides an AttributeError
        raise AttributeError(f"module 'hindsight' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register_environments()
