"""Two closed tasks: a crab pot, and a line of fire fighters."""

from __future__ import annotations

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
    Task("BucketLine-v0", "several-bodies", "closed", BucketLine, 50, pass_along),
)
