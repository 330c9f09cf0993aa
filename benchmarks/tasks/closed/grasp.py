"""Grasp."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from ..task import Task
from .spaces import goal_space, real

HALF = 0.04  # of the block


class PinchBlock(gymnasium.Env):
    """Two fingers, seen from the front, take a block from the floor and bring it to a place, often in the air.

    The block falls when the fingers let it go.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(real(5), real(2))
        self.action_space = real(3, -1, 1)

    def _observe(self) -> dict[str, Any]:
        state = np.array([*self.hand, self.gap, *self.block], np.float32)
        return {"observation": state, "achieved_goal": state[3:].copy(), "desired_goal": self.goal.astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.block = np.array([self.np_random.uniform(-0.3, 0.3), HALF])
        self.hand = np.array([np.clip(self.block[0] + self.np_random.uniform(-0.1, 0.1), -0.4, 0.4), 0.15])
        self.gap = 0.08  # half of the distance of the fingers
        if self.np_random.random() < 0.5:  # half of the episodes begin with the block in the fingers
            self.hand, self.gap = self.block.copy(), HALF
        self.goal = self.block
        while np.linalg.norm(self.goal - self.block) < 0.12:
            height = HALF if self.np_random.random() < 0.3 else self.np_random.uniform(0.1, 0.4)
            self.goal = np.array([self.np_random.uniform(-0.35, 0.35), height])
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        dx, dz, dg = np.clip(action, -1, 1) * [0.05, 0.05, 0.03]
        gap = float(np.clip(self.gap + dg, 0.02, 0.1))
        off = abs(self.block[0] - self.hand[0])
        is_level = abs(self.hand[1] - self.block[1]) < 0.05
        is_between = is_level and off <= self.gap - HALF + 1e-6
        is_held = is_between and gap <= HALF
        hand = np.clip(self.hand + np.array([dx, dz]), [-0.5, HALF], [0.5, 0.5])
        if is_between:
            gap = max(gap, HALF)
            if is_held:
                rise = max(hand[1] - self.hand[1], HALF - self.block[1])
                self.block = np.array([hand[0], self.block[1] + rise])
                hand[1] = self.hand[1] + rise
            else:
                free = gap - HALF
                self.block[0] = np.clip(self.block[0], hand[0] - free, hand[0] + free)
        elif is_level:  # the fingers are beside the block and do not go through it
            hand[0] = self.hand[0]
            gap = min(gap, self.gap)
        elif abs(hand[1] - self.block[1]) < 0.05 and gap - HALF < abs(self.block[0] - hand[0]) < gap + HALF + 0.02:
            hand[1] = self.block[1] + 0.06  # a finger stands on the block
        if not is_held:
            self.block[1] = max(self.block[1] - 0.1, HALF)
        self.hand, self.gap = hand, gap
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.05).astype(np.float32)


def pinch_script() -> Any:
    def act(observation: Any) -> Any:
        x, z, gap, bx, bz = observation["observation"]
        goal = observation["desired_goal"]
        if abs(z - bz) < 0.04 and abs(x - bx) <= gap - HALF + 1e-3:
            move = np.array([goal[0] - bx, goal[1] - bz]) if gap <= HALF + 1e-3 else np.zeros(2)
            return np.array([*np.clip(move / 0.05, -1, 1), -1], np.float32)
        down = bz - z if abs(x - bx) < 0.02 and gap > 0.07 else 0.15 + bz - z
        return np.clip([(bx - x) / 0.05, down / 0.05, (0.08 - gap) / 0.03], -1, 1).astype(np.float32)

    return act


TASKS = (Task("PinchBlock-v0", "grasp", "closed", PinchBlock, 50, pinch_script, budget=20_000),)
