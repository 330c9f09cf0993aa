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


HULL = 0.3  # between the centres of two tugs when they touch


class TwoTugs(gymnasium.Env):
    """One vector of actions accelerates two tugs in a basin, each to its own berth. They bounce off each other."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(8), real(4))
        self.action_space = real(4, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.tugs, self.speeds], axis=1).ravel().astype(np.float32)
        achieved, goal = self.tugs.ravel().astype(np.float32), self.berths.ravel().astype(np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": goal}

    def _somewhere(self) -> Any:
        while True:
            pair = self.np_random.uniform(-0.75, 0.75, (2, 2))
            if np.linalg.norm(pair[0] - pair[1]) > 0.45:
                return pair

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.tugs, self.speeds, self.berths = self._somewhere(), np.zeros((2, 2)), self._somewhere()
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        self.speeds = 0.7 * self.speeds + 0.024 * np.clip(action, -1, 1).reshape(2, 2)
        new = np.clip(self.tugs + self.speeds, -1, 1)
        self.speeds = new - self.tugs
        between = new[1] - new[0]
        distance = np.linalg.norm(between)
        if distance < HULL:
            normal = between / max(distance, 1e-9)
            new = new + np.outer([-0.5, 0.5], normal * (HULL - distance))
            closing = (self.speeds[1] - self.speeds[0]) @ normal
            self.speeds = self.speeds + np.outer([0.75, -0.75], normal * min(closing, 0.0))
        self.tugs = new
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        gap = np.asarray(achieved_goal, np.float64) - desired_goal
        miss = np.linalg.norm(gap.reshape(*gap.shape[:-1], 2, 2), axis=-1).max(axis=-1)
        return -(miss > 0.15).astype(np.float64)


def tugs_script() -> Any:
    sense = 0.0  # in which the tugs turn around each other, 0 while they do not

    def act(observation: Any) -> Any:
        nonlocal sense
        state = observation["observation"].astype(float).reshape(2, 4)
        tugs, speeds = state[:, :2], state[:, 2:]
        berths = observation["desired_goal"].astype(float).reshape(2, 2)
        between = tugs[1] - tugs[0]
        distance = np.linalg.norm(between)
        wish = 0.3 * (berths - tugs)
        wish *= np.minimum(1, 0.07 / (np.linalg.norm(wish, axis=1, keepdims=True) + 1e-9))
        normal = between / distance
        if distance >= 0.6:
            sense = 0.0
        elif -(wish[1] - wish[0]) @ normal > 0.004:
            left = np.array([-normal[1], normal[0]])
            sense = sense or np.sign(left @ (berths[1] - berths[0])) or 1.0
            wish = np.outer([-1, 1], 0.05 * sense * left + 0.2 * (0.42 - distance) * normal)
        return np.clip((wish - 0.7 * speeds) / 0.024, -1, 1).ravel().astype(np.float32)

    return act


TASKS = (
    Task("TwoCarts-v0", "several-bodies", "closed", TwoCarts, 50, carts_script, budget=20_000),
    Task("RailTrolleys-v0", "several-bodies", "closed", Trolleys, 60, trolleys_script, budget=20_000),
    Task("TwoTugs-v0", "several-bodies", "closed", TwoTugs, 60, tugs_script, budget=20_000),
)
