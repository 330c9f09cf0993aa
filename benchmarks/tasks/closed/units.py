"""Other units and forms."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import around, goal_space, real


class SeaRoute(gymnasium.Env):
    """A ship steers by a course from -pi to pi and a throttle to a buoy; a current takes it along.

    All places are kilometres of a map around 1,000, and the observation holds the buoy too.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, dtype=np.float64), real(2, 900, 1100, np.float64))
        self.action_space = real(2, np.array([-np.pi, 0.0]), np.array([np.pi, 1.0]), np.float64)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.ship, self.buoy, self.current])
        return {"observation": state, "achieved_goal": self.ship.copy(), "desired_goal": self.buoy.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.current = self.np_random.uniform(-0.3, 0.3, 2)
        self.ship = self.buoy = self.np_random.uniform(990, 1010, 2)
        while np.linalg.norm(self.buoy - self.ship) < 5:
            self.buoy = self.np_random.uniform(990, 1010, 2)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        course, throttle = np.clip(action, self.action_space.low, self.action_space.high)
        way = 1.5 * throttle * np.array([np.cos(course), np.sin(course)])
        self.ship = np.clip(self.ship + way + self.current, 980, 1020)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 1.0, 0.0, -1.0)


def sea_script() -> Any:
    def act(observation: Any) -> Any:
        ship, buoy, current = np.split(observation["observation"], 3)
        wish = buoy - ship - current
        return np.array([np.arctan2(wish[1], wish[0]), min(1.0, np.linalg.norm(wish) / 1.5)])

    return act


class LensStage(gymnasium.Env):
    """A stage moves a lens by fractions of a millimetre along three axes, and everything is written in metres.

    The reward of a batch of one is a single number.
    """

    def __init__(self) -> None:
        self.high = np.array([4e-4, 4e-4, 1e-4])  # the third axis is slow
        self.observation_space = goal_space(real(3, dtype=np.float64), real(3, dtype=np.float64))
        self.action_space = real(3, -self.high, self.high, np.float64)

    def _observe(self) -> dict[str, Any]:
        return {"observation": self.lens.copy(), "achieved_goal": self.lens.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.lens, self.goal = self.np_random.uniform(-8 * self.high, 8 * self.high, (2, 3))
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.lens = np.clip(self.lens + np.clip(action, -self.high, self.high), -10 * self.high, 10 * self.high)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        off = np.atleast_2d(achieved_goal) - np.atleast_2d(desired_goal)
        reward = -np.any(np.abs(off) > self.high * 0.8, axis=1).astype(float)
        return float(reward[0]) if len(reward) == 1 else reward


def lens_script() -> Any:
    high = np.array([4e-4, 4e-4, 1e-4])
    return lambda observation: np.clip(observation["desired_goal"] - observation["achieved_goal"], -high, high)


CONTACT = 60.0  # millimetres
PITCH = 10.0  # millimetres for a radian of a spindle


class GantryMillimetres(gymnasium.Env):
    """A gantry shoves a part over a bench to a position.

    Positions are in millimetres. Actions are rotations of two spindles in radians.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6, 0, 2000, np.float64), real(2, 0, 2000, np.float64))
        self.action_space = real(2, -np.pi, np.pi)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.target, self.part, self.tool])
        return {"observation": state, "achieved_goal": self.part.copy(), "desired_goal": self.target.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.part = self.tool = self.np_random.uniform(800, 1200, 2)
        while np.linalg.norm(self.part - self.tool) < 80:
            self.part = self.np_random.uniform(880, 1120, 2)
        self.target = self.part
        while np.linalg.norm(self.part - self.target) < 70:
            self.target = self.np_random.uniform(830, 1170, 2)
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        turn = np.clip(np.asarray(action, np.float64), -np.pi, np.pi) / 2
        for _ in range(2):  # half a step each, so that the tool does not jump over the part
            self.tool = np.clip(self.tool + PITCH * turn, 700, 1300)
            away = self.part - self.tool
            distance = np.sqrt(away @ away)
            if distance < CONTACT:
                self.part = np.clip(self.tool + away * CONTACT / max(distance, 1e-6), 720, 1280)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(np.subtract(achieved_goal, desired_goal), axis=-1) > 35).astype(np.float64)


def gantry_script() -> Any:
    def act(observation: Any) -> Any:
        tool, part = observation["observation"][4:], observation["achieved_goal"]
        move = around(tool, part, observation["desired_goal"], CONTACT, 25.0)
        return np.clip(move / PITCH, -np.pi, np.pi).astype(np.float32)

    return act


TASKS = (
    Task("SeaRoute-v0", "units", "closed", SeaRoute, 40, sea_script, budget=15_000),
    Task("LensStage-v0", "units", "closed", LensStage, 30, lens_script, budget=10_000),
    Task("GantryMillimetres-v0", "units", "closed", GantryMillimetres, 60, gantry_script, budget=20_000),
)
