"""Grasp: fingers lift a block in a plane with gravity."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

SPEED, WIDEST, BLOCK = 0.05, 0.12, 0.06  # of the hand in a step; of the gap between the fingers; width of the block


class PlaneGrasp(GoalTask):
    """A hand with two fingers carries a block to a place, in the air or on the ground."""

    near = 0.05

    def __init__(self) -> None:
        super().__init__(8, 2, 3)

    def begin(self) -> None:
        """Place the block on the ground, and the hand above."""
        self.block = np.array([self.np_random.uniform(-0.3, 0.3), 0.0])
        self.hand = np.array([self.np_random.uniform(-0.3, 0.3), self.np_random.uniform(0.15, 0.35)])
        self.width, self.fall, self.motion = WIDEST, 0.0, np.zeros(2)
        height = self.np_random.uniform(0.1, 0.4) if self.np_random.random() < 0.6 else 0.0
        self.goal = np.array([self.np_random.uniform(-0.4, 0.4), height])

    def _is_between(self) -> bool:
        return bool(
            abs(self.block[0] - self.hand[0]) < 0.5 * (WIDEST - BLOCK) + 0.01 and abs(self.block - self.hand)[1] < 0.04
        )

    def move(self, action: Array) -> None:
        """Close or open the fingers, move the hand, and let the block fall if it is not held."""
        is_between, before = self._is_between(), self.hand
        self.width = float(np.clip(self.width + 0.04 * action[2], BLOCK if is_between else 0.0, WIDEST))
        is_held = is_between and self.width <= BLOCK + 0.005
        self.hand = np.clip(self.hand + SPEED * action[:2], [-0.6, 0.0], [0.6, 0.6])
        self.motion = self.hand - before
        if is_held:
            self.block, self.fall = self.hand.copy(), 0.0
        elif self.block[1] > 0:
            self.fall += 0.01
            self.block[1] = max(0.0, self.block[1] - self.fall)
        elif abs(self.block - self.hand)[1] < 0.04:  # a finger pushes it along the ground
            gap = self.block[0] - self.hand[0]
            inside, outside = 0.5 * (self.width - BLOCK), 0.5 * (self.width + BLOCK)
            if is_between and abs(gap) > inside:
                self.block[0] = self.hand[0] + np.sign(gap) * inside
            elif inside < abs(gap) < outside:
                self.block[0] = self.hand[0] + np.sign(gap) * outside

    def observe(self) -> Array:
        """Return hand, width of the gap, block, motion of the hand and speed of the fall."""
        return np.array([*self.hand, self.width, *self.block, *self.motion, self.fall])

    def achieved(self) -> Array:
        """Return the position of the block."""
        return self.block.copy()


def lift(observation: Observation) -> Array:
    """Open, go above the block, go down, close, and carry."""
    seen = observation["observation"]
    hand, width, block = seen[:2], seen[2], seen[3:5]
    gap = block - hand
    is_around = abs(gap[0]) < 0.02 and abs(gap[1]) < 0.03
    if is_around and width <= BLOCK + 0.005:
        return np.append(np.clip((observation["desired_goal"] - block) / SPEED, -1, 1), -1).astype(np.float32)
    if is_around:
        return np.array([0, 0, -1], np.float32)
    if abs(gap[0]) > 0.015 and hand[1] < block[1] + 0.08:
        return np.array([0, 1, 1], np.float32)
    down = gap[1] if abs(gap[0]) <= 0.015 and width > 0.9 * WIDEST else 0.0
    return np.array([np.clip(gap[0] / SPEED, -1, 1), np.clip(down / SPEED, -1, 1), 1], np.float32)


TASKS = (Task("PlaneGrasp-v0", "grasp", "open", PlaneGrasp, 50, lambda: lift),)
