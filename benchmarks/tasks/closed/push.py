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


def tip_jacobian(joints: Any) -> Any:
    """Return the derivatives of the tip with respect to the joints, (2, 2)."""
    a, b = joints[0], joints[0] + joints[1]
    return 0.5 * np.array([[-np.sin(a) - np.sin(b), -np.sin(b)], [np.cos(a) + np.cos(b), np.cos(b)]])


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
        move = around(tip_of(joints), puck, observation["desired_goal"], ElbowPush.contact, 0.05)
        turn = np.linalg.lstsq(tip_jacobian(joints), move, rcond=0.05)[0] / 0.12
        return (turn / max(1.0, np.max(np.abs(turn)))).astype(np.float32)

    return act


class ElbowShove(gymnasium.Env):
    """An arm with shoulder and elbow shoves a puck over a rough table. Dry friction slows the puck."""

    contact = 0.12

    def __init__(self) -> None:
        self.observation_space = goal_space(real(12, dtype=np.float64), real(2, dtype=np.float64))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        (s1, s2), (c1, c2) = np.sin(self.joints), np.cos(self.joints)
        (x, y), (px, py), (vx, vy), (w1, w2) = tip_of(self.joints), self.puck, self.speed, self.turn
        state = np.array([s2, py, w1, x, c1, vx, c2, px, y, s1, vy, w2])
        return {"observation": state, "achieved_goal": self.puck.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self.joints, self.turn, self.speed = np.array([draw(-1.5, 0.5), draw(0.9, 2.0)]), np.zeros(2), np.zeros(2)
        while True:
            distance, angle = draw(0.45, 0.8, 2), draw(-0.9, 0.9, 2)
            self.puck, self.goal = np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)
            is_clear = np.linalg.norm(tip_of(self.joints) - self.puck) > 0.15
            if is_clear and 0.15 < np.linalg.norm(self.goal - self.puck) < 0.45:
                return self._observe(), {"is_success": False}

    def step(self, action: Any) -> Any:
        before = self.joints
        target = 0.12 * np.clip(action, -1, 1).astype(np.float64)
        part = 0.25  # of a step, so that the tip does not jump over the puck
        for _ in range(4):
            self.joints = np.clip(self.joints + part * target, [-2.4, 0.2], [1.8, 2.8])
            old = self.puck
            self.puck = old + part * self.speed
            away = self.puck - tip_of(self.joints)
            distance = np.sqrt(away @ away)
            if distance < self.contact:
                self.puck = self.puck + away / (distance + 1e-9) * (self.contact - distance)
                self.speed = 0.6 * (self.puck - old) / part
            fast = np.sqrt(self.speed @ self.speed)
            self.speed = self.speed * max(0.0, 1 - 0.006 / (fast + 1e-9))
        self.turn = self.joints - before
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(np.asarray(achieved_goal) - desired_goal, axis=-1) > 0.07).astype(np.float64)


def shove_script() -> Any:
    def act(observation: Any) -> Any:
        s2, _, _, x, c1, _, c2, _, y, s1, _, _ = observation["observation"]
        joints = np.array([np.arctan2(s1, c1), np.arctan2(s2, c2)])
        puck, goal = observation["achieved_goal"], observation["desired_goal"]
        move = around(np.array([x, y]), puck, goal, ElbowShove.contact, 0.07)
        jacobian = tip_jacobian(joints)
        turn = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-4 * np.eye(2), move)
        return (turn / max(0.12, np.abs(turn).max())).astype(np.float32)

    return act


TASKS = (
    Task("CoasterPush-v0", "push", "closed", CoasterPush, 50, coaster_script, budget=20_000),
    Task("ElbowPush-v0", "push", "closed", ElbowPush, 75, elbow_script, budget=20_000),
    Task("ElbowShove-v0", "push", "closed", ElbowShove, 70, shove_script, budget=20_000),
)
