"""Four tasks of a workshop: a turning platter, tongs, a hoist, and a warm needle."""

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


class BarTongs(Sparse):
    """Tongs, seen from above, take a bar if they are turned along it, and bring it to a position, in centimetres."""

    near, thickness, long = 2.5, 3.0, 5.0
    most = np.array([15.0, 2.5, 2.5, 2.0])  # degrees and centimetres in a step
    slack = np.radians(35)

    def __init__(self) -> None:
        super().__init__(11, 2, _box([-1] * 4, [1] * 4))

    def begin(self, draw: Any) -> None:
        self.bar, self.lie = draw(-15, 15, 2), draw(-np.pi, np.pi)
        self.goal = self.bar
        while not 7 < np.linalg.norm(self.goal - self.bar) < 25:
            self.goal = draw(-22, 22, 2)
        self.tongs, self.yaw = self.bar + draw(-4, 4, 2), self.lie + draw(-0.7, 0.7)
        self.width, self.is_held = draw(3, 6), False

    def move(self, action: Any) -> None:
        rates, gap = self.most * action, self.bar - self.tongs
        cosine, sine = unit(self.yaw)
        along, across = cosine * gap[0] + sine * gap[1], cosine * gap[1] - sine * gap[0]
        is_along = abs(along) < self.long and abs(_wrapped(self.lie - self.yaw, np.pi)) < self.slack
        is_between = is_along and abs(across) < (self.width - self.thickness) / 2 + 0.5
        width = float(np.clip(self.width + rates[3], 0.5, 8))
        self.is_held = width <= self.thickness + 0.2 and (self.is_held or is_between)
        self.width = max(width, self.thickness) if self.is_held else width
        before, turn = self.tongs, float(np.radians(rates[0]))
        self.tongs, self.yaw = np.clip(before + rates[1:3], -30, 30), self.yaw + turn
        if self.is_held:  # the bar turns about the tongs
            cosine, sine = unit(turn)
            self.bar = self.tongs + np.array([[cosine, -sine], [sine, cosine]]) @ gap
            self.lie += turn

    def sensors(self) -> Any:
        force = 40 * self.is_held + self.np_random.normal()  # newtons
        (cosine, sine), (double_cosine, double_sine) = unit(self.yaw), unit(2 * self.lie)
        (x, y), (bar_x, bar_y) = self.tongs, self.bar
        first = [double_cosine, bar_y, x, self.width, sine]
        return [*first, bar_x, force, cosine, y, double_sine, self.tongs[0] - self.bar[0]]

    def reached(self) -> Any:
        return self.bar


def tongs_script() -> Any:
    task = BarTongs

    def act(observation: Any) -> Any:
        seen = observation["observation"]
        gap, to = seen[[5, 1]] - seen[[2, 8]], observation["desired_goal"] - seen[[5, 1]]
        if seen[6] > 20:
            return np.clip([0, *to / 2.5, -1], -1, 1).astype(np.float32)
        lie, yaw = 0.5 * np.arctan2(seen[9], seen[0]), np.arctan2(seen[4], seen[7])
        turn = _wrapped(lie - yaw, np.pi)
        is_there = np.linalg.norm(gap) < 0.4 and abs(turn) < 0.2 and seen[3] > task.thickness
        grip = -1 if is_there or (seen[3] < 6.5 and np.linalg.norm(gap) < 0.2 and seen[3] > 3.5) else 1
        return np.clip([np.degrees(turn) / 15, *gap / 2.5, grip], -1, 1).astype(np.float32)

    return act


class HoistCrates(Sparse):
    """A hoist with a magnet sets two crates at two positions on a line. A crate passes the other only above it."""

    near, size, catch, line = 70.0, 200.0, 80.0, 2000.0  # millimetres
    lift, pace = 100.0, 130.0  # in a step

    def __init__(self) -> None:
        super().__init__(9, 2, _box([-1] * 3, [1] * 3), np.float32)

    def _apart(self, draw: Any) -> Any:
        while True:
            pair = draw(150, self.line - 150, 2)
            if abs(pair[0] - pair[1]) > 1.4 * self.size:
                return pair

    def begin(self, draw: Any) -> None:
        self.crates = self.goal = self._apart(draw)
        while np.abs(self.goal - self.crates).max() < 250 or abs(self.goal[0] - self.goal[1]) < 1.4 * self.size:
            self.goal = np.where(draw(0, 1, 2) < 0.6, draw(150, self.line - 150, 2), self.crates)
        self.heights, self.held, self.speed = np.zeros(2), -1, 0.0
        self.hook = float(np.clip(self.crates[int(draw(0, 2))] + draw(-150, 150), 0, self.line))
        self.height, self.volts = draw(0, 200), draw(395, 405)

    def move(self, action: Any) -> None:
        gaps = np.abs(self.crates - self.hook)
        nearest = int(np.argmin(gaps))
        if action[1] <= 0:
            self.held = -1
        elif self.held < 0 and self.height < 60 and gaps[nearest] < self.catch:
            self.held = nearest
        before = self.hook
        self.speed = 0.3 * self.speed + 0.7 * self.pace * action[2]
        self.hook = float(np.clip(before + self.speed, 0, self.line))
        self.height = float(np.clip(self.height + self.lift * action[0], 0, 450))
        self.heights = np.where(np.arange(2) == self.held, self.height, 0.0)
        if self.held >= 0:
            self.crates[self.held] += self.hook - before
        self._keep_apart(self.held if self.held >= 0 else nearest)
        self.volts += 0.3 * self.np_random.normal()

    def _keep_apart(self, mover: int) -> None:
        """Let the crate that moved, or fell, push the other one aside, up to the ends of the line."""
        between = self.crates[1 - mover] - self.crates[mover]
        side = 1.0 if between >= 0 else -1.0
        if abs(self.heights[0] - self.heights[1]) < self.size and abs(between) < self.size:
            self.crates[1 - mover] = np.clip(self.crates[mover] + side * self.size, 0, self.line)
            self.crates[mover] = self.crates[1 - mover] - side * self.size

    def sensors(self) -> Any:
        (left, right), (left_height, right_height) = self.crates, self.heights
        first = [self.volts, right, self.height, left_height, self.speed]
        return [*first, left, right_height, float(self.held >= 0), self.hook]

    def reached(self) -> Any:
        return self.crates

    def is_met(self, achieved: Any, goal: Any) -> Any:
        return (np.abs(achieved - goal) <= self.near).all(-1)


def hoist_script() -> Any:
    task = HoistCrates

    def act(observation: Any) -> Any:
        seen, crates, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        height, speed, is_held, hook = seen[2], seen[4], seen[7] > 0.5, seen[8]
        heights, lacks = seen[[3, 6]], goal - crates
        held = int(np.argmax(heights)) if heights.max() > 0 else int(np.argmin(np.abs(crates - hook)))
        if is_held:
            to, other = lacks[held], abs(crates[1 - held] - goal[held])
            if abs(to) < 25 and abs(speed) < 20:  # down, and let it go
                return np.array([-1, float(height > 20), 0], np.float32)
            is_blocked = other < task.size and height > 200  # the other crate has to leave first
            to = to + (-1 if to > 0 else 1) * 1.3 * task.size if is_blocked and abs(to) < 600 else to
            rise = 1.0 if abs(to) > 60 else 0.0
            pace = np.clip(to, -task.pace, task.pace) if height > 230 or abs(to) < 60 else 0.0
            if is_blocked and abs(to) < 40:
                return np.array([-1, float(height > 20), 0], np.float32)
            return np.clip([rise, 1, (pace - 0.3 * speed) / 91], -1, 1).astype(np.float32)
        is_due = np.abs(lacks) > 45
        is_free = np.abs(crates[::-1] - goal) >= task.size
        choice = int(np.argmax(is_due * (1 + is_free))) if is_due.any() else held
        to = crates[choice] - hook
        is_over = abs(to) < 40 and is_due.any()
        sink, pull = (-1.0 if is_over else 0.0), float(is_over and height < 60 and abs(speed) < 30)
        return np.clip([sink, pull, (0.8 * to - 0.3 * speed) / 91], -1, 1).astype(np.float32)

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
    Task("BarTongs-v0", "grasp", "closed", BarTongs, 50, tongs_script),
    Task("HoistCrates-v0", "several-objects", "closed", HoistCrates, 80, hoist_script),
    Task("WaxBead-v0", "later", "closed", WaxBead, 60, bead_script),
)
