"""Grasp: fingers lift a block in a plane with gravity, tongs that turn take a bar, and a hook lifts a bucket."""

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


class WellBucket(GoalTask):
    """A hook, seen from the front, catches the bail of a bucket from below and lifts the bucket to a place in the air.

    The bucket falls from the hook if the hook moves sideways too fast. The last column is the height of the hook above the
    bail.
    """

    near, bail, lip = 0.07, 0.2, 0.08  # height of the bail above the bottom of the bucket, half the width of the hook

    def __init__(self) -> None:
        super().__init__(6, 2, 2)

    def begin(self) -> None:
        self.hook = self.place([-0.4, 0.1], [0.4, 0.6])
        self.bucket, self.fall, self.is_hung = np.array([float(self.place(-0.3, 0.3, 1)[0]), 0.0]), 0.0, False
        shift, height = self.place([-0.25, 0.1], [0.25, 0.4])
        self.goal = np.array([np.clip(self.bucket[0] + shift, -0.4, 0.4), height])

    def move(self, action: Array) -> None:
        before, gap = self.hook, self._above_bail()
        self.hook = np.clip(before + 0.05 * action, [-0.5, 0.02], [0.5, 0.8])
        dx, dz = self.hook - before
        if self.is_hung:
            self.bucket = self.bucket + np.array([np.clip(dx, -0.04, 0.04), dz])
            if self.bucket[1] < 0 or abs(self.bucket[0] - self.hook[0]) > self.lip:
                self.is_hung, self.fall = False, 0.0
        else:
            self.fall -= 0.02
            self.bucket = self.bucket + np.array([0, self.fall])
        if self.bucket[1] <= 0:
            self.bucket[1], self.fall = 0.0, 0.0
        if not self.is_hung and abs(self.hook[0] - self.bucket[0]) < self.lip:
            if gap < 0 <= self._above_bail():
                self.is_hung, self.fall, self.bucket[1] = True, 0.0, self.hook[1] - self.bail
            elif gap >= 0 > self._above_bail():  # from above, the hook rests on the bail
                self.hook[1] = self.bucket[1] + self.bail

    def _above_bail(self) -> float:
        return float(self.hook[1] - self.bucket[1] - self.bail)

    def observe(self) -> Array:
        return np.array([*self.hook, *self.bucket, self.fall, self._above_bail()])

    def achieved(self) -> Array:
        return self.bucket.copy()


def bucket_script() -> Any:
    def act(observation: Observation) -> Array:
        x, _, bucket_x, bucket_z, _, gap = observation["observation"]
        offset = x - bucket_x
        if abs(gap) < 1e-6 and bucket_z > 0:  # the bucket hangs on the hook
            move = observation["desired_goal"] - observation["achieved_goal"]
            return np.clip(move / 0.05, [-0.7, -1], [0.7, 1]).astype(np.float32)
        if gap < 0 and abs(offset) < 0.04:
            move = np.array([-offset, 0.05])
        elif gap > -0.05:  # down beside the bail
            target = bucket_x + np.copysign(0.14, offset) if abs(offset) < 0.12 else x
            move = np.array([target - x, -0.05 if abs(offset) > 0.09 else 0.0])
        else:
            move = np.array([-offset, 0.0])
        return np.clip(move / 0.05, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("PlaneGrasp-v0", "grasp", "open", PlaneGrasp, 50, lambda: lift),
    Task("BarTongs-v0", "grasp", "open", BarTongs, 50, tongs_script),
    Task("WellBucket-v0", "grasp", "open", WellBucket, 60, bucket_script),
)
