"""Angles."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real


class TugPose(gymnasium.Env):
    """A tug turns on the spot and drives ahead and back. It shall lie at a place with a wished heading."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4), real(4))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        pose = np.array([*self.place, np.cos(self.heading), np.sin(self.heading)], np.float32)
        return {"observation": pose, "achieved_goal": pose.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.heading = self.np_random.uniform(-0.8, 0.8, 2), self.np_random.uniform(-np.pi, np.pi)
        angle = self.np_random.uniform(-np.pi, np.pi)
        self.goal = np.array([*self.np_random.uniform(-0.8, 0.8, 2), np.cos(angle), np.sin(angle)], np.float32)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        drive, turn = np.clip(action, -1, 1)
        self.heading += 0.5 * turn
        self.place = self.place + 0.1 * drive * np.array([np.cos(self.heading), np.sin(self.heading)])
        self.place = np.clip(self.place, -1, 1)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        is_near = np.linalg.norm(achieved_goal[..., :2] - desired_goal[..., :2], axis=-1) < 0.12
        is_turned = np.sum(achieved_goal[..., 2:] * desired_goal[..., 2:], axis=-1) > np.cos(0.35)
        return (is_near & is_turned).astype(np.float32) - 1


def wrapped(angle: Any) -> Any:
    """Return the angle between -pi and pi."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def tug_script() -> Any:
    def act(observation: Any) -> Any:
        x, y, cos, sin = observation["observation"]
        gx, gy, gcos, gsin = observation["desired_goal"]
        heading, distance = np.arctan2(sin, cos), np.hypot(gx - x, gy - y)
        if distance < 0.08:
            return np.array([0, np.clip(wrapped(np.arctan2(gsin, gcos) - heading) / 0.5, -1, 1)], np.float32)
        off = wrapped(np.arctan2(gy - y, gx - x) - heading)
        way = 1.0
        if abs(off) > np.pi / 2:
            off, way = wrapped(off + np.pi), -1.0
        drive = way * min(1.0, distance / 0.1) if abs(off) < 0.55 else 0.0
        return np.array([drive, np.clip(off / 0.5, -1, 1)], np.float32)

    return act


class Dials(gymnasium.Env):
    """Two heavy dials turn without end and are read in degrees from 0 to 360. Both shall stand at wished readings."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4), real(2, 0, 360))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        dials = np.mod(self.dials, 360).astype(np.float32)
        state = np.concatenate([dials, self.speeds]).astype(np.float32)
        return {"observation": state, "achieved_goal": dials, "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.dials, self.speeds = self.np_random.uniform(0, 360, 2), np.zeros(2)
        self.goal = self.np_random.uniform(0, 360, 2).astype(np.float32)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.speeds = 0.8 * self.speeds + 6 * np.clip(action, -1, 1)  # degrees a step
        self.dials = self.dials + self.speeds
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        off = np.abs((np.asarray(achieved_goal) - desired_goal + 180) % 360 - 180)
        return -np.any(off > 15, axis=-1).astype(np.float32)


def dials_script() -> Any:
    def act(observation: Any) -> Any:
        dials, speeds = np.split(observation["observation"], 2)
        off = (observation["desired_goal"] - dials + 180) % 360 - 180
        return np.clip((0.3 * off - 0.8 * speeds) / 6, -1, 1).astype(np.float32)

    return act


FORCE = np.array([1.6, 0.8])  # degrees per step that an action of 1 adds to the rates of pan and tilt


class MastCamera(gymnasium.Env):
    """A heavy camera on a mast pans all around and tilts between two stops. It must show a view, given in degrees."""

    def __init__(self) -> None:
        view = real(2, np.array([0.0, -30.0]), np.array([360.0, 60.0]), np.float64)
        self.observation_space = goal_space(real(4, dtype=np.float64), view)
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.ravel(np.column_stack([self.view, self.rate]))
        return {"observation": state, "achieved_goal": self.view.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.view, self.rate = self.np_random.uniform([0, -30], [360, 60]), np.zeros(2)
        self.goal = self.view
        while self._off(self.view, self.goal) < 15:
            self.goal = self.np_random.uniform([0, -25], [360, 55])
        return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        self.rate = 0.96 * self.rate + FORCE * np.clip(action, -1, 1)
        pan, tilt = self.view + self.rate
        if not -30 <= tilt <= 60:
            tilt, self.rate[1] = np.clip(tilt, -30, 60), 0.0
        self.view = np.array([pan % 360, tilt])
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def _off(self, one: Any, other: Any) -> Any:
        gap = np.abs(np.asarray(one) - np.asarray(other))
        return np.maximum(np.minimum(gap[..., 0], 360 - gap[..., 0]), gap[..., 1])

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return (self._off(achieved_goal, desired_goal) < 7).astype(np.float64) - 1


def camera_script() -> Any:
    def act(observation: Any) -> Any:
        rate, gap = observation["observation"][[1, 3]], observation["desired_goal"] - observation["achieved_goal"]
        gap[0] = (gap[0] + 180) % 360 - 180
        limit = np.sqrt(1.4 * FORCE * np.abs(gap))  # the rate from which the camera can still brake
        wish = np.sign(gap) * np.minimum(limit, 0.4 * np.abs(gap))
        return np.clip((wish - 0.96 * rate) / FORCE, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("TugPose-v0", "angles", "closed", TugPose, 50, tug_script, budget=20_000),
    Task("HeavyDials-v0", "angles", "closed", Dials, 40, dials_script, budget=20_000),
    Task("MastCamera-v0", "angles", "closed", MastCamera, 60, camera_script, budget=15_000),
)
