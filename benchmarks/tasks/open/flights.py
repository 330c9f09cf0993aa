"""Open tasks: a hammer is thrown, and a robot hops from ledge to ledge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, Seen, SizedTask, clipped, unit


class HammerThrow(SizedTask):
    """A machine swings a hammer around on a wire and lets it go once, to fall on a place of a field. That ends the episode.

    The goal is a place in metres and its height, 0. A success is worth 1. Angles are in degrees, anticlockwise from east.
    Actions: a change of the spin, and a release if it is above 0.6, the later in the step the greater it is.
    """

    numbers, thing, near = (5, 3, 2), "hammer", 1.2
    wire, lift, fastest, per_step = 1.5, 0.022, 28.0, 3.0

    def begin(self) -> None:
        self.angle, self.spin = float(self.np_random.uniform(0, 360)), float(self.np_random.uniform(6, 14))
        self.goal = np.array([*self.np_random.uniform(4, 14) * unit(np.radians(self.np_random.uniform(45, 135))), 0])
        self.hammer, self.whole, self.left = self._held(), 0.0, 0.0

    def _held(self) -> Array:
        return np.array([*self.wire * unit(math.radians(self.angle)), 1.5])

    def move(self, action: Array) -> None:
        if self.whole:
            way, self.left = min(self.per_step, self.left), max(0.0, self.left - self.per_step)
            place, part = self.hammer[:2] + way * unit(math.radians(self.angle + 90)), self.left / self.whole
            self.hammer = np.array([*place, 1.5 * part + self.whole * part * (1 - part)])
            return
        self.spin = min(self.fastest, max(3.0, self.spin + 2.5 * float(action[0])))
        share = min(1.0, (float(action[1]) - 0.6) / 0.4)
        self.angle = (self.angle + self.spin * (share if share > 0 else 1.0)) % 360
        self.hammer = self._held()
        if share > 0:
            self.whole = self.left = self.lift * self.spin**2

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., :2], axis=-1) <= self.near) & (np.abs(gap[..., 2]) < 0.01)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def is_over(self) -> bool:
        return bool(self.whole and not self.left)

    def observe(self) -> Array:
        turn = math.radians(self.angle)
        return np.array([self.spin, math.sin(turn), self.np_random.normal(), math.cos(turn), float(self.whole > 0)])


def throw_hammer() -> Any:
    """Spin as fast as the goal is far, and release where the way from there leads to the goal."""
    task = HammerThrow

    def act(observation: Observation) -> Array:
        spin, sin, _, cos, _ = observation["observation"]
        goal, best, angle = observation["desired_goal"][:2], (9.0, 0.0, 0.0), math.atan2(sin, cos)
        for change in np.linspace(-1, 1, 9):
            faster = min(task.fastest, max(3.0, spin + 2.5 * change))
            for share in np.linspace(0.05, 0.95, 19):
                at = angle + share * math.radians(faster)
                falls = task.wire * unit(at) + task.lift * faster**2 * unit(at + np.pi / 2)
                best = min(best, (float(np.linalg.norm(falls - goal)), float(change), float(share)))
        if best[0] < 0.5:
            return clipped(best[1], 0.6 + 0.4 * best[2])
        wish = math.sqrt(math.sqrt(float(goal @ goal) - task.wire**2) / task.lift)
        return clipped((wish - spin) / 2.5, -1)

    return act


class LedgeHopper(SizedTask):
    """A robot, seen from the side, runs and hops up three ledges, through which it jumps from below, to a place in metres.

    There the episode ends. Actions: left, nothing or right, and the same three with a hop.
    """

    numbers, thing = (9, 2, 1), "at"
    heights, half, width = np.array([0.0, 1.2, 2.4, 3.6]), 0.8, 8.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(6)

    def begin(self) -> None:
        middles = [self.np_random.uniform(2.5, 5.5)]
        while len(middles) < 3:
            middle = middles[-1] + self.np_random.uniform(1.0, 2.0) * self.np_random.choice([-1, 1])
            middles += [middle] if 0.8 < middle < self.width - 0.8 else []
        self.middles = np.array([0.5 * self.width, *middles])
        self.halves = np.array([0.5 * self.width, *[self.half] * 3])
        level, place = int(self.np_random.choice(4, p=[0.05, 0.1, 0.35, 0.5])), self.np_random.uniform(-0.8, 0.8)
        self.goal = np.array([self.middles[level] + place * self.halves[level], self.heights[level]])
        self.at, self.speed, self.is_standing = np.array([self.goal[0], 0.0]), np.zeros(2), True
        while abs(self.at[0] - self.goal[0]) < 1.5:
            self.at[0] = self.np_random.uniform(0.3, self.width - 0.3)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.array([int(action) % 3 - 1, int(action) // 3]))

    def move(self, action: Array) -> None:
        run = self.speed[0] + 0.8 * action[0] if self.is_standing else self.speed[0] + 0.4 * action[0]
        run = 0.4 * self.speed[0] if self.is_standing and not action[0] else min(3.0, max(-3.0, run))
        rise = 6.2 if self.is_standing and action[1] else self.speed[1]
        before, rise = self.at[1], rise - 0.98
        x, z = min(self.width, max(0.0, self.at[0] + 0.1 * run)), before + 0.1 * rise
        is_above = (before >= self.heights - 1e-9) & (z <= self.heights) & (np.abs(x - self.middles) <= self.halves)
        self.is_standing = bool(rise < 0 and is_above.any())
        if self.is_standing:
            z, rise = float(self.heights[is_above].max()), 0.0
        self.at, self.speed = np.array([x, z]), np.array([run, rise])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= [0.2, 0.02]).all(-1)

    def is_over(self) -> bool:
        return bool(self.is_met(self.at, self.goal))

    def observe(self) -> Array:
        motor = 40 + self.np_random.normal()  # degrees Celsius
        return np.array([*self.speed, *(self.middles[1:] - self.at[0]), float(self.is_standing), motor, *self.at])


def hop() -> Any:
    """Hop from ledge to ledge, then run to the place."""
    level = 0  # of the ledge on which it stands or stood

    def act(observation: Observation) -> int:
        nonlocal level
        run, _, *gaps, is_standing, _, x, z = observation["observation"]
        goal, wished = observation["desired_goal"][0], round(observation["desired_goal"][1] / 1.2)
        level, is_hop = round(z / 1.2) if is_standing else level, False
        upper = min(wished, level + 1)
        gap = goal - x if upper == wished and (level == wished or not is_standing) else gaps[upper - 1]
        if is_standing and level > wished:  # run off
            gap = -math.copysign(2, gaps[level - 1])
        elif is_standing and level < wished:
            to_edge = 0.8 + math.copysign(1, gap) * gaps[level - 1] if level else 9.0
            is_hop = abs(gap) < (1.2 if level else 0.9) or to_edge < 0.35
        wish = gap - run * abs(run) / (12 if is_standing else 8)
        return 3 * is_hop + (1 if abs(wish) < 0.08 else 2 if wish > 0 else 0)

    return act


TASKS: tuple[Task, ...] = (
    Task("HammerThrow-v0", "hit", "open", HammerThrow, 40, throw_hammer),
    Task("LedgeHopper-v0", "obstacles", "open", LedgeHopper, 70, hop),
)
