"""Closed tasks: a sticky tip, and a tug for aircraft."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, Seen, SinglePrecision, SizedTask, clipped, unit, wrapped
from ..task import Observation, Task


class GlueStick(SinglePrecision):
    """A stick dips its tip into a pot of glue, touches a piece of paper, and draws it to a place. In decimetres.

    Paper sticks to wet glue only, which dries within 30 steps. When the paper is there, the reward is 1 and the
    episode ends. Actions: accelerations of the tip.
    """

    numbers, thing, near = (11, 2, 2), "paper", 0.22
    thrust, kept, grab, pot_radius, drying, size = 0.13, 0.6, 0.2, 0.25, 1 / 30, 4.0

    def begin(self) -> None:
        self.tip, self.speed, self.wet, self.is_stuck = self.place(0.3, 3.7), np.zeros(2), 0.0, False
        self.pot, self.paper = self.place(0.3, 3.7), self.place(0.6, 3.4)
        while np.linalg.norm(self.pot - self.tip) < 0.5 or np.linalg.norm(self.pot - self.tip) > 1.5:
            self.pot = self.place(0.3, 3.7)
        while not 0.7 < np.linalg.norm(self.paper - self.pot) < 2:
            self.paper = self.place(0.6, 3.4)
        self.goal = self.paper
        while not 0.7 < np.linalg.norm(self.goal - self.paper) < 2.2:
            self.goal = self.place(0.3, 3.7)

    def move(self, action: Array) -> None:
        self.speed = self.kept * self.speed + self.thrust * action
        before = self.tip
        self.tip = np.clip(before + self.speed, 0, self.size)
        self.speed = self.tip - before
        self.wet = 1.0 if np.linalg.norm(self.tip - self.pot) < self.pot_radius else max(0.0, self.wet - self.drying)
        self.is_stuck = self.is_stuck or bool(self.wet > 0 and np.linalg.norm(self.paper - self.tip) < self.grab)
        if self.is_stuck:
            self.paper = np.clip(self.paper + self.speed, 0, self.size)

    def is_over(self) -> bool:
        return bool(self.is_met(self.paper, self.goal))

    def observe(self) -> Array:
        to_pot, (x, y), (east, north) = self.pot - self.tip, self.tip, self.paper
        return np.array([*(10 * self.speed), self.wet, y, north, *to_pot, x, east, self.is_stuck, 0.4])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the paper is at its place, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)


def glue() -> Any:
    """Dip the tip, touch the paper, and draw it to the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"].astype(float), GlueStick
        way = seen[5:7]
        if seen[9]:
            way = observation["desired_goal"].astype(float) - observation["achieved_goal"]
        elif seen[2] > 0:
            way = np.array([seen[8] - seen[7], seen[4] - seen[3]])
        return clipped(*((way - task.kept * 0.1 * seen[:2]) / task.thrust))

    return act


class PushbackTug(SizedTask):
    """A tug with two driven wheels takes an aircraft by its nose wheel and brings that to a place, in metres.

    The main wheels of the aircraft follow. The reward is 100 at the place, less the fuel of a step, which info reports.
    Actions: the clamp (above 0 holds), speeds of the right and the left wheel.
    """

    numbers, near = (11, 2, 3), 2.5
    pace, width, front, grab, wheelbase, size = 1.6, 2.4, 2.0, 1.4, 8.0, 30.0

    def begin(self) -> None:
        self.nose, (self.heading, tail) = self.place(-15, 15), self.place(-math.pi, math.pi)
        self.main, self.is_held, self.fuel = self.nose - self.wheelbase * unit(tail), False, 0.0
        self.tug = self.nose + self.np_random.uniform(5, 10) * unit(tail + self.np_random.uniform(-1.5, 1.5))
        self.goal = self.nose
        while not 7 < np.linalg.norm(self.goal - self.nose) < 25:
            self.goal = self.place(-18, 18)

    def achieved(self) -> Array:
        return self.nose.copy()

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        seen, _, terminated, truncated, info = super().step(action)
        info["fuel"] = self.fuel
        return seen, float(self.compute_reward(seen["achieved_goal"], self.goal, info)), terminated, truncated, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 100 at the place, else 0, less the fuel."""
        is_batch = isinstance(info, list | tuple | np.ndarray)
        fuel = np.array([each["fuel"] for each in info]) if is_batch else info.get("fuel", 0.0)
        return 100.0 * self.is_met(achieved_goal, desired_goal) - fuel

    def move(self, action: Array) -> None:
        clamp, right, left = action
        self.fuel = float(right**2 + left**2)
        self.heading = wrapped(self.heading + self.pace * float(right - left) / self.width)
        self.tug = np.clip(self.tug + 0.5 * self.pace * (left + right) * unit(self.heading), -self.size, self.size)
        tip = self.tug + self.front * unit(self.heading)
        self.is_held = bool(clamp > 0 and (self.is_held or np.linalg.norm(tip - self.nose) < self.grab))
        if self.is_held:
            self.nose = tip
            gap = self.main - tip
            self.main = tip + gap * self.wheelbase / max(1e-9, float(np.linalg.norm(gap)))

    def observe(self) -> Array:
        gap, ahead, body = self.nose - self.tug, unit(self.heading), self.nose - self.main
        axle = math.degrees(math.atan2(body[1], body[0]))
        along, aside = float(gap @ ahead) - self.front, float(ahead[0] * gap[1] - ahead[1] * gap[0])
        return np.array([*self.nose, ahead[1], *self.tug, ahead[0], self.is_held, axle, along, aside, self.wheelbase])


def push_back() -> Any:
    """Move the front of the tug to the nose wheel, clamp, and move the front to the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], PushbackTug
        ahead = np.array([seen[5], seen[2]])
        gap = observation["desired_goal"] - observation["achieved_goal"]
        way = np.array([gap @ ahead, ahead[0] * gap[1] - ahead[1] * gap[0]]) if seen[6] else seen[8:10]
        is_near = bool(np.linalg.norm(way) < 0.8)
        way = 0.7 * way * min(1.0, 2.0 / max(1e-9, float(np.linalg.norm(way))))
        spin = 0.5 * task.width * way[1] / task.front
        wheels = np.array([way[0] + spin, way[0] - spin]) / task.pace
        return clipped(1 if seen[6] or is_near else -1, *(wheels / max(1.0, float(np.abs(wheels).max()))))

    return act


TASKS: tuple[Task, ...] = (
    Task("GlueStick-v0", "later", "closed", GlueStick, 50, glue),
    Task("PushbackTug-v0", "rewards", "closed", PushbackTug, 60, push_back),
)
