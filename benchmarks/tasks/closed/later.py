"""Columns that matter later."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real


class LockedHall(gymnasium.Env):
    """A walker in a hall of two halves passes the gate between them only after it was at the key, which lies anywhere."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5, -1, 1), real(2, -1, 1))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([self.has_key, *self.key, *self.place], np.float32)
        return {"observation": state, "achieved_goal": state[3:].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform([-1, -0.5], [-0.2, 0.5])
        self.key = self.np_random.uniform([-0.9, -0.4], [-0.3, 0.4])
        self.has_key = False
        self.goal = self.place
        while np.linalg.norm(self.goal - self.place) < 0.3:
            is_far = self.np_random.random() < 0.75
            self.goal = self.np_random.uniform([0.15 if is_far else -1, -0.5], [1 if is_far else -0.1, 0.5])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        x, y = self.place
        new = np.clip(self.place + 0.1 * np.clip(action, -1, 1), [-1, -0.5], [1, 0.5])
        is_gate = self.has_key and abs(y) < 0.2 and abs(new[1]) < 0.2
        if (x < 0) != (new[0] < 0) and not is_gate:
            new[0] = x
        self.place = new
        self.has_key = bool(self.has_key or np.linalg.norm(new - self.key) < 0.12)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.1).astype(np.float32)


def hall_script() -> Any:
    def act(observation: Any) -> Any:
        has_key, *rest = observation["observation"]
        key, place, target = np.array(rest[:2]), np.array(rest[2:]), observation["desired_goal"]
        if (place[0] < 0) != (target[0] < 0):
            target = key if not has_key else np.array([0.1 if abs(place[1]) < 0.12 else -0.05, 0.0])
        return np.clip((target - place) / 0.1, -1, 1).astype(np.float32)

    return act


class Rover(gymnasium.Env):
    """A rover drives in the wind to a place as far as its battery lasts. At the station in the middle it charges.

    Wind and battery differ in each episode; a rover with an empty battery stands still.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5, dtype=np.float64), real(2, dtype=np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([self.battery, *self.place, *self.wind])
        return {"observation": state, "achieved_goal": self.place.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.wind = self.np_random.uniform(-0.2, 0.2, 2)
        self.battery = self.np_random.uniform(0.3, 1.0)
        self.place = self.np_random.uniform(-8, 8, 2)
        while not 1.5 < np.linalg.norm(self.place) < 10 * self.battery:
            self.place = self.np_random.uniform(-8, 8, 2)
        self.goal = self.place
        while np.linalg.norm(self.goal - self.place) < 3:
            self.goal = self.np_random.uniform(-8, 8, 2)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        drive = np.clip(action, -1, 1)
        if self.battery > 0:
            self.place = np.clip(self.place + drive + self.wind, -10, 10)
            self.battery = max(0.0, self.battery - 0.05 * float(np.linalg.norm(drive)))
        if np.linalg.norm(self.place) < 1:
            self.battery = 1.0
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.8, 0.0, -1.0)


def rover_script() -> Any:
    def act(observation: Any) -> Any:
        battery, *rest = observation["observation"]
        place, wind = np.array(rest[:2]), np.array(rest[2:])
        to = observation["desired_goal"] - place

        def drive(to: Any) -> Any:
            wish = to / max(1.0, np.linalg.norm(to)) - wind
            return wish / max(1.0, np.max(np.abs(wish)))

        speed = np.linalg.norm(drive(to) + wind)
        if 0.05 * np.linalg.norm(drive(to)) * np.linalg.norm(to) / speed > battery:
            return drive(-place).astype(np.float32)
        return drive(to).astype(np.float32)

    return act


TASKS = (
    Task("LockedHall-v0", "later", "closed", LockedHall, 60, hall_script, budget=20_000),
    Task("WindRover-v0", "later", "closed", Rover, 60, rover_script, budget=15_000),
)
