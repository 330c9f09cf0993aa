"""The point of a public question: HER of OpenAI baselines stays below 25 % on it (openai/baselines, issue 428).

    cd benchmarks && hindsight-rl train public_questions:BouncingPoint-v0 --recipe default --eval-every 500

A point with momentum moves in the unit square and bounces off its walls. The goal is any position. The question describes
this; the distance of a success (0.05), the force and the time limit are ours.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BouncingPoint(gymnasium.Env[dict[str, Array], Array]):
    """Observations are the position, 0 to 1, and the velocity, at most 0.05 a step. Actions are forces along x and y."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self) -> None:
        seen, goal = (spaces.Box(-1.0, 1.0, (size,), np.float64) for size in (4, 2))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the first observation. Position and goal are anywhere; the point rests."""
        super().reset(seed=seed)
        self.position, self.goal = self.np_random.uniform(0, 1, (2, 2))
        self.velocity = np.zeros(2)
        return self._see(), {"is_success": self._succeeds()}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Push the point."""
        self.velocity = np.clip(self.velocity + 0.01 * np.asarray(action, np.float64), -0.05, 0.05)
        self.position = self.position + self.velocity
        is_outside = (self.position < 0) | (self.position > 1)
        self.velocity = np.where(is_outside, -self.velocity, self.velocity)
        self.position = np.clip(self.position, 0, 1)
        is_success = self._succeeds()
        return self._see(), float(is_success) - 1, False, False, {"is_success": is_success}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Array:
        """Return 0 within 0.05 of the goal, else -1."""
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.05).astype(np.float64)

    def _succeeds(self) -> bool:
        return bool(self.compute_reward(self.position, self.goal, {}) == 0)

    def _see(self) -> dict[str, Array]:
        seen = np.concatenate([self.position, self.velocity])
        return {"observation": seen, "achieved_goal": self.position.copy(), "desired_goal": self.goal.copy()}


gymnasium.register("BouncingPoint-v0", BouncingPoint, max_episode_steps=100)
