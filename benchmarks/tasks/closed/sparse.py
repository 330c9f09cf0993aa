"""What several closed tasks share: spaces, steps and a reward of two values."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .spaces import goal_space, real


class Sparse(gymnasium.Env):
    """A step has the reward `at_goal` if the goal is met, else one less."""

    near, at_goal = 0.05, 0.0
    action_space: spaces.Box
    goal: Any

    def __init__(self, n_observed: int, n_goal: int, actions: spaces.Box, dtype: Any = np.float64) -> None:
        self.observation_space = goal_space(real(n_observed, dtype=dtype), real(n_goal, dtype=dtype))
        self.action_space, self.dtype = actions, dtype

    def _observe(self) -> dict[str, Any]:
        parts = {"observation": self.sensors(), "achieved_goal": self.reached(), "desired_goal": self.goal}
        return {key: np.array(part, self.dtype) for key, part in parts.items()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.begin(self.np_random.uniform)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.move(np.clip(np.asarray(action, np.float64), self.action_space.low, self.action_space.high))
        observation = self._observe()
        achieved, goal = observation["achieved_goal"], observation["desired_goal"]
        reward = float(self.compute_reward(achieved, goal, {}))
        return observation, reward, self.is_over(), False, {"is_success": bool(self.is_met(achieved, goal))}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return self.is_met(achieved_goal, desired_goal).astype(np.float64) - 1 + self.at_goal

    def begin(self, draw: Any) -> None:
        raise NotImplementedError

    def move(self, action: Any) -> None:
        raise NotImplementedError

    def sensors(self) -> Any:
        raise NotImplementedError

    def reached(self) -> Any:
        raise NotImplementedError

    def is_met(self, achieved: Any, goal: Any) -> Any:
        return np.linalg.norm(achieved - goal, axis=-1) <= self.near

    def is_over(self) -> bool:
        return False


def unit(angle: Any) -> Any:
    return np.array([np.cos(angle), np.sin(angle)])
