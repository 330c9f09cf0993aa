"""Not a robot: levels of coupled tanks, and a dose that acts with a delay."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask

GAIN = 0.25 / 0.15 * 0.35 / 0.3 * 0.6 / 0.4  # concentration that a dose of 1 in each step leads to


class Tanks(GoalTask):
    """Two pumps fill three tanks, which leak into each other. The levels of the first two must be right, in centimetres."""

    near = 1.5

    def __init__(self) -> None:
        super().__init__(5, 2, 2)

    def begin(self) -> None:
        """Draw levels that the pumps can hold."""
        self.levels, self.flow = self.np_random.uniform(5, 40, 3), np.zeros(2)
        self.goal = self._held(self.np_random.uniform(0.15, 0.85, 2))[:2]

    def _held(self, opening: Array) -> Array:
        levels = np.array([20.0, 20.0, 20.0])
        for _ in range(400):
            levels = self._after(levels, 2 * opening - 1)
        return levels

    def _after(self, levels: Array, action: Array) -> Array:
        inflow = 2.0 * (action + 1)
        across = 0.06 * (levels[0] - levels[2]), 0.06 * (levels[1] - levels[2])
        out = np.array([across[0] + 0.05 * levels[0], across[1] + 0.05 * levels[1], 0.1 * levels[2] - sum(across)])
        return np.clip(levels + np.array([*inflow, 0.0]) - out, 0.0, 80.0)

    def move(self, action: Array) -> None:
        """Pump, and let the water flow."""
        before = self.levels
        self.levels = self._after(before, action)
        self.flow = (self.levels - before)[:2]

    def observe(self) -> Array:
        """Return the levels, and how the first two changed."""
        return np.concatenate([self.levels, self.flow])

    def achieved(self) -> Array:
        """Return the first two levels."""
        return self.levels[:2].copy()


def pump(observation: Observation) -> Array:
    """Replace what flows out, and what is missing."""
    levels = observation["observation"][:3]
    out = 0.06 * (levels[:2] - levels[2]) + 0.05 * levels[:2]
    missing = observation["desired_goal"] - levels[:2]
    return np.clip((out + 0.7 * missing) / 2.0 - 1, -1, 1).astype(np.float32)


class Dose(GoalTask):
    """A dose passes through two stages before it acts. The concentration at the end must be right."""

    near = 0.03

    def __init__(self) -> None:
        super().__init__(3, 1, 1)

    def begin(self) -> None:
        """Begin with what is left of earlier doses."""
        self.stages, self.goal = self.np_random.uniform(0, 1.5, 3), self.np_random.uniform(0.2, 2.2, 1)

    def move(self, action: Array) -> None:
        """Give a dose, and let the rest move on."""
        given = (float(action[0]) + 1) / 2
        first, second, third = self.stages
        self.stages = np.array([0.6 * first + 0.6 * given, 0.7 * second + 0.35 * first, 0.85 * third + 0.25 * second])

    def observe(self) -> Array:
        """Return the three stages."""
        return self.stages.copy()

    def achieved(self) -> Array:
        """Return the concentration."""
        return self.stages[2:].copy()


def give(observation: Observation) -> Array:
    """Give the dose that holds the goal, and a little of what is missing."""
    missing = observation["desired_goal"] - observation["achieved_goal"]
    dose = observation["desired_goal"] / GAIN + 0.05 * missing
    return np.clip(2 * dose - 1, -1, 1).astype(np.float32)


TASKS = (
    Task("Tanks-v0", "not-a-robot", "open", Tanks, 50, lambda: pump),
    Task("Dose-v0", "not-a-robot", "open", Dose, 40, lambda: give),
)
