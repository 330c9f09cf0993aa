"""Two tasks of a workshop: a turning platter and a warm needle."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Task
from .sparse import Sparse, unit


def _wrapped(angle: Any, period: float) -> Any:
    """Return angles between minus a half and a half of a period."""
    return (angle + period / 2) % period - period / 2


def _box(low: Any, high: Any) -> spaces.Box:
    return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


class PlatterPush(Sparse):
    """A platter turns under a rod, which slides in along x and pushes a round piece across the platter.

    The piece turns with the platter. Lengths are in millimetres, actions are degrees and millimetres in a step.
    """

    near, size, half_width, rim = 18.0, 20.0, 15.0, 190.0
    deepest, shortest = -150.0, 230.0  # positions of the rod's tip

    def __init__(self) -> None:
        super().__init__(7, 2, _box([-12, -20], [12, 20]), np.float32)

    def begin(self, draw: Any) -> None:
        self.piece = self.goal = draw(50, 160) * unit(draw(-np.pi, np.pi))
        while np.linalg.norm(self.goal - self.piece) < 60:
            self.goal = draw(40, 160) * unit(draw(-np.pi, np.pi))
        self.rod, self.spin, self.load, self.mark = draw(190, 230), 0.0, 0.0, draw(-np.pi, np.pi)

    def move(self, action: Any) -> None:
        self.spin, self.load = 0.4 * self.spin + 0.6 * action[0], 0.0
        cosine, sine = unit(np.radians(self.spin) / 3)
        self.mark += np.radians(self.spin)
        for _ in range(3):
            x, y = self.piece
            self.piece = np.array([cosine * x - sine * y, sine * x + cosine * y])
            self.rod = float(np.clip(self.rod + action[1] / 3, self.deepest, self.shortest))
            self._push()

    def _push(self) -> None:
        x, y = self.piece
        gap = np.array([min(x - self.rod, 0.0), y - min(max(y, -self.half_width), self.half_width)])
        distance = float(np.sqrt(gap @ gap))
        if distance < self.size:
            way = gap / distance if distance > 1e-9 else np.array([-1.0, 0.0])
            self.piece = self.piece + (self.size - distance) * way
            self.load += self.size - distance
        radius = float(np.sqrt(self.piece @ self.piece))
        self.piece = self.piece * min(1.0, self.rim / max(radius, 1e-9))

    def sensors(self) -> Any:
        (x, y), (cosine, sine) = self.piece, unit(self.mark)
        return [self.spin, x, cosine, self.rod, y, self.load + 0.2 * self.np_random.normal(), sine]

    def reached(self) -> Any:
        return self.piece


def platter_script() -> Any:
    task = PlatterPush

    def act(observation: Any) -> Any:
        spin, x, _, rod, y, _, _ = observation["observation"].astype(float)
        goal = observation["desired_goal"].astype(float)
        radius, wished, angle = np.hypot(x, y), np.hypot(*goal), np.degrees(np.arctan2(y, x))
        turn, slide = 0.0, 20.0
        if abs(radius - wished) < 10:  # turn the piece to the goal, and keep clear of the rod
            to = _wrapped(np.degrees(np.arctan2(goal[1], goal[0])) - angle, 360)
            next_y = radius * np.sin(np.radians(angle + np.clip(to, -20, 20)))
            is_clear = rod > max(x, 0) + 20 or x < -40 or abs(next_y) > abs(y)
            turn = to if is_clear else 0.0
        elif abs(y) < 8 and (x > 0 or rod - x < task.size + 2) and rod > x + task.size - 5:
            end = wished if wished < radius and x > 0 else -wished
            turn, slide = -0.2 * spin, end + task.size - rod
        elif rod > radius + task.size:
            turn = -angle
        return np.clip([(turn - 0.4 * spin) / 0.6, slide], [-12, -20], [12, 20]).astype(np.float32)

    return act


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


TASKS = (
    Task("PlatterPush-v0", "push", "closed", PlatterPush, 80, platter_script),
    Task("WaxBead-v0", "later", "closed", WaxBead, 60, bead_script),
)
