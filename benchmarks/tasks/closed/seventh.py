"""A grapple that hangs from a crane lifts a log, and the rake of a croupier pushes a stack of chips."""

from __future__ import annotations

from math import cos, sin

import numpy as np

from ..open.base import Array, GoalTask, unit
from ..task import Observation, Task


class LogGrapple(GoalTask):
    """A grapple swings on the cable of a crane, seen from the front, and carries a log to a place. Lengths are in metres.

    Actions are the wished speed of the trolley, the speed of the hoist, and opening or closing the jaws.
    """

    near, height, inside, outside = 0.15, 3.0, 0.2, 0.32  # height of the rail, reach within and outside the jaws

    def __init__(self) -> None:
        super().__init__(11, 2, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.log, self.fall, self.is_held = np.array([draw(-0.8, 0.8), 0.0]), 0.0, False
        self.trolley, self.speed = float(np.clip(self.log[0] + draw(-0.5, 0.5), -1, 1)), 0.0
        self.cable, self.sway, self.swing = draw(2.2, 2.7), draw(-0.05, 0.05), 0.0
        self.jaws, self.goal = draw(0.6, 1.0), self.log
        while np.linalg.norm(self.goal - self.log) < 0.25:
            height = 0.0 if draw() < 0.5 else draw(0.2, 0.9)
            self.goal = np.array([np.clip(self.log[0] + draw(-0.7, 0.7), -1.1, 1.1), height])

    def grapple(self) -> Array:
        return np.array([self.trolley + self.cable * sin(self.sway), self.height - self.cable * cos(self.sway)])

    def move(self, action: Array) -> None:
        gap = np.abs(self.log - self.grapple())
        is_between = bool(self.jaws > 0.3 and gap[0] <= self.inside and gap[1] < 0.12)
        self.jaws = float(np.clip(self.jaws + 0.4 * action[2], 0.0, 1.0))
        self.is_held = self.jaws <= 0.3 and (self.is_held or is_between)
        wished = 0.8 * action[0] if abs(self.trolley + 0.3 * action[0]) < 1.5 else 0.0  # near its ends, the rail brakes
        for _ in range(4):  # of 0.05 s
            gain = 4.0 * (wished - self.speed)
            self.speed += 0.05 * gain
            self.trolley += 0.05 * self.speed
            self.swing -= 0.05 * ((9.8 * sin(self.sway) + gain * cos(self.sway)) / self.cable + 2.5 * self.swing)
            self.sway += 0.05 * self.swing
        self.cable = min(max(self.cable - 0.14 * action[1], 1.5), self.height / cos(self.sway))  # or it is on the ground
        place = self.grapple()
        self.fall = self.fall + 0.1 if self.log[1] > 0 and not self.is_held else 0.0
        self.log = place if self.is_held else np.array([self.log[0], max(0.0, self.log[1] - self.fall)])
        if not self.is_held and abs(place[1] - self.log[1]) < 0.12:  # the log rolls between the jaws, or out of their way
            gap_x = self.log[0] - place[0]
            is_inside = self.jaws > 0.3 and (is_between or abs(gap_x) <= self.inside)
            reach = min(abs(gap_x), self.inside) if is_inside else max(abs(gap_x), self.outside)
            self.log[0] += np.clip(np.copysign(reach, gap_x) - gap_x, -0.2, 0.2)

    def observe(self) -> Array:
        x, z = self.grapple()
        crane = [self.sway, z, self.trolley, self.log[1], self.speed, x, self.swing]
        return np.array([self.log[0], self.jaws, *crane, self.fall, self.cable])

    def achieved(self) -> Array:
        return self.log.copy()


def carry_log(observation: Observation) -> Array:
    """Hold the open jaws above the log, lower them, close them, and carry the log slowly."""
    log_x, jaws, _, z, _, log_z, speed, x, swing, _, cable = observation["observation"]
    drift = speed + swing * cable
    if jaws <= 0.3 and abs(x - log_x) < 1e-6 and abs(z - log_z) < 1e-6:
        to_x, to_z = observation["desired_goal"] - observation["achieved_goal"]
        return np.clip([1.5 * to_x - 0.3 * drift, to_z / 0.14, -1], -1, 1).astype(np.float32)
    across, down = log_x - x, log_z - z
    is_above = abs(across + 0.2 * drift) < 0.13 and jaws > 0.6
    jaw = -1.0 if abs(across) < 0.18 and abs(down) < 0.08 else 1.0
    lift = down if is_above or jaw < 0 else max(0.3 + down, 0.0)
    return np.clip([1.5 * across - 0.3 * drift, lift / 0.14, jaw], -1, 1).astype(np.float32)


class CroupierRake(GoalTask):
    """A rake slides through a pivot at the edge of a table, turns, and pushes a stack of chips with its head.

    The head is a bar across the handle. Lifted, it passes above the stack. Lengths are in centimetres. Actions turn, extend
    and lift the rake.
    """

    near, radius, half, top = 4.0, 5.0, 5.0, 4.0  # of stack and bar together, half the bar, height of the stack
    most = np.array([0.08, 4.0, 2.5])  # radians and centimetres in a step

    def __init__(self) -> None:
        super().__init__(12, 2, 3)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.stack = self.goal = draw(32, 58) * unit(draw(-0.5, 0.5))
        while not 9 < np.linalg.norm(self.goal - self.stack) < 22:
            self.goal = draw(30, 60) * unit(draw(-0.55, 0.55))
        distance, bearing = np.linalg.norm(self.stack), np.arctan2(self.stack[1], self.stack[0])
        away = draw(11, 15) * unit(draw(-np.pi, np.pi))
        self.rake = np.array([bearing + away[1] / distance, distance + away[0], draw(0, 6)])  # angle, reach and height
        self.motion, self.shift = np.zeros(3), np.zeros(2)

    def move(self, action: Array) -> None:
        self.motion = 0.4 * self.motion + 0.6 * self.most * action
        before = self.stack
        for _ in range(4):
            was_above = self.rake[2] >= self.top
            self.rake = np.clip(self.rake + self.motion / 4, [-1.0, 15.0, 0.0], [1.0, 75.0, 8.0])
            gap, across = self.stack - self.rake[1] * unit(self.rake[0]), unit(self.rake[0] + np.pi / 2)
            gap = gap - np.clip(gap @ across, -self.half, self.half) * across  # from the nearest point of the bar
            distance = max(float(np.linalg.norm(gap)), 1e-6)
            if distance < self.radius and self.rake[2] < self.top and was_above:
                self.rake[2] = self.top  # a head that is lowered onto the stack rests there
            elif distance < self.radius and self.rake[2] < self.top:
                self.stack = self.stack + gap * (self.radius / distance - 1)
        self.shift = self.stack - before

    def observe(self) -> Array:
        head = self.rake[1] * unit(self.rake[0])
        return np.array([self.rake[2], *self.stack, *self.motion, *head, *self.rake[:2], *self.shift])

    def achieved(self) -> Array:
        return self.stack.copy()


def rake_stack(observation: Observation) -> Array:
    """Push the stack along the handle or across it, where more is missing, and pass above it in between."""
    seen, goal, task = observation["observation"], observation["desired_goal"], CroupierRake
    height, motion, stack = seen[0], seen[3:6], seen[1:3]
    reach, bearing = np.linalg.norm(stack), np.arctan2(stack[1], stack[0])
    missing = np.array([(np.arctan2(goal[1], goal[0]) - bearing) * reach, np.linalg.norm(goal) - reach])  # across, along
    gap = np.array([(seen[8] - bearing) * reach, seen[9] - reach])
    behind = np.copysign([task.half + task.radius, task.radius], -missing)
    ready = (gap / behind > 1 - 0.7 / np.abs(behind)) & (np.abs(gap[::-1]) < [1.2, 2.5])  # behind it, in the middle
    useful = ready & (np.abs(missing) > 1.5) & (height < task.top)
    axis = int(np.argmax(np.abs(missing) * (1 + 10 * useful)))
    to = np.where(np.arange(2) == axis, behind + 2.0 * np.sign(behind), 0.0) - gap
    is_there = np.abs(to).max() < 1.0
    if np.linalg.norm(goal - stack) < 2:
        wish = np.array([0.0, 0.0, 8.0 - height])
    elif useful[axis]:
        to[axis] = missing[axis] + behind[axis] - gap[axis]
        wish = np.array([*to, -height])
    else:
        wish = np.array([*(to if is_there or height > task.top + 0.5 else 0 * to), -height if is_there else 7 - height])
    wish[0] /= reach
    return np.clip((wish - 0.4 * motion) / (0.6 * task.most), -1, 1).astype(np.float32)


TASKS = (
    Task("LogGrapple-v0", "grasp", "closed", LogGrapple, 60, lambda: carry_log),
    Task("CroupierRake-v0", "push", "closed", CroupierRake, 60, lambda: rake_stack),
)
