"""Open tasks: a trolley between two valleys, a cell that is pushed by a tip, and a reactor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, Seen, SizedTask, clipped, toward_push


class HillTrolley(SizedTask):
    """A weak trolley on a track with two valleys must swing to get to its stop. It gets 100 there, and pays for fuel. The
    stop ends the episode. The cost is in info.
    """

    numbers, thing, near = (3, 1, 1), "x", 0.12

    def begin(self) -> None:
        draw, valley = self.np_random.uniform, self.np_random.choice([1.0, 3.0])
        self.x, self.speed, self.fuel, self.goal = valley + draw(-0.15, 0.15), 0.0, 0.0, np.array([valley])
        while abs(self.goal[0] - valley) < 0.55:
            self.goal = draw(0.1, 3.9, 1)

    def move(self, action: Array) -> None:
        self.fuel = abs(float(action[0]))
        for _ in range(4):
            self.speed = 0.995 * self.speed + 0.02 * (1.2 * action[0] + 3.85 * math.sin(math.pi * self.x))
            self.speed = min(2.5, max(-2.5, self.speed))
            before, self.x = self.x, min(4.0, max(0.0, self.x + 0.02 * self.speed))
            self.speed = (self.x - before) / 0.02

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Add the cost to info."""
        seen, _, _, _, info = super().step(action)
        info["fuel"] = self.fuel
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info))
        return seen, reward, info["is_success"], False, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 100 at the stop, less the fuel."""
        met = self.is_met(achieved_goal, desired_goal)
        return 100.0 * met - np.resize([one.get("fuel", 0.0) for one in np.ravel(info)], np.shape(met))

    def observe(self) -> Array:
        return np.array([self.speed, self.x, 0.125 * (1 + math.cos(math.pi * self.x))])


def swing(observation: Observation) -> Array:
    """Speed up in the direction of travel until the energy is enough, then go to the stop."""
    (speed, x, height), goal = observation["observation"], observation["desired_goal"][0]
    top = 0.02 + max(0.125 * (1 + math.cos(math.pi * at)) for at in np.linspace(x, goal, 12))
    swings = speed**2 / 2 + 9.81 * height < 9.81 * top and 0.1 < x < 3.9
    return clipped((1 if speed >= 0 else -1) if swings else math.copysign(1, goal - x))


class CellPusher(SizedTask):
    """The tip of a pipette pushes a cell in a dish, in micrometres near 1,000. Actions: a direction and a length. The
    direction is between -pi and pi. The observation contains the goal. The reward of a batch of one is a number.
    """

    numbers, thing, near, radius = (7, 2, 2), "cell", 10.0, 30.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(np.array([-np.pi, 0], np.float32), np.array([np.pi, 20], np.float32))

    def begin(self) -> None:
        self.cell = self.tip = self.goal = self.place(900, 1100)
        while np.linalg.norm(self.tip - self.cell) < 45:
            self.tip = self.place(830, 1170)
        while np.linalg.norm(self.goal - self.cell) < 50:
            self.goal = self.place(860, 1140)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take direction and length."""
        return super().step(np.asarray(action) / [np.pi, 10] - [0, 1])

    def move(self, action: Array) -> None:
        angle, length = np.pi * action[0], 10 * (action[1] + 1)
        self.tip = np.clip(self.tip + length * np.array([math.cos(angle), math.sin(angle)]), 800, 1200)
        gap = self.cell - self.tip
        distance = max(1e-6, math.hypot(*gap))
        self.cell = np.clip(self.cell + gap / distance * max(0.0, self.radius - distance), 830, 1170)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 or -1."""
        reward = super().compute_reward(achieved_goal, desired_goal, info)
        return reward.item() if np.size(reward) == 1 else reward

    def observe(self) -> Array:
        return np.array([*self.goal, *self.tip, math.hypot(*(self.cell - self.tip)), *self.cell])


def nudge(observation: Observation) -> Array:
    """Go behind the cell and push."""
    seen = observation["observation"]
    way = toward_push(seen[2:4], seen[5:7], seen[:2], CellPusher.radius, CellPusher.near)
    return np.array([math.atan2(way[1], way[0]), min(20.0, math.hypot(*way))], np.float32)


class BatchReactor(SizedTask):
    """In a jacketed batch reactor A becomes B, and B becomes C, faster the hotter it is. Heat favours C, cold stops all.
    The goal: how much there is of B and C. Action: temperature of what flows through the jacket. Degrees Celsius.
    """

    numbers, near = (5, 2, 1), 0.03

    @staticmethod
    def after(state: Array, action: Any) -> Array:
        """Return states (..., 5) one step later: temperatures of the reactor and the jacket, A, B and C."""
        hot, jacket, a, b, c = np.moveaxis(state, -1, 0)
        first = a * np.minimum(0.5, 0.02 * np.exp(0.05 * (hot - 40)))
        second = b * np.minimum(0.5, 0.004 * np.exp(0.09 * (hot - 40)))
        flow = jacket + 0.4 * (50 + 50 * action - jacket)
        return np.stack([hot + 0.25 * (jacket - hot) + 30 * first, flow, a - first, b + first - second, c + second], -1)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.state = draw([15, 10, 0.9, 0, 0], [30, 40, 1.1, 0, 0])
        state, level, stop = self.state, draw(-0.45, -0.15) if draw() < 0.5 else draw(0.25, 0.8), draw(8, 45)
        for k in range(60):
            state = self.after(state, level if k < stop else -1.0)
        self.goal = state[3:]

    def move(self, action: Array) -> None:
        self.state = self.after(self.state, float(action[0]))

    def observe(self) -> Array:
        return self.state[[3, 0, 2, 1, 4]]

    def achieved(self) -> Array:
        return self.state[3:].copy()


def cook(observation: Observation) -> Array:
    """Foresee what a temperature for some steps, then cold, leads to, and begin with the best."""
    if np.linalg.norm(observation["desired_goal"] - observation["achieved_goal"]) < 0.01:
        return clipped(-1)
    levels, stops = (grid.ravel() for grid in np.meshgrid(np.linspace(-0.5, 1, 16), [0, 1, 2, 3, 5, 8, 12, 17, 23, 30, 40]))
    state = np.tile(observation["observation"][[1, 3, 2, 0, 4]], (len(levels), 1))
    for k in range(50):
        state = BatchReactor.after(state, np.where(k < stops, levels, -1.0))
    best = int(((state[:, 3:] - observation["desired_goal"]) ** 2).sum(1).argmin())
    return clipped(levels[best] if stops[best] else -1.0)


TASKS = (
    Task("HillTrolley-v0", "rewards", "open", HillTrolley, 100, lambda: swing),
    Task("CellPusher-v0", "units", "open", CellPusher, 60, lambda: nudge),
    Task("BatchReactor-v0", "not-a-robot", "open", BatchReactor, 60, lambda: cook),
)
