"""Several bodies with one vector of actions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real


class TwoCarts(gymnasium.Env):
    """One vector of actions drives two round carts in a yard, each to its own place. They push each other aside."""

    size = 0.3  # between the centres when they touch

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4, -1, 1), real(4, -1, 1))
        self.action_space = real(4, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = self.carts.ravel().astype(np.float32)
        return {"observation": state, "achieved_goal": state.copy(), "desired_goal": self.goal.ravel().astype(np.float32)}

    def _somewhere(self) -> Any:
        places = self.np_random.uniform(-0.9, 0.9, (2, 2))
        while np.linalg.norm(places[0] - places[1]) < self.size + 0.1:
            places = self.np_random.uniform(-0.9, 0.9, (2, 2))
        return places

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.carts, self.goal = self._somewhere(), self._somewhere()
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.carts = np.clip(self.carts + 0.1 * np.clip(action, -1, 1).reshape(2, 2), -1, 1)
        between = self.carts[1] - self.carts[0]
        distance = np.linalg.norm(between)
        if distance < self.size:
            shift = between / max(distance, 1e-6) * (self.size - distance) / 2
            self.carts = np.clip(self.carts + np.array([-shift, shift]), -1, 1)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        off = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return -np.any(np.linalg.norm(off, axis=-1) > 0.12, axis=-1).astype(np.float32)


def carts_script() -> Any:
    def act(observation: Any) -> Any:
        carts, goal = observation["observation"].reshape(2, 2), observation["desired_goal"].reshape(2, 2)
        moves = np.clip((goal - carts) / 0.1, -1, 1)
        between = carts[1] - carts[0]
        distance = np.linalg.norm(between)
        closing = (moves[0] - moves[1]) @ between
        if distance < 0.5 and closing > 0:  # both give way to their right
            way = np.array([-between[1], between[0]]) / distance
            moves = moves + np.array([-way, way])
        return np.clip(moves.ravel(), -1, 1).astype(np.float32)

    return act


class Trolleys(gymnasium.Env):
    """Three trolleys roll on one rail and bump into each other. They shall be at three places, in their order."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, dtype=np.float64), real(3, dtype=np.float64))
        self.action_space = real(3, -1, 1, np.float64)

    def _observe(self) -> dict[str, Any]:
        state = np.ravel(np.column_stack([self.places, self.speeds]))
        return {"observation": state, "achieved_goal": self.places.copy(), "desired_goal": self.goal.copy()}

    def _somewhere(self) -> Any:
        free = np.sort(self.np_random.uniform(0, 7, 3))
        return free + np.array([0.75, 1.5, 2.25])  # at least 0.75 apart

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.places, self.goal, self.speeds = self._somewhere(), self._somewhere(), np.zeros(3)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.speeds = 0.7 * self.speeds + 0.2 * np.clip(action, -1, 1)
        self.places = self.places + self.speeds
        for left in (0, 1):
            overlap = 0.5 - (self.places[left + 1] - self.places[left])
            if overlap > 0:
                self.places[left : left + 2] += [-overlap / 2, overlap / 2]
                self.speeds[left : left + 2] = self.speeds[left : left + 2][::-1].copy()
        self.places = np.maximum(np.clip(self.places, 0, 10), [0, 0.5, 1])
        self.places = np.minimum(self.places, [9, 9.5, 10])
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": float(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.max(np.abs(achieved_goal - desired_goal), axis=-1) < 0.4, 0.0, -1.0)


def trolleys_script() -> Any:
    def act(observation: Any) -> Any:
        places, speeds = observation["observation"].reshape(3, 2).T
        wish = 0.4 * (observation["desired_goal"] - places)
        return np.clip((wish - 0.7 * speeds) / 0.2, -1, 1)

    return act


TASKS = (
    Task("TwoCarts-v0", "several-bodies", "closed", TwoCarts, 50, carts_script, budget=20_000),
    Task("RailTrolleys-v0", "several-bodies", "closed", Trolleys, 60, trolleys_script, budget=20_000),
)
