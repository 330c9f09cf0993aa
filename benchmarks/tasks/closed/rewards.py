"""Rewards of other kinds."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real


class ToxicFloor(gymnasium.Env):
    """A walker crosses a floor with a poisoned round in its middle. It pays its distance from the goal in each step,

    and the dose that the info tells.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.speed, self.place]).astype(np.float32)
        return {"observation": state, "achieved_goal": state[2:].copy(), "desired_goal": self.goal.astype(np.float32)}

    def _dose(self) -> float:
        return float(2 * max(0.0, 1 - np.linalg.norm(self.place) / 0.8))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        start, turn = self.np_random.uniform(-np.pi, np.pi), self.np_random.uniform(1.5, 4.5)
        self.place = 1.5 * np.array([np.cos(start), np.sin(start)])
        self.goal = self.np_random.uniform(1.0, 1.8) * np.array([np.cos(start + turn), np.sin(start + turn)])
        self.speed = np.zeros(2)
        return self._observe(), {"dose": self._dose()}

    def step(self, action: Any) -> Any:
        self.speed = 0.6 * self.speed + 0.08 * np.clip(action, -1, 1)
        self.place = np.clip(self.place + self.speed, -2, 2)
        observation = self._observe()
        off = np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"])
        info = {"dose": self._dose(), "is_success": bool(off < 0.15)}
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        return observation, float(reward), False, False, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        dose = info["dose"] if isinstance(info, dict) else np.array([each["dose"] for each in info])
        return -np.linalg.norm(achieved_goal - desired_goal, axis=-1) - dose


def toxic_script() -> Any:
    def act(observation: Any) -> Any:
        speed, place = np.split(observation["observation"], 2)
        target = observation["desired_goal"]
        here, there = (np.arctan2(p[1], p[0]) for p in (place, target))
        off = (there - here + np.pi) % (2 * np.pi) - np.pi
        if abs(off) > 0.8:  # around the poison
            angle = here + 0.4 * np.sign(off)
            target = 1.1 * np.array([np.cos(angle), np.sin(angle)])
        wish = np.clip(0.6 * (target - place), -0.2, 0.2)
        return np.clip((wish - 0.6 * speed) / 0.08, -1, 1).astype(np.float32)

    return act


class HundredPoints(gymnasium.Env):
    """A slow arm with two joints moves its tip to a place, which pays a hundred points and ends the episode."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6), real(2))
        self.action_space = real(2, -1, 1)

    def _tip(self, joints: Any) -> Any:
        a, b = joints[0], joints[0] + joints[1]
        return np.array([0.6 * np.cos(a) + 0.4 * np.cos(b), 0.6 * np.sin(a) + 0.4 * np.sin(b)], np.float32)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self._tip(self.joints), self.joints, self.speeds]).astype(np.float32)
        return {"observation": state, "achieved_goal": state[:2].copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        low, high = [-1.5, 0.4], [1.5, 2.4]
        self.joints, self.speeds = self.np_random.uniform(low, high), np.zeros(2)
        self.goal = self._tip(self.joints)
        while np.linalg.norm(self.goal - self._tip(self.joints)) < 0.25:
            self.goal = self._tip(self.np_random.uniform(low, high))
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.speeds = 0.7 * self.speeds + 0.05 * np.clip(action, -1, 1)
        new = np.clip(self.joints + self.speeds, [-2.0, 0.2], [2.0, 2.7])
        self.joints, self.speeds = new, new - self.joints
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 100), False, {"is_success": bool(reward == 100)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return 100.0 * (np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.07)


def hundred_script() -> Any:
    def act(observation: Any) -> Any:
        joints, speeds = observation["observation"][2:4], observation["observation"][4:]
        x, y = observation["desired_goal"]
        elbow = np.arccos(np.clip((x * x + y * y - 0.52) / 0.48, -1, 1))
        shoulder = np.arctan2(y, x) - np.arctan2(0.4 * np.sin(elbow), 0.6 + 0.4 * np.cos(elbow))
        wish = np.clip(0.4 * (np.array([shoulder, elbow]) - joints), -0.16, 0.16)
        return np.clip((wish - 0.7 * speeds) / 0.05, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("ToxicFloor-v0", "rewards", "closed", ToxicFloor, 60, toxic_script, budget=20_000),
    Task("HundredPoints-v0", "rewards", "closed", HundredPoints, 50, hundred_script, budget=15_000),
)
