"""Three closed tasks: wet soap, a lathe, and two boats with a rope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, push_out, unit
from ..task import Observation, Task


def both_near(achieved_goal: Array, desired_goal: Array, near: float) -> Any:
    """Return whether every number of a goal is within `near`."""
    return np.abs(achieved_goal - desired_goal).max(-1) <= near


class WetSoap(SizedTask):
    """A hand takes wet soap from a basin and brings it to a place in it or above it, in centimetres.

    Held too loosely it falls; held too firmly it jumps away, and the wetter it is, the sooner. Actions: three velocities,
    and the force to which the hand goes.
    """

    numbers, thing, near = (9, 3, 4), "soap", 5.0
    pace, grab, least, wide = 5.0, 5.0, 0.25, np.array([30.0, 30.0])

    def begin(self) -> None:
        self.soap = np.array([*self.place(-20, 20), 0.0])
        self.hand = self.soap + self.place([-10, -10, 4], [10, 10, 18], 3)
        self.goal = self.soap
        while np.linalg.norm(self.goal - self.soap) < 12:
            self.goal = self.place([-25, -25, 0], [25, 25, 22], 3)
            self.goal[2] *= self.np_random.integers(2)
        self.force, self.wet, self.is_held = 0.0, float(self.np_random.uniform(0, 1)), False

    def move(self, action: Array) -> None:
        self.force += 0.5 * (0.5 * (1 + action[3]) - self.force)
        is_near = bool(np.linalg.norm(self.hand - self.soap) < self.grab)
        most = 0.95 - 0.35 * self.wet
        before = self.hand
        self.hand = np.clip(self.hand + self.pace * action[:3], [-35, -35, 0], [35, 35, 30])
        self.is_held = is_near and self.least < self.force < most
        if self.is_held:
            self.soap = self.soap + self.hand - before
            return
        if is_near and self.force >= most:
            away = 12 * unit(self.np_random.uniform(-math.pi, math.pi))
            self.soap[:2] = np.clip(self.soap[:2] + away, -self.wide, self.wide)
        self.soap[2] = max(0.0, self.soap[2] - 8)

    def observe(self) -> Array:
        x, y, z = self.soap - self.hand
        return np.array([self.force, z, x, y, self.is_held, *self.hand, self.wet])


def wash() -> Any:
    """Go to the soap, hold it gently, and carry it."""

    def act(observation: Observation) -> Array:
        _, z, x, y, is_held, *_ = observation["observation"]
        way = observation["desired_goal"] - observation["achieved_goal"] if is_held else np.array([x, y, z])
        is_near = math.hypot(x, y, z) < WetSoap.grab
        return clipped(*(way / WetSoap.pace if is_held or not is_near else np.zeros(3)), -0.15)

    return act


class LatheShaft(SizedTask):
    """A lathe turns the two halves of a shaft down to wished diameters, in millimetres.

    The tool breaks, which ends the episode, if it shall cut too deep in a step: ahead or sideways. Nothing grows again.
    Actions: the tool's velocity along the shaft and away from its axis.
    """

    numbers, thing, near = (8, 2, 2), "diameters", 1.2
    pace, deepest, half, long = np.array([5.0, 1.6]), 2.0, 30.0, 60.0

    def begin(self) -> None:
        self.radii = self.place(19, 21)
        self.tool, self.rate = self.place([5, 22], [55, 25]), np.zeros(2)
        self.depth, self.is_broken = 0.0, False
        cuts = self.place(0, 6)
        while cuts.max() < 2:
            cuts = self.place(0, 6)
        self.goal = 2 * (self.radii - cuts)

    @property
    def diameters(self) -> Array:
        return 2 * self.radii

    def move(self, action: Array) -> None:
        before = self.tool
        self.tool = np.clip(before + self.pace * action, [0, 8], [self.long, 28])
        self.rate = self.tool - before
        part = int(self.tool[0] > self.half)
        self.depth = max(0.0, float(self.radii[part] - self.tool[1]))
        self.is_broken = self.depth > self.deepest
        if not self.is_broken:
            self.radii[part] -= self.depth

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return both_near(achieved_goal, desired_goal, self.near)

    def is_over(self) -> bool:
        return self.is_broken

    def observe(self) -> Array:
        along, away = self.tool
        load, hum = 100 * self.depth / self.deepest, float(self.np_random.normal(50, 1))
        return np.array([2 * self.radii[1], away, load, 2 * self.radii[0], hum, *self.rate, along])


def turn_down() -> Any:
    """Cut the half at which the tool is, draw the tool back, and cut the other one."""

    def act(observation: Observation) -> Array:
        seen, goal, task = observation["observation"], observation["desired_goal"], LatheShaft
        radii, away, along = np.array([seen[3], seen[0]]) / 2, seen[1], seen[7]
        lack = radii - goal / 2
        here = int(along > task.half)
        if lack.max() < 0.3:
            return clipped(0, 1)
        if lack[here] > 0.3:
            return clipped((15 + 30 * here - along) / 20, (goal[here] / 2 - away) / task.pace[1])
        if away < radii.max() + 0.3:
            return clipped(0, (radii.max() + 0.6 - away) / task.pace[1])
        return clipped((45 - 30 * here - along) / task.pace[0], 0)

    return act


class BoomBarrel(SizedTask):
    """Two boats with a stretched rope between them push a floating barrel over a bay to a place, in metres.

    The barrel glides on a little. The rope is taut and at most five metres long; the boats keep 1.2 metres apart. They
    start south of the barrel, and the place is north of it. Actions: where the velocities of the boats go to, each
    north and east.
    """

    numbers, thing, near = (13, 2, 4), "barrel", 0.8
    pace, kept, radius, short, long, glide_kept = 0.6, 0.3, 0.7, 1.2, 5.0, 0.4

    def begin(self) -> None:
        self.barrel = self.place([-3, 6], [3, 8])
        middle = self.barrel + self.place([-1, -3], [1, -1.5])
        aside = self.place(1, 2, 1)[0] * unit(self.np_random.uniform(-0.3, 0.3))
        self.boats, self.rates = np.array([middle - aside, middle + aside]), np.zeros((2, 2))
        self.glide = np.zeros(2)
        self.goal = self.barrel + self.place([-2, 2], [2, 6])

    def nearest(self) -> Array:
        """Return the place of the rope that is nearest to the barrel."""
        one, other = self.boats
        rope = other - one
        return np.asarray(one + rope * np.clip((self.barrel - one) @ rope / (rope @ rope), 0, 1))

    def move(self, action: Array) -> None:
        wish = self.pace * action.reshape(2, 2)[:, ::-1]
        before, self.rates = self.boats, self.kept * self.rates + (1 - self.kept) * wish
        boats = np.clip(before + self.rates, [-9, 0], [9, 18])
        gap, middle = boats[1] - boats[0], boats.mean(0)
        length = max(1e-9, float(np.linalg.norm(gap)))
        half = 0.5 * gap * np.clip(length, self.short, self.long) / length
        self.boats = np.array([middle - half, middle + half])
        self.rates = self.boats - before
        glided = self.barrel + self.glide_kept * self.glide
        moved = glided + push_out(glided, self.nearest(), self.radius)
        self.glide, self.barrel = moved - self.barrel, moved

    def observe(self) -> Array:
        (north, east), rope = self.barrel[::-1], float(np.linalg.norm(self.boats[1] - self.boats[0]))
        boats, rates = (self.boats - self.barrel).reshape(-1), self.rates.reshape(-1)
        return np.array([rope, *(10 * self.glide), *boats, north, east, *rates])


def sweep() -> Any:
    """Line up behind the barrel, at right angles to its way, and push."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], BoomBarrel
        boats, way = seen[3:7].reshape(2, 2), observation["desired_goal"] - observation["achieved_goal"]
        far = float(np.linalg.norm(way))
        ahead = way / max(far, 1e-9)
        side = np.array([-ahead[1], ahead[0]])
        side = side * math.copysign(1.3, (boats[1] - boats[0]) @ side)
        wings = np.array([-side, side])
        formed = float(np.abs(boats - wings + ahead).max()) < 0.6
        if far < 0.3:
            return clipped(*np.zeros(4))
        target = wings - ahead * (task.radius - min(0.4, 0.5 * far)) if formed else wings - ahead * 1.0
        wish = (target - boats - task.kept * seen[9:].reshape(2, 2)) / ((1 - task.kept) * task.pace)
        return clipped(*wish[:, ::-1].reshape(-1))

    return act


TASKS: tuple[Task, ...] = (
    Task("WetSoap-v0", "grasp", "closed", WetSoap, 50, wash),
    Task("LatheShaft-v0", "fragile", "closed", LatheShaft, 45, turn_down),
    Task("BoomBarrel-v0", "several-bodies", "closed", BoomBarrel, 50, sweep),
)
