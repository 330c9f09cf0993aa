"""A disc pushes a puck over a table without walls."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from ..task import Observation, Task

Array = npt.NDArray[Any]
CONTACT = 0.09  # distance of the centres at which disc and puck touch
NEAR = 0.05  # distance from the goal that counts as success


class DiscPuck(gymnasium.Env[dict[str, Array], Array]):
    """Push the puck to a point. The action is the velocity of the disc. The puck slides on and slows down."""

    def __init__(self) -> None:
        box = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        observation = spaces.Box(-np.inf, np.inf, (8,), np.float64)
        self.observation_space = spaces.Dict(observation=observation, achieved_goal=box, desired_goal=box)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Array], dict]:
        """Place disc, puck and goal."""
        super().reset(seed=seed)
        self.puck = self.np_random.uniform(-0.3, 0.3, 2)
        self.goal = self.np_random.uniform(-0.4, 0.4, 2)
        while np.linalg.norm(self.goal - self.puck) < 2 * NEAR:
            self.goal = self.np_random.uniform(-0.4, 0.4, 2)
        direction = self.np_random.uniform(0, 2 * np.pi)
        self.disc = self.puck + 0.2 * np.array([np.cos(direction), np.sin(direction)])
        self.velocity, self.slide = np.zeros(2), np.zeros(2)
        return self._observation(), {}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move the disc, and the puck out of its way."""
        self.velocity = 0.05 * np.clip(action, -1, 1).astype(np.float64)
        self.disc = self.disc + self.velocity
        gap = self.puck - self.disc
        distance = float(np.linalg.norm(gap))
        if distance < CONTACT:
            push = gap / max(distance, 1e-9) * (CONTACT - distance)
            self.puck, self.slide = self.puck + push, 0.5 * push
        else:
            self.puck, self.slide = self.puck + self.slide, 0.5 * self.slide
        observation = self._observation()
        reward = float(self.compute_reward(observation["achieved_goal"], self.goal, {}))
        return observation, reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 near the goal, else -1."""
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > NEAR).astype(np.float64)

    def _observation(self) -> dict[str, Array]:
        seen = np.concatenate([self.disc, self.puck, self.velocity, self.slide])
        return {"observation": seen, "achieved_goal": self.puck.copy(), "desired_goal": self.goal.copy()}


def act(observation: Observation) -> Array:
    """Go behind the puck, around it if need be, and push."""
    disc, puck, goal = observation["observation"][:2], observation["achieved_goal"], observation["desired_goal"]
    way = goal - puck
    distance = np.linalg.norm(way)
    if distance < 0.6 * NEAR:
        return np.zeros(2, np.float32)
    ahead = way / distance
    gap = puck - disc
    aside = gap - (gap @ ahead) * ahead
    if gap @ ahead > 0.6 * CONTACT and np.linalg.norm(aside) < 0.02:
        target = disc + ahead * min(0.05, 0.7 * distance + max(0.0, gap @ ahead - CONTACT)) + aside
    elif gap @ ahead > CONTACT:
        target = puck - 1.2 * CONTACT * ahead
    else:
        side = np.array([-ahead[1], ahead[0]])
        side = side if (disc - puck) @ side >= 0 else -side
        target = puck + 1.8 * CONTACT * side - 1.8 * CONTACT * ahead
    return np.clip((target - disc) / 0.05, -1, 1).astype(np.float32)


TASK = Task("DiscPuck-v0", "push", "open", DiscPuck, 50, lambda: act)
