"""Closed tasks: a tractor with a spike, an arm at a hatch, and a bartender."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, unit, wrapped
from ..task import Observation, Task


class SpikeTractor(SizedTask):
    """A tractor with a spike at its front stabs a bale of straw and takes it to a place of a field. Metres.

    The spike takes a bale only while the tractor drives ahead. The second number of the goal is the height of a bale.
    Actions: ahead, back, left, right, let go.
    """

    numbers, near = (10, 3, 5), 0.75
    pace, turn, spike, grab, body, size = 0.6, math.radians(20), 1.2, 0.55, 0.8, 12.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(5)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.arange(5) == int(action))

    def begin(self) -> None:
        self.bale, self.heading, self.is_held = self.place(3, 9), float(self.np_random.uniform(-math.pi, math.pi)), False
        self.tractor = self.bale + self.np_random.uniform(1.8, 3.2) * unit(self.np_random.uniform(-math.pi, math.pi))
        self.tractor, self.goal = np.clip(self.tractor, 1, self.size - 1), self.achieved()
        while not 2.5 < np.linalg.norm(self.goal - self.achieved()) < 7:
            east, north = self.place(1.5, self.size - 1.5)
            self.goal = np.array([east, 0.9, north])

    def achieved(self) -> Array:
        return np.array([self.bale[0], 0.9, self.bale[1]])

    def move(self, action: Array) -> None:
        ahead, back, left, right, drop = action
        self.heading = wrapped(self.heading + self.turn * float(left - right))
        to = np.clip(self.tractor + self.pace * (ahead - back) * unit(self.heading), 0, self.size)
        if self.is_held or back or np.linalg.norm(to - self.bale) > self.body:
            self.tractor = to
        tip = self.tractor + self.spike * unit(self.heading)
        self.is_held = not drop and (self.is_held or bool(ahead and np.linalg.norm(self.bale - tip) < self.grab))
        if self.is_held:
            self.bale = tip

    def observe(self) -> Array:
        gap, ahead = self.bale - self.tractor, unit(self.heading)
        along, aside = float(gap @ ahead), float(ahead[0] * gap[1] - ahead[1] * gap[0])
        straw = 17 + self.np_random.normal(0, 0.3)
        (x, y), (east, north) = self.tractor, self.bale
        return np.array([east, ahead[0], north, ahead[1], self.is_held, straw, x, y, along, aside])


def stab() -> Any:
    """Turn to the bale, drive into it, turn to the goal, and drive until the spike is there."""

    def act(observation: Observation) -> int:
        seen, task = observation["observation"], SpikeTractor
        to = observation["desired_goal"][::2] if seen[4] else seen[[0, 2]]
        way, ahead = to - seen[6:8], np.array([seen[1], seen[3]])
        turn = wrapped(math.atan2(way[1], way[0]) - math.atan2(ahead[1], ahead[0]))
        lack = float(np.linalg.norm(way)) - task.spike
        if np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"]) < 0.5 * task.near:
            return 4
        if lack < -0.35:
            return 1
        if abs(turn) > 0.55 * task.turn:
            return 2 if turn > 0 else 3
        return 0 if lack > -0.3 or not seen[4] else 1

    return act


class ArmHatch(SizedTask):
    """An arm with two joints slides the hatch of a counter by its handle to a wished opening, in millimetres.

    The reward is minus the distance to the wished opening, in decimetres.
    Actions: speeds of elbow and shoulder, and the jaws (below 0 closes).
    """

    numbers, near = (7, 1, 3), 30.0
    links, pace, grab, slip, rail, end = (0.35, 0.33), 0.13, 0.05, 0.1, 0.42, 0.25
    low, high = np.array([0.1, 0.25]), np.array([3.0, 2.5])

    def tip(self) -> Array:
        """Return the position of the jaws, in metres."""
        return self.links[0] * unit(self.joints[0]) + self.links[1] * unit(self.joints.sum())

    def begin(self) -> None:
        self.opening, self.is_held = float(self.np_random.uniform(0, 500)), False
        self.joints = self.place(self.low, self.high)
        while not 0.1 < np.linalg.norm(self.gap()) < 0.3:
            self.joints = self.place(self.low, self.high)
        self.goal = self.achieved()
        while abs(self.goal[0] - self.opening) < 120:
            self.goal = self.place(20, 480, 1)

    def gap(self) -> Array:
        """Return the position of the handle, seen from the jaws, in metres."""
        return np.array([0.001 * self.opening - self.end, self.rail]) - self.tip()

    def achieved(self) -> Array:
        return np.array([self.opening])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return minus the distance to the wished opening, in decimetres."""
        return -0.01 * np.abs(achieved_goal - desired_goal).sum(axis=-1)

    def move(self, action: Array) -> None:
        self.joints = np.clip(self.joints + self.pace * action[1::-1], self.low, self.high)
        near = self.slip if self.is_held else self.grab
        held_gap = self.gap() * (np.array([0, 1]) if self.is_held else 1)
        self.is_held = bool(action[2] < 0 and np.linalg.norm(held_gap) < near)
        if self.is_held:
            self.opening = float(np.clip(1000 * (self.tip()[0] + self.end), 0, 500))

    def observe(self) -> Array:
        return np.array([self.joints[1], *(1000 * self.gap()), self.is_held, self.opening, 500, self.joints[0]])


def slide_hatch() -> Any:
    """Move the jaws straight to the handle, close them, and move along the rail."""

    def act(observation: Observation) -> Array:
        seen, (upper, lower), goal = observation["observation"], ArmHatch.links, float(observation["desired_goal"][0])
        shoulder, both = seen[6], seen[6] + seen[0]
        gap = 0.001 * seen[1:3]
        is_near = bool(np.linalg.norm(gap) < 0.035)
        way = np.array([0.001 * (goal - seen[4]), gap[1]]) if seen[3] else gap
        way = way * min(1.0, 0.05 / max(1e-9, float(np.linalg.norm(way))))
        far = lower * np.array([-math.sin(both), math.cos(both)])
        turns = np.linalg.solve(np.stack([upper * np.array([-math.sin(shoulder), math.cos(shoulder)]) + far, far], 1), way)
        turns = turns / max(1.0, float(np.abs(turns).max()) / ArmHatch.pace) / ArmHatch.pace
        return clipped(turns[1], turns[0], -1 if seen[3] or is_near else 1)

    return act


class BarTender(SizedTask):
    """A bartender shoves a mug with a flat hand, so that it slides along a bar and rests before a guest. In feet.

    The hand stays in the first 3 of 16 feet. A mug that it meets off its middle leaves at a slant.
    Actions: accelerations of the hand along and across the bar.
    """

    numbers, thing, near = (10, 2, 2), "mug", 0.65
    thrust, kept, slide, radius, half, slant, reach = 0.8, 0.8, 0.88, 0.2, 0.45, 0.4, 3.0
    bar = np.array([16.0, 4.0])

    def begin(self) -> None:
        self.mug, far = self.place([0.9, 0.8], [1.5, 3.2]), float(self.np_random.uniform(3.5, 9.0))
        self.hand, self.speed, self.mug_speed = self.mug, np.zeros(2), np.zeros(2)
        while abs(self.hand[1] - self.mug[1]) < 0.8:
            self.hand = self.place([0.1, 0.3], [0.8, 3.7])
        self.goal = self.mug + far * np.array([1, self.np_random.uniform(-0.1, 0.1)])
        self.goal[1] = min(3.7, max(0.3, self.goal[1]))

    def move(self, action: Array) -> None:
        self.mug = self.mug + self.mug_speed
        self.mug_speed = self.slide * self.mug_speed * (np.linalg.norm(self.mug_speed) > 0.005)
        outside = (self.mug < self.radius) | (self.mug > self.bar - self.radius)
        self.mug = np.clip(self.mug, self.radius, self.bar - self.radius)
        self.mug_speed[outside] *= np.array([0.0, -0.5])[outside]
        before = self.hand
        self.speed = self.kept * (self.speed + self.thrust * action)
        self.hand = np.clip(before + self.speed, 0, [self.reach, self.bar[1]])
        self.speed = self.hand - before
        off = float(self.mug[1] - self.hand[1])
        if self.mug[0] > before[0] and self.mug[0] - self.hand[0] < self.radius and abs(off) < self.half:
            self.mug[0], pace = self.hand[0] + self.radius, float(self.speed[0])
            if pace > self.mug_speed[0]:
                self.mug_speed = pace * np.array([1, self.slant * off])

    def observe(self) -> Array:
        (x, y), (along, aside), (east, north) = self.mug, self.mug_speed, self.hand
        return np.array(
            [x, east, 10 * self.speed[0], 10 * along, y - north, 10 * aside, y, 10 * self.speed[1], x - east, 16]
        )

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the mug is before the guest, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)


def shove_mug() -> Any:
    """Draw the hand back behind the mug, shove it with the speed that takes it to the guest, and stop the hand."""
    is_ready = False

    def act(observation: Observation) -> Array:
        nonlocal is_ready
        seen, task = observation["observation"], BarTender
        along, aside = observation["desired_goal"] - observation["achieved_goal"]
        lack = seen[4] - aside / max(along, 0.1) / task.slant
        is_ready = is_ready or (abs(lack) < 0.05 and abs(seen[7]) < 1)
        pace = (1 - task.slide) * (along + min(1.0, float(seen[8]) - task.radius)) / (2 - task.slide)
        if not is_ready:
            pace = 0.3 * (0.1 - float(seen[1]))
        elif seen[3] > 9.5 * (1 - task.slide) * along:
            pace = 0.0
        wished = np.array([pace, 0.5 * lack])
        return clipped(*((wished / task.kept - 0.1 * seen[[2, 7]]) / task.thrust))

    return act


TASKS: tuple[Task, ...] = (
    Task("SpikeTractor-v0", "grasp", "closed", SpikeTractor, 50, stab),
    Task("ArmHatch-v0", "pull", "closed", ArmHatch, 50, slide_hatch),
    Task("BarTender-v0", "hit", "closed", BarTender, 45, shove_mug),
)
