"""Short ways to write the spaces of goal environments, and steps of the scripts."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


def real(size: int, low: Any = -np.inf, high: Any = np.inf, dtype: Any = np.float32) -> spaces.Box:
    """Return a box of real numbers."""
    return spaces.Box(low, high, (size,), dtype)


def goal_space(observation: spaces.Space[Any], goal: spaces.Space[Any]) -> spaces.Dict:
    """Return the space of observations of a goal environment."""
    return spaces.Dict({"observation": observation, "achieved_goal": goal, "desired_goal": goal})


def around(hand: Any, puck: Any, goal: Any, contact: float, step: float) -> Any:
    """Return the next movement of a hand that goes behind a round puck and pushes it to the goal."""
    distance = np.linalg.norm(goal - puck)
    ahead = (goal - puck) / max(distance, 1e-9)
    side = np.array([-ahead[1], ahead[0]])
    along, across = (hand - puck) @ ahead, (hand - puck) @ side
    if along < -0.8 * contact and abs(across) < 0.2 * contact:
        gap = -along - contact
        move = ahead * min(step, distance + gap) - side * np.clip(across, -0.4 * step, 0.4 * step)
    else:
        is_clear = along < -contact or abs(across) > 1.25 * contact
        behind = puck - ahead * 1.2 * contact
        if along > -contact:  # beside or before the puck: first to the side, then back
            sign = 1.0 if across >= 0 else -1.0
            behind = puck + side * sign * 1.4 * contact + ahead * (-1.3 * contact if is_clear else along)
        move = behind - hand
    return move * min(1.0, step / max(np.linalg.norm(move), 1e-9))
