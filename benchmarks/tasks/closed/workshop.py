"""A warm needle draws a bead."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Task
from .sparse import Sparse


def _box(low: Any, high: Any) -> spaces.Box:
    return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


class WaxBead(Sparse):
    """A needle with a heater draws a bead through wax. It holds the bead only while it is warm, and not too hot.

    The first two actions are the needle's target in millimetres, the last one is the heater's power.
    """

    near, pace, reach, window = 2.0, 3.0, 5.0, 50.0  # millimetres, degrees Celsius
    half = 20.0

    def __init__(self) -> None:
        super().__init__(8, 2, _box([-25, -25, 0], [25, 25, 1]))

    def begin(self, draw: Any) -> None:
        self.melting, self.warmth, self.fan = draw(70, 110), draw(20, 60), draw(0.9, 1.1)
        self.bead = self.goal = draw(-14, 14, 2)
        while not 6 < np.linalg.norm(self.goal - self.bead) < 22:
            self.goal = draw(-18, 18, 2)
        self.needle = self.bead
        while not 6 < np.linalg.norm(self.needle - self.bead) < 14:
            self.needle = draw(-self.half, self.half, 2)

    def move(self, action: Any) -> None:
        way, before = action[:2] - self.needle, self.needle
        step = way * min(1.0, self.pace / max(float(np.sqrt(way @ way)), 1e-9))
        self.needle = np.clip(before + step, -self.half, self.half)
        gap = self.bead - before
        if gap @ gap < self.reach**2 and self.melting < self.warmth < self.melting + self.window:
            self.bead = np.clip(self.bead + self.needle - before, -self.half, self.half)
        self.warmth += 0.15 * (20 + 200 * action[2] - self.warmth) + 0.5 * self.np_random.normal()
        self.fan += 0.01 * self.np_random.normal()

    def sensors(self) -> Any:
        (x, y), (bead_x, bead_y) = self.needle, self.bead
        return [self.fan, bead_x, self.warmth, y, self.melting, bead_y, x, self.melting - self.warmth]

    def reached(self) -> Any:
        return self.bead


def bead_script() -> Any:
    task = WaxBead

    def act(observation: Any) -> Any:
        _, bead_x, warmth, y, melting, bead_y, x, _ = observation["observation"]
        needle, bead = np.array([x, y]), np.array([bead_x, bead_y])
        power = np.clip((melting + 0.5 * task.window - 0.85 * warmth - 3) / 0.15 / 200, 0, 1)
        is_ready = 4 < warmth - melting < task.window - 4
        target = bead
        if np.linalg.norm(bead - needle) < 0.7 * task.reach:
            target = needle + (observation["desired_goal"] - bead if is_ready else 0)
        return np.clip([*target, power], [-25, -25, 0], [25, 25, 1]).astype(np.float32)

    return act


TASKS = (Task("WaxBead-v0", "later", "closed", WaxBead, 60, bead_script),)
