"""Three closed tasks: a crab pot, a thimble with a pea, and a line of fire fighters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped
from ..task import Observation, Task


class CrabPot(SizedTask):
    """A fisher hauls a crab pot to a wished height by pulling a rope down, again and again, with a firm grip.

    Where nobody holds the rope, the pot sinks slowly. Actions: the hand's velocity aside and up, and the grip.
    """

    numbers, thing, near = (6, 1, 3), "pot", 0.1
    pace, beside, top, sink = np.array([0.06, 0.14]), 0.06, 0.8, 0.008

    def begin(self) -> None:
        self.pot, self.catch = float(self.np_random.uniform(-4, -2)), float(self.np_random.uniform(0, 0.6))
        self.hand, self.is_held = self.place([-0.3, 0], [0.3, self.top]), False
        self.rise, self.goal = 0.0, self.pot + self.place(0.5, 1.7, 1)

    def move(self, action: Array) -> None:
        before, low = self.hand[1], np.array([-0.4, 0.0])
        self.is_held = bool(abs(self.hand[0]) < self.beside and action[2] > self.catch)
        self.hand = np.clip(self.hand + self.pace * action[:2], low, [0.4, self.top])
        if self.is_held:
            self.hand[0] *= 0.2
        self.rise = before - self.hand[1] if self.is_held else -self.sink * (0.5 + self.catch)
        self.pot = max(-5.0, self.pot + self.rise)

    def observe(self) -> Array:
        return np.array([self.pot, self.hand[1], self.catch, self.hand[0], self.is_held, self.rise])


def haul() -> Any:
    """Pull down, let go, and reach up for the next pull."""
    is_back = True

    def act(observation: Observation) -> Array:
        nonlocal is_back
        _, height, _, aside, _, _ = observation["observation"]
        missing = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        wide, tall = CrabPot.pace
        if abs(aside) > 0.05:
            return clipped(-aside / wide, 1, -1)
        if missing < 0.02:
            return clipped(-aside / wide, -missing / tall, 1)
        is_back = height < CrabPot.top - 0.02 if is_back else height < 0.02
        return clipped(-aside / wide, 1, -1) if is_back else clipped(-aside / wide, -missing / tall, 1)

    return act


class ThimblePea(SizedTask):
    """A hand puts a thimble over a pea, seen from the side, drags the pea to its place, and takes the thimble to its own.

    Outside, the thimble pushes the pea before it. The goal has the places of both. Actions: right, up, and the grip.
    """

    numbers, near = (8, 2, 3), 0.05
    pace, inner, outer, tall, low, most = 0.06, 0.05, 0.07, 0.12, 0.03, 0.4

    def begin(self) -> None:
        self.pea, self.cup = self.place(-0.5, 0.5)
        while abs(self.pea - self.cup) < 0.1:
            self.pea = float(self.np_random.uniform(-0.5, 0.5))
        self.goal = np.array([self.pea, self.cup])
        while abs(self.goal[0] - self.pea) < 0.12:
            self.goal = self.place(-0.45, 0.45)
        self.hand = np.array([np.clip(self.cup + self.np_random.uniform(-0.25, 0.25), -0.6, 0.6), 0.25])
        self.lift, self.is_held = 0.0, False

    def move(self, action: Array) -> None:
        was_low, before = self.lift < self.low, self.pea - self.cup
        top = np.array([self.cup, self.lift + self.tall])
        near = bool(np.abs(self.hand - top).max() < 0.05)
        if not self.is_held and near and action[2] > 0:
            self.hand = top
        self.is_held = bool(near and action[2] > 0)
        self.hand = np.clip(self.hand + self.pace * action[:2], [-0.6, self.tall], [0.6, self.most])
        if self.is_held:
            self.cup, self.lift = float(self.hand[0]), float(self.hand[1] - self.tall)
        else:
            self.lift = max(0.0, self.lift - 0.1)
        if self.lift >= self.low:
            return
        gap = before if was_low else self.pea - self.cup
        if abs(gap) < 0.5 * (self.inner + self.outer):
            self.pea = float(self.cup + np.clip(self.pea - self.cup, -self.inner, self.inner))
        else:
            side = math.copysign(1.0, gap)
            self.pea = float(self.cup + side * max(self.outer, side * (self.pea - self.cup)))

    def achieved(self) -> Array:
        return np.array([self.pea, self.cup])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.abs(achieved_goal - desired_goal).max(-1) <= self.near

    def observe(self) -> Array:
        x, z = self.hand
        return np.array([self.lift, x - self.cup, z, self.pea, self.is_held, self.cup, self.pea - self.cup, x])


def cover_and_drag() -> Any:
    """Fetch the thimble, cover the pea, drag it, lift the thimble, and put it down at its own place."""

    def act(observation: Observation) -> Array:
        lift, aside, height, pea, is_held, cup, gap, _ = observation["observation"]
        goal_pea, goal_cup = observation["desired_goal"]
        missing, pace = goal_pea - pea, ThimblePea.pace
        if not is_held:
            return clipped(-aside / pace, (ThimblePea.tall + lift - height) / pace, 1 if abs(aside) < 0.04 else -1)
        is_placed = abs(missing) < 0.04
        if is_placed and abs(goal_cup - cup) < 0.02:
            return clipped(0, -lift / pace, 1)
        target = goal_cup if is_placed else pea
        if not is_placed and lift < ThimblePea.low and abs(gap) < 0.06:  # the pea is inside
            wall = math.copysign(ThimblePea.inner, missing)
            return clipped((missing + gap + wall - 0.01 * np.sign(missing)) / pace, -lift / pace, 1)
        if abs(target - cup) < 0.02:
            return clipped((target - cup) / pace, -lift / pace, 1)
        return clipped((target - cup) / pace if lift > 0.05 else 0, (0.09 - lift) / pace, 1)

    return act


class BucketLine(SizedTask):
    """Three fire fighters bring a bucket to a place along a street, in metres. Each can go along his own part of it only.

    Actions: three velocities, and the passing of the bucket to a near neighbour, to the right (above 0.3) or left.
    """

    numbers, thing, near = (10, 1, 4), "bucket", 0.12
    pace, kept, loaded, arm = 0.35, 0.3, 0.7, 0.3
    low, high = np.array([0.0, 1.8, 3.8]), np.array([2.2, 4.2, 6.0])

    def begin(self) -> None:
        self.at, self.rates = self.place(self.low, self.high, 3), np.zeros(3)
        self.holder = int(self.np_random.integers(3))
        self.goal = self.place(0.1, 5.9, 1)
        while abs(self.goal[0] - self.bucket) < 1:
            self.goal = self.place(0.1, 5.9, 1)

    @property
    def bucket(self) -> float:
        return float(self.at[self.holder])

    def move(self, action: Array) -> None:
        strength = np.where(np.arange(3) == self.holder, self.loaded, 1.0)
        self.rates = self.kept * self.rates + (1 - self.kept) * self.pace * strength * action[:3]
        moved = np.clip(self.at + self.rates, self.low, self.high)
        self.rates, self.at = moved - self.at, moved
        if abs(action[3]) > 0.3:
            other = self.holder + (1 if action[3] > 0 else -1)
            if 0 <= other < 3 and abs(self.at[other] - self.bucket) < self.arm:
                self.holder = other

    def observe(self) -> Array:
        return np.array([*(np.arange(3) == self.holder), *self.at[::-1], *self.rates[::-1], self.bucket])


def pass_along() -> Any:
    """Pass the bucket until it is with somebody who can go to the place."""

    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], float(observation["desired_goal"][0])
        holder, at, low, high = int(seen[:3].argmax()), seen[5:2:-1], BucketLine.low, BucketLine.high
        is_left = goal < 3 if holder == 1 else holder == 0
        meet, side = np.array([2.0, 2.0 if is_left else 4.0, 4.0]), 0.0
        if low[holder] <= goal <= high[holder]:
            meet[holder] = goal
        else:
            side = 1.0 if goal > high[holder] else -1.0
        return clipped(*(0.8 * (meet - at) / BucketLine.pace), side)

    return act


TASKS: tuple[Task, ...] = (
    Task("CrabPot-v0", "pull", "closed", CrabPot, 60, haul),
    Task("ThimblePea-v0", "several-objects", "closed", ThimblePea, 75, cover_and_drag),
    Task("BucketLine-v0", "several-bodies", "closed", BucketLine, 50, pass_along),
)
