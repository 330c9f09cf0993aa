"""Push."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import around, goal_space, real


class CoasterPush(gymnasium.Env):
    """A hand on a table of 60 by 60 centimetres pushes a coaster to a place. The hand is round and cannot lift."""

    contact = 7.0  # centimetres between the centres when they touch

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4, 0, 60), real(2, 0, 60))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        (hx, hy), (cx, cy) = self.hand, self.coaster
        goal = self.goal.astype(np.float32)
        achieved = self.coaster.astype(np.float32)
        return {"observation": np.array([cy, hx, cx, hy], np.float32), "achieved_goal": achieved, "desired_goal": goal}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.coaster = self.np_random.uniform(18, 42, 2)
        self.hand = self.goal = self.coaster
        while not 9 < np.linalg.norm(self.hand - self.coaster) < 18:
            self.hand = self.np_random.uniform(5, 55, 2)
        while not 8 < np.linalg.norm(self.goal - self.coaster) < 16:
            self.goal = self.np_random.uniform(12, 48, 2)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.hand = np.clip(self.hand + 3 * np.clip(action, -1, 1), 0, 60)
        away = self.coaster - self.hand
        distance = np.linalg.norm(away)
        if distance < self.contact:
            self.coaster = self.hand + away / max(distance, 1e-6) * self.contact
            inside = np.clip(self.coaster, 4, 56)
            self.hand = np.clip(self.hand + inside - self.coaster, 0, 60)  # the rim stops both
            self.coaster = inside
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 3).astype(np.float32)


def coaster_script() -> Any:
    def act(observation: Any) -> Any:
        cy, hx, cx, hy = observation["observation"]
        coaster, goal = np.array([cx, cy]), observation["desired_goal"]
        if np.linalg.norm(goal - coaster) < 1.0:
            return np.zeros(2, np.float32)
        move = around(np.array([hx, hy]), coaster, goal, CoasterPush.contact, 3.0)
        return np.clip(move / 3, -1, 1).astype(np.float32)

    return act


def tip_of(joints: Any) -> Any:
    """Return the tip of an arm with two links of half a metre."""
    a, b = joints[0], joints[0] + joints[1]
    return 0.5 * np.array([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b)])


class ElbowPush(gymnasium.Env):
    """An arm with shoulder and elbow pushes a puck over a floor with its tip. Joints are seen as cosine and sine."""

    contact = 0.11

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([np.cos(self.joints), self.puck, np.sin(self.joints)]).astype(np.float32)
        achieved, goal = self.puck.astype(np.float32), self.goal.astype(np.float32)
        return {"observation": state, "achieved_goal": achieved, "desired_goal": goal}

    def _somewhere(self) -> Any:
        distance, angle = self.np_random.uniform(0.45, 0.75), self.np_random.uniform(0.8, 2.3)
        return distance * np.array([np.cos(angle), np.sin(angle)])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.puck = self.goal = self._somewhere()
        while not 0.12 < np.linalg.norm(self.goal - self.puck) < 0.3:
            self.goal = self._somewhere()
        self.joints = self.np_random.uniform([0.0, 0.8], [1.5, 2.2])
        while np.linalg.norm(tip_of(self.joints) - self.puck) < self.contact + 0.03:
            self.joints = self.np_random.uniform([0.0, 0.8], [1.5, 2.2])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        for _ in range(3):  # small moves, so that the tip does not jump over the puck
            self.joints = np.clip(self.joints + 0.04 * np.clip(action, -1, 1), [-1.0, 0.3], [3.0, 2.8])
            away = self.puck - tip_of(self.joints)
            distance = np.linalg.norm(away)
            if distance < self.contact:
                self.puck = self.puck + away / max(distance, 1e-6) * (self.contact - distance)
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.05).astype(np.float32)


def elbow_script() -> Any:
    def act(observation: Any) -> Any:
        cos, puck, sin = np.split(observation["observation"], 3)
        joints = np.arctan2(sin, cos)
        a, b = joints[0], joints[0] + joints[1]
        move = around(tip_of(joints), puck, observation["desired_goal"], ElbowPush.contact, 0.05)
        jacobian = 0.5 * np.array([[-np.sin(a) - np.sin(b), -np.sin(b)], [np.cos(a) + np.cos(b), np.cos(b)]])
        turn = np.linalg.lstsq(jacobian, move, rcond=0.05)[0] / 0.12
        return (turn / max(1.0, np.max(np.abs(turn)))).astype(np.float32)

    return act


TASKS = (
    Task("CoasterPush-v0", "push", "closed", CoasterPush, 50, coaster_script, budget=20_000),
    Task("ElbowPush-v0", "push", "closed", ElbowPush, 75, elbow_script, budget=20_000),
)
