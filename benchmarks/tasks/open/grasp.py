"""Grasp: fingers lift a block in a plane with gravity, and tongs that turn take a bar."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Observation, Task
from .angles import wrapped
from .base import Array, GoalTask, unit

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


class BarTongs(GoalTask):
    """Tongs, seen from above, take a bar if they are turned along it, and bring it to a position, in centimetres."""

    near, thickness, long = 2.5, 3.0, 5.0
    most = np.array([15.0, 2.5, 2.5, 2.0])  # degrees and centimetres in a step
    slack = np.radians(35)

    def __init__(self) -> None:
        super().__init__(11, 2, 4)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.bar, self.lie = draw(-15, 15, 2), draw(-np.pi, np.pi)
        self.goal = self.bar
        while not 7 < np.linalg.norm(self.goal - self.bar) < 25:
            self.goal = draw(-22, 22, 2)
        self.tongs, self.yaw = self.bar + draw(-4, 4, 2), self.lie + draw(-0.7, 0.7)
        self.width, self.is_held = draw(3, 6), False

    def move(self, action: Array) -> None:
        rates, gap = self.most * action, self.bar - self.tongs
        cosine, sine = unit(self.yaw)
        along, across = cosine * gap[0] + sine * gap[1], cosine * gap[1] - sine * gap[0]
        is_along = abs(along) < self.long and abs(wrapped(2 * (self.lie - self.yaw))) < 2 * self.slack
        is_between = is_along and abs(across) < (self.width - self.thickness) / 2 + 0.5
        width = float(np.clip(self.width + rates[3], 0.5, 8))
        self.is_held = width <= self.thickness + 0.2 and (self.is_held or is_between)
        self.width = max(width, self.thickness) if self.is_held else width
        before, turn = self.tongs, float(np.radians(rates[0]))
        self.tongs, self.yaw = np.clip(before + rates[1:3], -30, 30), self.yaw + turn
        if self.is_held:  # the bar turns about the tongs
            cosine, sine = unit(turn)
            self.bar = self.tongs + np.array([[cosine, -sine], [sine, cosine]]) @ gap
            self.lie += turn

    def observe(self) -> Array:
        force = 40 * self.is_held + self.np_random.normal()  # newtons
        (cosine, sine), (double_cosine, double_sine) = unit(self.yaw), unit(2 * self.lie)
        (x, y), (bar_x, bar_y) = self.tongs, self.bar
        first = [double_cosine, bar_y, x, self.width, sine]
        return np.array([*first, bar_x, force, cosine, y, double_sine, self.tongs[0] - self.bar[0]])

    def achieved(self) -> Array:
        return self.bar.copy()


def tongs_script() -> Any:
    task = BarTongs

    def act(observation: Any) -> Any:
        seen = observation["observation"]
        gap, to = seen[[5, 1]] - seen[[2, 8]], observation["desired_goal"] - seen[[5, 1]]
        if seen[6] > 20:
            return np.clip([0, *to / 2.5, -1], -1, 1).astype(np.float32)
        lie, yaw = 0.5 * np.arctan2(seen[9], seen[0]), np.arctan2(seen[4], seen[7])
        turn = wrapped(2 * (lie - yaw)) / 2  # a bar lies the same after half a turn
        is_there = np.linalg.norm(gap) < 0.4 and abs(turn) < 0.2 and seen[3] > task.thickness
        grip = -1 if is_there or (seen[3] < 6.5 and np.linalg.norm(gap) < 0.2 and seen[3] > 3.5) else 1
        return np.clip([np.degrees(turn) / 15, *gap / 2.5, grip], -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("PlaneGrasp-v0", "grasp", "open", PlaneGrasp, 50, lambda: lift),
    Task("BarTongs-v0", "grasp", "open", BarTongs, 50, tongs_script),
)
