"""A pawn, a drone and windows, a bolt, a brush, and a pump room: tasks that were looked at."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, push_out, toward_push, unit


class PawnSlide(SizedTask):
    """A stylus on a gantry slides a pawn over a chessboard. Squares are 50 mm wide.

    The pawn is given in squares, the stylus in millimetres. A stylus that is higher than the pawn passes over it.
    """

    numbers, thing, near = (10, 2, 3), "pawn", 0.5
    square, tall, radius, fastest = 50.0, 45.0, 28.0, np.array([28.0, 28.0, 20.0])

    def begin(self) -> None:
        self.pawn, self.tip, self.speed = self.place(1.5, 6.5), self.place([0, 0, 5], [400, 400, 60], 3), np.zeros(3)
        while np.linalg.norm(self.tip[:2] - self.square * self.pawn) < 45:
            self.tip[:2] = self.place(0, 400)
        self.goal, self.room = self.pawn, self.np_random.uniform(18, 26)
        while np.linalg.norm(self.goal - self.pawn) < 1.2:
            self.goal = self.place(0.8, 7.2)

    def move(self, action: Array) -> None:
        before, pawn = self.tip, self.square * self.pawn
        self.speed = 0.3 * self.speed + 0.7 * self.fastest * action
        for part in (0.5, 1.0):
            self.tip = np.clip(before + part * self.speed, [0, 0, 2], [400, 400, 80])
            if self.tip[2] < self.tall:
                pawn = pawn + push_out(pawn, self.tip[:2], self.radius)
        self.speed, self.pawn = self.tip - before, np.clip(pawn / self.square, 0.5, 7.5)

    def observe(self) -> Array:
        room = self.room + self.np_random.normal(0, 0.2)
        return np.array([*self.pawn, self.tip[2], *self.tip[:2], *self.speed, self.tip[2] < self.tall, room])


def slide_pawn() -> Any:
    def act(observation: Observation) -> Array:
        seen, size = observation["observation"], PawnSlide.square
        way = toward_push(seen[3:5], size * seen[:2], size * observation["desired_goal"], PawnSlide.radius, 20.0)
        wanted = way / max(1.0, float(np.linalg.norm(way)) / 24)
        return clipped(*((wanted - 0.3 * seen[5:7]) / (0.7 * 28)), (20 - seen[2]) / 20)

    return act


class WindowDrone(SizedTask):
    """A drone flies through windows in two walls of a hall of 10 by 6 by 4 metres. The actions are wished speeds.

    The windows are on opposite sides, one low and one high. The drone sees how far the next wall along x is on either side.
    """

    numbers, thing, near = (10, 3, 3), "at", 0.4
    size, walls, half, fastest = np.array([10.0, 6.0, 4.0]), (3.4, 6.6), 0.8, 0.5
    windows = ((1.4, 1.1), (4.4, 2.7))  # their centres along y and z

    def begin(self) -> None:
        self.at, self.speed, self.volts = self.place(0.4, self.size - 0.4, 3), np.zeros(3), self.np_random.uniform(11, 12.6)
        self.goal = self.at
        while np.linalg.norm(self.goal - self.at) < 1.5 or np.abs(np.subtract(self.walls, self.goal[0])).min() < 0.3:
            self.goal = self.place(0.4, self.size - 0.4, 3)

    def move(self, action: Array) -> None:
        self.speed = 0.5 * self.speed + 0.5 * self.fastest * action
        before, self.volts = self.at, self.volts - 0.01
        to = np.clip(before + self.speed, 0.1, self.size - 0.1)
        for wall, (y, z) in zip(self.walls, self.windows, strict=True):
            is_open = max(abs(to[1] - y), abs(to[2] - z)) < self.half
            if (before[0] < wall) != (to[0] < wall) and not is_open:
                to[0] = before[0]
        self.at, self.speed = to, to - before

    def observe(self) -> Array:
        ends = np.array([0, *self.walls, self.size[0]])
        room = int(np.searchsorted(ends[1:-1], self.at[0], side="right"))
        ranges = np.array([self.at[0] - ends[room], ends[room + 1] - self.at[0]]) + self.np_random.normal(0, 0.02, 2)
        (x, y, z), noisy = self.at, self.volts + self.np_random.normal(0, 0.05)
        return np.array([z, x, y, *self.speed, *ranges, room, noisy])


def fly_through() -> Any:
    task = WindowDrone

    def act(observation: Observation) -> Array:
        at, to, speed = observation["achieved_goal"], observation["desired_goal"], observation["observation"][3:6]
        here, there = (int(np.searchsorted(task.walls, place[0], side="right")) for place in (at, to))
        if here != there:
            step = 1 if there > here else -1
            number = here if step > 0 else here - 1
            window = np.array([task.walls[number], *task.windows[number]])
            off = float(np.abs(at[1:] - window[1:]).max())
            to = window + np.array([0.6 * step if off < 0.5 else -0.4 * step, 0, 0])
        way = to - at
        wanted = 0.6 * way / max(1.0, 0.6 * float(np.abs(way).max()) / 0.5)
        return clipped(*((wanted - 0.5 * speed) / 0.25))

    return act


class BoltGantry(SizedTask):
    """A gantry with a gripper picks up a bolt from a bench and brings it to a place on or above the bench, in millimetres.

    Actions: speeds in x, y and z, and of the jaws (1 opens). A closed gripper near the bench pushes the bolt aside.
    """

    numbers, thing, near = (11, 3, 4), "bolt", 20.0
    speed, jaws, width = 30.0, 15.0, 20.0  # millimetres in a step, of the gantry and of the jaws; width of the bolt
    low, high = np.array([0.0, 0.0, 0.0]), np.array([400.0, 400.0, 200.0])

    def begin(self) -> None:
        self.bolt = np.append(self.place(100, 300), 0.0)
        self.hand = self.bolt + self.place([-50, -50, 15], [50, 50, 75], 3)
        self.gap, self.is_held, self.velocity = float(self.np_random.uniform(20, 50)), False, np.zeros(3)
        height = self.np_random.uniform(30, 150) if self.np_random.random() < 0.5 else 0.0
        self.goal = np.append(
            self.bolt[:2] + self.np_random.uniform(40, 120) * unit(self.np_random.uniform(-np.pi, np.pi)), height
        )

    def move(self, action: Array) -> None:
        before, offset = self.hand, np.abs(self.bolt - self.hand)
        is_between = bool((offset[:2] < 14).all() and offset[2] < 15)
        is_open = self.gap > self.width
        self.gap = float(np.clip(self.gap + self.jaws * action[3], 0, 50))
        self.is_held = self.gap <= self.width and (self.is_held or (is_between and is_open))
        if self.is_held:
            self.gap = self.width
        self.hand = np.clip(before + self.speed * action[:3], self.low, self.high)
        self.velocity = self.hand - before
        if self.is_held:
            self.bolt = np.clip(self.bolt + self.velocity, self.low, self.high)
            return
        self.bolt[2] = max(0.0, self.bolt[2] - 40)
        if self.gap < self.width and self.hand[2] < 15 and self.bolt[2] < 15:
            self.bolt[:2] = np.clip(self.bolt[:2] + push_out(self.bolt[:2], self.hand[:2], 18), 0, 400)

    def observe(self) -> Array:
        load = 3.0 * self.is_held + self.np_random.normal(0, 0.1)  # newtons
        return np.array([self.gap, *self.bolt[::-1], *self.hand[::-1], load, *self.velocity])


def gantry_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        gap, bolt, hand = seen[0], seen[3:0:-1], seen[6:3:-1]
        if seen[7] > 1.5:
            return clipped(*(observation["desired_goal"] - bolt) / BoltGantry.speed, -1)
        way = bolt - hand
        is_above = np.abs(way[:2]).max() < 5
        if is_above and abs(way[2]) < 5 and gap > 25:
            return clipped(0, 0, 0, -1)
        height = (way[2] if gap > 35 else 0.0) if is_above else bolt[2] + 45 - hand[2]
        if not is_above and hand[2] < 30:
            way = np.zeros(3)
        return clipped(*way[:2] / BoltGantry.speed, height / BoltGantry.speed, 1)

    return act


class PaintDot(SizedTask):
    """A brush is dipped into a pot and paints a dot at a place of a canvas. The achieved goal is the newest dot.

    Actions: motion of the brush, and pressing it on the canvas (above 0.5). Paint on the brush dries up.
    """

    numbers, thing, near = (7, 2, 3), "dot", 0.06
    reach, tray = 0.12, 0.2  # of the pot; width of the tray beside the canvas

    def begin(self) -> None:
        self.brush, self.pot = self.place([0.25, 0.05], [0.95, 0.95]), np.array([0.08, self.np_random.uniform(0.2, 0.8)])
        self.wet = float(self.np_random.uniform(0.5, 1)) if self.np_random.random() < 0.3 else 0.0
        self.dot, self.goal = self.place([0.25, 0.05], [0.95, 0.95]), self.place([0.25, 0.05], [0.95, 0.95])
        while np.linalg.norm(self.dot - self.goal) < 2 * self.near:
            self.goal = self.place([0.25, 0.05], [0.95, 0.95])

    def move(self, action: Array) -> None:
        self.brush = np.clip(self.brush + 0.07 * action[:2], 0, 1)
        self.wet = max(0.0, self.wet - 0.03)
        if np.linalg.norm(self.brush - self.pot) < self.reach:
            self.wet = 1.0
        elif action[2] > 0.5 and self.wet > 0.1 and self.brush[0] > self.tray:
            self.dot, self.wet = self.brush.copy(), max(0.0, self.wet - 0.1)

    def observe(self) -> Array:
        return np.array([*self.dot, self.wet, *self.brush, *(self.pot - self.brush)])


def paint_script() -> Any:
    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], observation["desired_goal"]
        if np.linalg.norm(seen[:2] - goal) < PaintDot.near:
            return np.array([0, 0, -1], np.float32)
        way = goal - seen[3:5]
        has_paint = seen[2] > 0.15 + 0.03 * np.abs(way).max() / 0.07
        if not has_paint:
            way = seen[5:]
        return clipped(*way / 0.07, 1 if has_paint and np.abs(way).max() < 0.08 else -1)

    return act


class PumpRoom(SizedTask):
    """A robot sets a valve, in percent, and carries a crate to a place of the pump room, in metres.

    Actions: speeds, and the tool: it holds the crate if it is above 0.3, or else turns the valve if the robot is at it.
    """

    numbers = (10, 3, 3)
    size, valve = np.array([4.0, 3.0]), np.array([3.6, 1.5])
    near_valve, near_crate = 8.0, 0.2

    def begin(self) -> None:
        self.crate, self.robot = self._spot(), self.place(0.2, self.size - 0.2)
        self.percent, self.carries, self.velocity = float(self.np_random.uniform(0, 100)), False, np.zeros(2)
        percent, to = self.percent if self.np_random.random() < 0.35 else self.np_random.uniform(0, 100), self._spot()
        while np.linalg.norm(to - self.crate) < 0.5:
            to = self._spot()
        self.goal, self.pressure = np.array([percent, *to]), float(self.np_random.uniform(2, 4))

    def _spot(self) -> Array:
        return self.place([0.3, 0.3], [2.6, 2.7])

    def move(self, action: Array) -> None:
        before, tool = self.robot, float(action[2])
        self.carries = bool(tool > 0.3 and np.linalg.norm(self.crate - self.robot) < 0.32)
        self.robot = np.clip(before + 0.16 * action[:2], 0, self.size)
        self.velocity = self.robot - before
        if self.carries:
            self.crate = np.clip(self.crate + self.velocity, 0, self.size)
        elif np.linalg.norm(self.robot - self.valve) < 0.5:
            self.percent = float(np.clip(self.percent + 15 * tool, 0, 100))

    def observe(self) -> Array:
        self.pressure += float(self.np_random.normal(0, 0.02))  # bar
        place = [*self.robot, *self.velocity, self.percent / 100, *self.crate]
        return np.array([*place, float(self.carries), self.pressure, float(np.linalg.norm(self.valve - self.robot))])

    def achieved(self) -> Array:
        return np.array([self.percent, *self.crate])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.abs(gap[..., 0]) <= self.near_valve) & (np.linalg.norm(gap[..., 1:], axis=-1) <= self.near_crate)


def pump_script() -> Any:
    def act(observation: Observation) -> Array:
        robot, lack = observation["observation"][:2], observation["desired_goal"] - observation["achieved_goal"]
        if abs(lack[0]) > 5:
            way = PumpRoom.valve - robot
            return clipped(*way / 0.16, lack[0] / 15 if np.linalg.norm(way) < 0.3 else 0)
        if np.linalg.norm(lack[1:]) < 0.1:
            return np.zeros(3, np.float32)
        way = observation["achieved_goal"][1:] - robot
        if np.linalg.norm(way) < 0.2:
            return clipped(*lack[1:] / 0.16, 1)
        return clipped(*way / 0.16, 0)

    return act


TASKS: tuple[Task, ...] = (
    Task("PawnSlide-v0", "push", "open", PawnSlide, 50, slide_pawn),
    Task("WindowDrone-v0", "obstacles", "open", WindowDrone, 60, fly_through),
    Task("BoltGantry-v0", "grasp", "open", BoltGantry, 50, gantry_script),
    Task("PaintDot-v0", "later", "open", PaintDot, 60, paint_script),
    Task("PumpRoom-v0", "several-objects", "open", PumpRoom, 80, pump_script),
)
