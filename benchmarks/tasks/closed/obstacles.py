"""Reach among obstacles."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real

BAFFLES = ((1 / 3, 0.0, 0.7), (2 / 3, 0.3, 1.0))  # x, lowest y, highest y
GAPS = (0.85, 0.15)


class Zigzag(gymnasium.Env):
    """A point in a square room with two baffles that make an S of it. It shall stand at a place anywhere in the room."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(2, 0, 1), real(2, 0, 1))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        place = self.place.astype(np.float32)
        return {"observation": place, "achieved_goal": place.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place = self.goal = self.np_random.random(2, np.float32)
        while np.linalg.norm(self.place - self.goal) < 0.2:
            self.goal = self.np_random.random(2, np.float32)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        dx, dy = 0.07 * np.clip(action, -1, 1)
        x, y = self.place[0], np.clip(self.place[1] + dy, 0, 1)
        new = np.clip(x + dx, 0, 1)
        for wall, low, high in BAFFLES:
            if (x < wall) != (new < wall) and low <= y <= high:
                new = x
        self.place = np.array([new, y])
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.06).astype(np.float32)


def zigzag_script() -> Any:
    def act(observation: Any) -> Any:
        place, goal = observation["achieved_goal"], observation["desired_goal"]
        here, there = (sum(p[0] >= wall[0] for wall in BAFFLES) for p in (place, goal))
        target = goal
        if here != there:
            way = 1 if there > here else -1
            gap = here if way > 0 else here - 1
            (wall, low, high), y = BAFFLES[gap], GAPS[gap]
            is_open = not low - 0.05 <= place[1] <= high + 0.05
            target = np.array([wall + (0.08 * way if is_open else -0.04 * way), y])
        return np.clip((target - place) / 0.07, -1, 1).astype(np.float32)

    return act


POSTS = ((-0.9, 0.5), (1.1, 0.6))  # angle, distance from the mast


class Crane(gymnasium.Env):
    """A crane turns and lengthens its boom to bring its tip to a place. Two posts stop a boom that is too long."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(4), real(2))
        self.action_space = real(2, -1, 1)

    def _observe(self) -> dict[str, Any]:
        tip = self._tip(self.angle, self.length)
        state = np.array([*tip, self.angle, self.length], np.float32)
        return {"observation": state, "achieved_goal": tip, "desired_goal": self.goal.copy()}

    def _tip(self, angle: float, length: float) -> Any:
        return np.array([length * np.cos(angle), length * np.sin(angle)], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.angle, self.length = self.np_random.uniform(-2.5, 2.5), self.np_random.uniform(0.3, 1.0)
        self.goal = self._tip(self.angle, self.length)
        while np.linalg.norm(self.goal - self._tip(self.angle, self.length)) < 0.3:
            self.goal = self._tip(self.np_random.uniform(-2.5, 2.5), self.np_random.uniform(0.35, 1.0))
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        turn, stretch = np.clip(action, -1, 1)
        self.length = float(np.clip(self.length + 0.08 * stretch, 0.3, 1.0))
        new = float(np.clip(self.angle + 0.25 * turn, -2.7, 2.7))
        for post, distance in POSTS:
            if (self.angle < post) != (new < post) and self.length > distance:
                new = post + (-0.03 if self.angle < post else 0.03)  # the boom leans on the post
        self.angle = new
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.08, 0.0, -1.0)


def crane_script() -> Any:
    def act(observation: Any) -> Any:
        angle, length = observation["observation"][2:]
        x, y = observation["desired_goal"]
        to, wish = np.arctan2(y, x), np.hypot(x, y)
        limits = [distance for post, distance in POSTS if (angle < post) != (to < post)]
        limit = min(limits, default=1.0) - 0.02
        turn = np.clip((to - angle) / 0.25, -1, 1) if not limits or length <= limit + 0.01 else 0.0
        return np.array([turn, np.clip((min(wish, limit) - length) / 0.08, -1, 1)], np.float32)

    return act


TASKS = (
    Task("ZigzagPoint-v0", "obstacles", "closed", Zigzag, 60, zigzag_script, budget=15_000),
    Task("PostCrane-v0", "obstacles", "closed", Crane, 50, crane_script, budget=15_000),
)
