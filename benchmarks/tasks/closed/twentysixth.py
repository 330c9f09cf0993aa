"""Four closed tasks: a fairground hammer, a diver, a table of sand, and a wobbling jelly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, OwnUnits, SizedTask, clipped, unit
from ..task import Observation, Task


class HighStriker(SizedTask):
    """A hammer falls on a pad, which throws a weight up a scale: it shall come to a wished height, in metres.

    The achieved goal is the height of the newest blow. A blow beside the middle of the pad gives less. Actions: the
    torque on the handle, and the step aside.
    """

    numbers, thing, near = (7, 1, 2), "mark", 0.1
    pad, back, fall, torque, tick, parts, scale, wide = 1.7, -1.2, 3.0, 5.0, 0.08, 4, 0.07, 0.3

    def begin(self) -> None:
        self.angle, self.spin, self.mark = float(self.np_random.uniform(-0.4, 0.6)), 0.0, 0.0
        self.aside, self.spring = float(self.np_random.uniform(-0.3, 0.3)), float(self.np_random.uniform(0.7, 1.3))
        self.goal = self.place(0.4, 1.5, 1) * self.spring

    def move(self, action: Array) -> None:
        self.aside = float(np.clip(self.aside + 0.04 * action[1], -0.4, 0.4))
        tick = self.tick / self.parts
        for _ in range(self.parts):
            self.spin += tick * (self.fall * math.sin(self.angle) + self.torque * action[0])
            self.angle += tick * self.spin
            if self.angle >= self.pad:
                if self.spin > 0.8:
                    self.mark = self.scale * self.spring * self.spin**2 * max(0.0, 1 - (self.aside / self.wide) ** 2)
                self.angle, self.spin = self.pad, -0.3 * self.spin
            if self.angle < self.back:
                self.angle, self.spin = self.back, max(0.0, self.spin)

    def observe(self) -> Array:
        c, s = math.cos(self.angle), math.sin(self.angle)
        return np.array([self.aside, s, self.mark, c, self.spring, self.spin, self.np_random.normal(20, 2)])


def strike() -> Any:
    """Stand at the pad, lift the hammer, and bring it down with the speed for the height."""
    is_down = False

    def act(observation: Observation) -> Array:
        nonlocal is_down
        (aside, s, mark, c, spring, spin, _), task = observation["observation"], HighStriker
        angle, goal = math.atan2(s, c), float(observation["desired_goal"][0])
        steady = -task.fall * s / task.torque
        if abs(mark - goal) < 0.9 * task.near:
            return clipped(steady - spin - 0.6 * (angle - 0.5), 0)
        is_down = angle < 1.6 if is_down else abs(angle + 0.5) < 0.25 and abs(spin) < 0.6 and abs(aside) < 0.03
        if not is_down:
            return clipped(steady - 0.8 * spin - 1.2 * (angle + 0.5), -aside / 0.04)
        lack = 0.5 * (goal / (task.scale * spring) - spin**2) - task.fall * (c - math.cos(task.pad))
        pull = lack / (task.pad - angle + 0.02) / task.torque
        return clipped(max(pull, steady + 0.4) if spin < 0.8 else pull, -aside / 0.04)

    return act


class SalvageDiver(SizedTask):
    """A diver takes hold of a bag full of air that is tied to the ground, and brings it to a place in the water.

    The current and the lift of the bag move the two only when the bag is held, more so if it is large. Actions: velocities.
    """

    numbers, thing, near = (13, 3, 3), "bag", 0.06
    pace, kept, grab, water = 0.06, 0.4, 0.1, np.array([0.8, 0.8, 0.8])

    def begin(self) -> None:
        self.bag = self.place([-0.4, -0.4, 0.05], [0.4, 0.4, 0.15], 3)
        self.diver = self.goal = self.bag
        while not 0.15 < np.linalg.norm(self.diver - self.bag) < 0.35:
            self.diver = self.bag + self.place([-0.3, -0.3, 0], [0.3, 0.3, 0.3], 3)
        while not 0.2 < np.linalg.norm(self.goal - self.bag) < 0.7:
            self.goal = self.place([-0.5, -0.5, 0.1], [0.5, 0.5, 0.6], 3)
        self.size, self.current = float(self.np_random.uniform(0.3, 1)), self.place(-0.03, 0.03)
        self.rate, self.is_held = np.zeros(3), False

    def move(self, action: Array) -> None:
        self.rate = self.kept * self.rate + (1 - self.kept) * self.pace * action
        before = self.diver
        drift = self.is_held * self.size * np.array([*self.current, 0.03])
        self.diver = np.clip(before + self.rate + drift, [-0.8, -0.8, 0], self.water)
        if self.is_held:
            self.bag = self.bag + self.diver - before
        self.is_held = self.is_held or bool(np.linalg.norm(self.diver - self.bag) < self.grab)

    def observe(self) -> Array:
        return np.array([*self.diver, self.size, *self.rate, *(100 * self.current), self.is_held, *(self.bag - self.diver)])


def salvage() -> Any:
    """Swim to the bag, then swim against the current to the place."""

    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        if not seen[9]:
            return clipped(*(seen[10:] / SalvageDiver.pace))
        wish = 0.5 * way - seen[3] * np.array([*(seen[7:9] / 100), 0.03])
        return clipped(*((wish - SalvageDiver.kept * seen[4:7]) / ((1 - SalvageDiver.kept) * SalvageDiver.pace)))

    return act


class SandTable(OwnUnits):
    """A magnet on a turning arm below a table drags a steel ball through sand, and loses it where it goes too fast.

    The goal is the place of the ball in inches. The arm is seen in millimetres. Actions: millimetres and degrees per step.
    """

    numbers, thing, near = (8, 2, 2), "ball", 0.6
    limits = (-30.0, -25.0), (30.0, 25.0)
    inch, short, long, hold, follow = 25.4, 10.0, 260.0, 36.0, 0.6

    def begin(self) -> None:
        self.ball = self.goal = self.place(-6, 6)
        while not 2 < np.linalg.norm(self.goal - self.ball) < 9:
            self.goal = self.place(-6, 6)
        self.length, self.angle = float(self.np_random.uniform(50, 220)), float(self.np_random.uniform(-180, 180))
        self.reach, self.turn = 0.0, 0.0

    def magnet(self) -> Array:
        """Return the place of the magnet in millimetres."""
        return unit(math.radians(self.angle)) * float(self.length)

    def move(self, action: Array) -> None:
        wish = self.half * action
        before, self.turn = self.length, float(wish[1])
        self.length = float(np.clip(self.length + wish[0], self.short, self.long))
        self.angle, self.reach = self.angle + self.turn, self.length - before
        gap = self.magnet() - self.inch * self.ball
        if np.linalg.norm(gap) < self.hold:
            self.ball = self.ball + self.follow * gap / self.inch

    def observe(self) -> Array:
        angle = math.radians(self.angle)
        distance = float(np.linalg.norm(self.magnet() - self.inch * self.ball))
        return np.array([self.turn, self.length, *self.ball, math.sin(angle), distance, math.cos(angle), self.reach])


def drag() -> Any:
    """Move the magnet below the ball, then slowly to the place."""

    def act(observation: Observation) -> Array:
        _, length, _, _, s, distance, c, _ = observation["observation"]
        task, outward = SandTable, np.array([c, s])
        ball, goal = task.inch * observation["achieved_goal"], task.inch * observation["desired_goal"]
        way, most = (goal - ball, 16.0) if distance < 25 else (ball - length * outward, 60.0)
        if distance < 25:
            way = 0.7 * way + 0.5 * (ball - length * outward) if np.linalg.norm(way) < 20 else way
        way = way * min(1.0, most / max(1e-9, float(np.linalg.norm(way))))
        aside = math.degrees(math.atan2(way[1] * c - way[0] * s, max(length, 20.0)))
        move = np.array([way @ outward, aside]) / task.limits[1]
        return (move / max(1.0, float(np.abs(move).max())) * task.limits[1]).astype(np.float32)

    return act


class JellyPlate(SizedTask):
    """A waiter's plate carries a jelly, whose top lags behind and swings. If it swings too far, the jelly falls apart.

    The top shall come to a place. That gives the reward 1, all else 0. Actions: accelerations of the plate.
    """

    numbers, thing, near = (9, 2, 2), "top", 0.07
    push, kept, stiff, damping, most = 0.014, 0.97, 0.25, 0.88, 0.09

    def begin(self) -> None:
        self.plate, self.rate = self.place(-0.5, 0.5), np.zeros(2)
        self.lean, self.swing, self.is_broken = np.zeros(2), np.zeros(2), False
        self.goal = self.place(-0.6, 0.6)
        while np.linalg.norm(self.goal - self.plate) < 0.3:
            self.goal = self.place(-0.6, 0.6)

    @property
    def top(self) -> Array:
        return self.plate + self.lean

    def move(self, action: Array) -> None:
        self.rate = self.kept * self.rate + self.push * action
        self.swing = self.damping * self.swing - self.stiff * self.lean - self.push * action
        self.plate, self.lean = self.plate + self.rate, self.lean + self.swing
        self.is_broken = bool(np.linalg.norm(self.lean) > self.most)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def is_over(self) -> bool:
        return self.is_broken

    def observe(self) -> Array:
        lean = float(np.linalg.norm(self.lean)) / self.most
        return np.array([*(10 * self.swing), *self.plate, lean, *(10 * self.rate), *(10 * self.lean)])


def carry() -> Any:
    """Go to the place with small accelerations."""

    def act(observation: Observation) -> Array:
        plate, rate = observation["observation"][2:4], observation["observation"][5:7] / 10
        wish = 0.04 * (observation["desired_goal"] - plate) - 0.35 * rate
        return clipped(*(wish * min(1.0, 0.006 / max(1e-9, float(np.linalg.norm(wish)))) / JellyPlate.push))

    return act


TASKS: tuple[Task, ...] = (
    Task("HighStriker-v0", "hit", "closed", HighStriker, 50, strike),
    Task("SalvageDiver-v0", "later", "closed", SalvageDiver, 50, salvage),
    Task("SandTable-v0", "units", "closed", SandTable, 60, drag),
    Task("JellyPlate-v0", "fragile", "closed", JellyPlate, 60, carry),
)
