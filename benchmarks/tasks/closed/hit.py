"""Hit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import around, goal_space, real

SLOWING = 0.006  # of the puck, a step
CONTACT = 0.1


class IceShot(gymnasium.Env):
    """A mallet that stays behind a line hits a puck, which slides on the ice and shall come to rest at a place beyond."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(6), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.mallet, self.puck, self.speed]).astype(np.float32)
        return {"observation": state, "achieved_goal": state[2:4].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.puck = self.np_random.uniform([0.0, -0.1], [0.1, 0.1])
        self.speed = np.zeros(2)
        self.mallet = self.puck - [0.2, 0] + self.np_random.uniform(-0.05, 0.05, 2)
        distance, angle = self.np_random.uniform(0.4, 1.0), self.np_random.uniform(-0.4, 0.4)
        self.goal = self.puck + distance * np.array([np.cos(angle), np.sin(angle)])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        before = self.mallet
        self.mallet = np.clip(self.mallet + 0.12 * np.clip(action, -1, 1), [-0.5, -0.5], [0.2, 0.5])
        fast = np.linalg.norm(self.speed)
        self.speed = self.speed * max(0.0, 1 - SLOWING / max(fast, 1e-9))
        self.puck = self.puck + self.speed
        away = self.puck - self.mallet
        distance = np.linalg.norm(away)
        if distance < CONTACT:
            normal = away / max(distance, 1e-6)
            push = (self.mallet - before) @ normal - self.speed @ normal
            self.speed = self.speed + max(push, 0.0) * normal
            self.puck = self.mallet + normal * CONTACT
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.12).astype(np.float32)


def ice_script() -> Any:
    is_hit = False

    def act(observation: Any) -> Any:
        nonlocal is_hit
        mallet, puck, speed = np.split(observation["observation"], 3)
        goal = observation["desired_goal"]
        if is_hit or np.linalg.norm(speed) > 0.01:
            return np.zeros(2, np.float32)
        to = goal - puck
        distance = np.linalg.norm(to)
        ahead = to / distance
        gap = -(mallet - puck) @ ahead - CONTACT
        across = (mallet - puck) @ np.array([-ahead[1], ahead[0]])
        if -0.001 < gap < 0.02 and abs(across) < 0.01:
            speeds = np.linspace(0, 0.12, 241)
            slides = speeds - gap + speeds**2 / (2 * SLOWING) - speeds / 2  # how far the puck goes for each speed
            is_hit = True
            return (ahead * speeds[np.argmin(np.abs(slides - distance))] / 0.12).astype(np.float32)
        target = puck - ahead * (CONTACT + 0.01)
        move = target - mallet
        if abs(across) > 0.02 and gap < 0.02:
            move = around(mallet, puck, goal, CONTACT * 1.1, 0.04)
        return np.clip(move / 0.12, -0.4, 0.4).astype(np.float32)

    return act


TASKS = (Task("IceShot-v0", "hit", "closed", IceShot, 40, ice_script, budget=20_000),)
