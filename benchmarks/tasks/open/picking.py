"""Open tasks: an apple that is picked, bricks that are stacked, and a driver that changes its bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped


class ApplePick(SizedTask):
    """A hand with a wrist picks an apple and brings it to a position, often in a basket on the ground. The stem holds the
    apple until it is turned far enough. Actions: speeds of hand and wrist, and opening or closing. Metres and degrees.
    """

    numbers, thing, near, twist = (9, 2, 4), "apple", 0.08, 65.0

    def begin(self) -> None:
        draw, self.jaws, self.is_held, self.is_free, self.fall = self.np_random.uniform, 1.0, False, False, 0.0
        self.apple = draw([-0.6, 0.7], [0.6, 1.3])
        self.hand, self.wrist, self.turned = draw([-0.8, 0.2], [0.8, 0.6]), draw(-110, 110), 0.0
        self.goal = draw([-0.7, 0.3], [0.7, 1.3]) if draw() < 0.4 else np.array([draw(-0.7, 0.7), 0.0])
        while np.linalg.norm(self.goal - self.apple) < 0.2:
            self.goal = draw([-0.7, 0.3], [0.7, 1.3])

    def move(self, action: Array) -> None:
        was_open, was = self.jaws > 0.3, self.wrist
        self.jaws = min(1.0, max(0.0, self.jaws + 0.4 * action[3]))
        is_near = bool(np.linalg.norm(self.hand - self.apple) < 0.08)
        self.is_held = self.jaws <= 0.3 and (self.is_held or (was_open and is_near))
        self.wrist = min(120.0, max(-120.0, self.wrist + 18 * action[2]))
        if not self.is_held or self.is_free:
            self.hand = np.clip(self.hand + 0.09 * action[:2], [-0.9, 0], [0.9, 1.4])
        self.turned = self.turned + self.wrist - was if self.is_held and not self.is_free else 0.0
        self.is_free = self.is_free or abs(self.turned) > self.twist
        if self.is_held:
            self.fall = 0.0
            self.apple, self.hand = (self.hand.copy(), self.hand) if self.is_free else (self.apple, self.apple.copy())
        elif self.is_free:
            self.fall = self.fall + 0.05 if self.apple[1] > 0 else 0.0
            self.apple = np.maximum(self.apple - np.array([0, self.fall]), [-np.inf, 0])

    def observe(self) -> Array:
        return np.array([*self.hand, self.turned, self.jaws, *self.apple, self.wrist, self.is_free, self.fall])


def pick(observation: Observation) -> Array:
    """Take the apple, turn it to where the wrist has more room, and carry it."""
    x, z, turned, jaws, *_, wrist, is_free, _ = observation["observation"]
    hand, apple, goal = np.array([x, z]), observation["achieved_goal"], observation["desired_goal"]
    gap = apple - hand
    if jaws > 0.3 or np.abs(gap).max() > 1e-6:
        return clipped(0, 0, 0, -1) if np.linalg.norm(gap) < 0.05 else clipped(*(gap / 0.09), 0, 1)
    if is_free:
        return clipped(*((goal - apple) / 0.09), 0, -1)
    return clipped(0, 0, np.sign(turned) if abs(turned) > 1 else -np.sign(wrist), -1)


class StackBricks(SizedTask):
    """A hand, seen from the front, sets two bricks on a floor beside each other or one upon the other. A brick that another
    one lies on cannot be taken. The goal: x and height of the first, then of the second. Actions: speeds, and grip. Metres.
    """

    numbers, thing, near, width, tall = (8, 4, 3), "bricks", 0.05, 0.1, 0.08

    def begin(self) -> None:
        draw, self.held, self.bricks = self.np_random.uniform, -1, self.arranged(0.3)
        self.hand, self.goal = draw([-0.4, 0.2], [0.4, 0.4]), self.bricks.ravel()
        while np.abs(self.goal - self.bricks.ravel()).max() < 0.1:
            self.goal = self.arranged(0.55).ravel()

    def arranged(self, chance: float) -> Array:
        """Return two bricks, stacked by chance."""
        draw, (one, other) = self.np_random.uniform, self.np_random.permutation(2)
        bricks = np.full((2, 2), 0.04)
        bricks[one, 0], is_stack = draw(-0.4, 0.4), draw() < chance
        bricks[other] = [bricks[one, 0] + draw(-0.03, 0.03), 0.12] if is_stack else [draw(-0.4, 0.4), 0.04]
        return bricks if is_stack or abs(bricks[0, 0] - bricks[1, 0]) > 0.15 else self.arranged(0)

    def move(self, action: Array) -> None:
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            far = np.linalg.norm(self.bricks - self.hand, axis=1)
            k = int(far.argmin())
            (x, z), (other_x, other_z) = self.bricks[k], self.bricks[1 - k]
            is_below = abs(other_x - x) < self.width and other_z > z + 0.04
            self.held = k if far[k] < 0.05 and not is_below else -1
        was = self.hand if self.held < 0 else self.bricks[self.held]
        aim = np.clip(was + 0.08 * action[:2], [-0.55, 0.04], [0.55, 0.45])
        if self.held >= 0:
            ways, other = np.array([aim, [aim[0], was[1]], [was[0], aim[1]], was]), self.bricks[1 - self.held]
            is_free = (np.abs(ways - other) > np.array([self.width, self.tall]) - 1e-6).any(1)
            self.bricks[self.held] = aim = ways[is_free.argmax()] if is_free.any() else was.copy()
        self.hand = aim.copy()
        for k in {0, 1} - {self.held}:
            self.drop(k)

    def drop(self, k: int) -> None:
        """Let a brick fall on what is below it. It slides off what is not below its middle."""
        (x, z), (other_x, other_z) = self.bricks[k], self.bricks[1 - k]
        ground, aside = 0.04, x - other_x
        if abs(aside) < self.width - 1e-6 and z > other_z + 0.04:
            ground = other_z + self.tall
            if abs(aside) > 0.07 and self.held < 0:
                ground, self.bricks[k, 0] = 0.04, other_x + math.copysign(self.width, aside)
        self.bricks[k, 1] = max(ground, z - 0.08)

    def observe(self) -> Array:
        return np.array([*self.bricks[1], *self.hand, self.held == 0, self.held == 1, *self.bricks[0]], np.float64)


def stack() -> Any:
    """Set the lower brick first, and out of its way what is upon it or in its place."""
    job: tuple[int, Array] | None = None

    def next_job(bricks: Array, goal: Array) -> tuple[int, Array] | None:
        up, low = np.argsort(-goal[:, 1], kind="stable")
        is_wrong = np.abs(bricks - goal).max(1) > 0.025
        if is_wrong[low]:
            is_near = abs(bricks[up, 0] - bricks[low, 0]) < 0.1
            top = low if bricks[low, 1] > bricks[up, 1] else up
            if (is_near and bricks[top, 1] > 0.1) or abs(bricks[up, 0] - goal[low, 0]) < 0.12:
                spots = (goal[up, 0], -0.4, -0.2, 0.0, 0.2, 0.4)
                others = (bricks[1 - top, 0], goal[low, 0])
                return top, np.array([next(x for x in spots if min(abs(x - one) for one in others) > 0.13), 0.04])
            return low, goal[low]
        return (up, goal[up]) if is_wrong[up] else None

    def act(observation: Observation) -> Array:
        nonlocal job
        seen, bricks, goal = (observation[key] for key in ("observation", "achieved_goal", "desired_goal"))
        bricks, goal, hand = bricks.reshape(2, 2), goal.reshape(2, 2), seen[2:4]
        job = job if seen[4:6].any() else next_job(bricks, goal)
        if job is None:
            return clipped(0, 0, -1)
        k, aim = job
        if not seen[4 + k]:
            gap = bricks[k] - hand
            return clipped(*(gap / 0.08), -1) if np.abs(gap).max() > 0.02 else clipped(0, 0, 1)
        across, down = aim - bricks[k]
        if abs(across) > 0.005:
            return clipped(across / 0.08 if hand[1] > 0.22 else 0, (0.25 - hand[1]) / 0.08, 1)
        return clipped(0, 0, -1) if down > -0.01 else clipped(0, down / 0.08, 1)

    return act


class BitChanger(SizedTask):
    """A driver turns a screw to a depth. Only the bit that fits the screw turns it. Over a magazine of three bits it takes
    another one. Actions: speeds of the driver, and its turn. Decimetres, and the depth in millimetres.
    """

    numbers, thing, near = (9, 1, 3), "depth", 1.0
    magazine = np.array([[-6.0, 8.0], [0.0, 8.0], [6.0, 8.0]])

    def begin(self) -> None:
        draw, (self.bit, self.kind) = self.np_random.uniform, self.np_random.integers(3, size=2)
        self.driver, self.screw = draw([-8, -8], [8, 2]), draw([-8, -8], [8, 2])
        self.depth, self.warmth = draw(0, 20), draw(20, 25)
        self.goal = (self.depth + draw(3, 17, 1)) % 20

    def move(self, action: Array) -> None:
        self.driver = np.clip(self.driver + 0.9 * action[:2], -10, 10)
        far = np.linalg.norm(self.magazine - self.driver, axis=1)
        self.bit = int(far.argmin()) if far.min() < 1.5 else self.bit
        self.warmth += 0.05 * abs(action[2]) - 0.01
        if self.bit == self.kind and np.linalg.norm(self.driver - self.screw) < 1.2:
            self.depth = min(20.0, max(0.0, self.depth + 1.5 * action[2]))

    def observe(self) -> Array:
        return np.array([self.warmth, self.bit, *self.screw, self.depth, self.kind, *self.driver, 20 - self.depth])


def drive_screw(observation: Observation) -> Array:
    """Take the right bit, go to the screw, and turn it."""
    _, bit, x, y, depth, kind, *driver = observation["observation"][:8]
    way = (np.array([x, y]) if bit == kind else BitChanger.magazine[int(kind)]) - driver
    is_there = bit == kind and np.linalg.norm(way) < 0.8
    return clipped(*(way / max(0.9, float(np.abs(way).max()))), (observation["desired_goal"][0] - depth) / 1.5 * is_there)


TASKS: tuple[Task, ...] = (
    Task("ApplePick-v0", "grasp", "open", ApplePick, 60, lambda: pick),
    Task("StackBricks-v0", "several-objects", "open", StackBricks, 80, stack),
    Task("BitChanger-v0", "later", "open", BitChanger, 60, lambda: drive_screw),
)
