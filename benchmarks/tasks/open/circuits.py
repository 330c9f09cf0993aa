"""Open task: capacitors that switches charge and drain."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, Seen
from .grids import DiscreteTask


class CapacitorBank(DiscreteTask):
    """Switches charge and drain a chain of three capacitors through resistors until each has its wished voltage.

    Actions, for a moment each: nothing, the source (5 V) to the first, the first to the second, the second to the third,
    the third to earth, the first to earth.
    """

    farads, near, source = (1.0, 0.8, 0.6), 0.3, 5.0

    def __init__(self) -> None:
        seen, goal = (spaces.Box(-np.inf, np.inf, (size,), np.float64) for size in (5, 3))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(6)  # type: ignore[assignment]

    def begin(self) -> None:
        self.state, self.goal = np.sort(self.np_random.uniform(0, 4, 3))[::-1], np.zeros(3)
        self.goal = self.state
        while np.abs(self.goal - self.state).max() < 1.5:
            self.goal = self.np_random.uniform(0.7, 3.8, 3)

    @classmethod
    def after(cls, state: Array) -> list[Any]:
        kept = 0.9995 * state
        first, last, found = kept.copy(), kept.copy(), [kept]
        charged = kept.copy()
        charged[0] += 0.3 * (cls.source - kept[0])
        first[0], last[2] = 0.75 * kept[0], 0.88 * kept[2]
        for one in (0, 1):
            shared, (here, there) = kept.copy(), cls.farads[one : one + 2]
            charge = 0.8 * (kept[one] - kept[one + 1]) * here * there / (here + there)
            shared[one : one + 2] += np.array([-charge / here, charge / there])
            found.append(shared)
        return [found[0], charged, *found[1:], last, first]

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near).all(-1).astype(np.float64) - 1

    def seen(self) -> Seen:
        hum, last = self.np_random.normal(0, 0.1), self.state[::-1]
        return {
            "observation": np.array([*last, hum, self.state.mean()]),
            "achieved_goal": self.state.copy(),
            "desired_goal": self.goal.copy(),
        }


def charge() -> Any:
    """Set the third, the second and the first one, in this order."""

    def act(observation: Observation) -> int:
        (first, second, third), (one, two, three) = now, goal = observation["achieved_goal"], observation["desired_goal"]
        if np.abs(now - goal).max() < 0.29:
            return 0
        if third > three + 0.22:
            return 4
        if third < three - 0.22:
            return 3 if second > third + 0.4 else 2 if first > second + 0.6 else 1
        if abs(second - two) > 0.22:
            is_low = second < two
            return 2 if (first > second + 0.5 if is_low else first < 0.6 * second) else 1 if is_low else 5
        return 1 if first < one else 5

    return act


TASKS: tuple[Task, ...] = (Task("CapacitorBank-v0", "not-a-robot", "open", CapacitorBank, 70, charge),)
