"""Four more tasks, of four families."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..task import Task
from .spaces import around, real
from .sparse import Sparse, unit


class _GoalEnv(Sparse):
    """Each action is from -1 to 1."""

    def __init__(self, n_observed: int, n_goal: int, n_action: int, dtype: Any = np.float64) -> None:
        super().__init__(n_observed, n_goal, real(n_action, -1, 1), dtype)


class SpringBroom(_GoalEnv):
    """A brush on a spring, ahead of a carriage, pushes a puck over a tilted table. An action is its target."""

    near, contact, pace = 20.0, 40.0, 32.0  # millimetres; of the carriage in a step
    middle, half, offset = np.array([260.0, 140.0]), np.array([320.0, 220.0]), np.array([0.0, 45.0])
    stiffness, damping = 0.3, 0.55
    friction, slope = 1.5, np.array([0.5, 0.0])  # millimetres for each part of a step, squared

    def __init__(self) -> None:
        super().__init__(11, 2, 2, np.float32)

    def begin(self, draw: Any) -> None:
        self.puck = self.goal = draw([60, 30], [400, 240])
        while not 70 < np.linalg.norm(self.goal - self.puck) < 220:
            self.goal = draw([150, 40], [480, 270])
        self.brush = self.puck
        while not 60 < np.linalg.norm(self.brush - self.puck) < 130:
            self.brush = draw([0, -20], [520, 330])
        self.carriage = self.brush - self.offset
        self.velocity, self.slide = np.zeros(2), np.zeros(2)

    def move(self, action: Any) -> None:
        way = self.middle + self.half * action - self.carriage
        self.carriage = self.carriage + way * min(1.0, self.pace / max(float(np.sqrt(way @ way)), 1e-9))
        for _ in range(3):
            self.velocity = (1 - self.damping) * self.velocity - self.stiffness * self._stretch()
            self.brush = self.brush + self.velocity
            self._slide()

    def _stretch(self) -> Any:
        return self.brush - self.carriage - self.offset

    def _slide(self) -> None:
        before, speed = self.puck, float(np.sqrt(self.slide @ self.slide))
        if speed > 0:
            self.slide = self.slide * max(0.0, 1 - self.friction / speed) + self.slope * (speed > self.friction)
        self.puck = self.puck + self.slide
        gap = self.puck - self.brush
        distance = float(np.sqrt(gap @ gap))
        if distance < self.contact:
            self.puck = self.brush + gap / max(distance, 1e-9) * self.contact
            self.slide = 0.5 * (self.puck - before)
        self.puck = np.clip(self.puck, [-20, -20], [540, 330])

    def sensors(self) -> Any:
        gap = self.puck - self.brush + self.np_random.normal(0, 0.5, 2)
        stretch = self._stretch()
        (x, y), (vx, vy), slide = self.carriage, self.velocity, self.slide
        return [gap[1], x, stretch[0], self.puck[0], vy, gap[0], y, stretch[1], self.puck[1], vx, slide[0] + slide[1]]

    def reached(self) -> Any:
        return self.puck


def broom_script() -> Any:
    def act(observation: Any) -> Any:
        seen, puck, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        brush, carriage = puck - seen[[5, 0]], seen[[1, 6]]
        to, gap = goal - puck, puck - brush
        if np.linalg.norm(to) < 12:
            target = carriage - 10 * gap / np.linalg.norm(gap)
        else:
            step = float(np.clip(0.3 * np.linalg.norm(to), 8, 25))
            target = brush + around(brush, puck, goal, SpringBroom.contact, step) - SpringBroom.offset
        return np.clip((target - SpringBroom.middle) / SpringBroom.half, -1, 1).astype(np.float32)

    return act


class TurretPick(_GoalEnv):
    """An arm that swings, reaches out and lifts takes a standing peg with its jaw, and brings it to a position.

    Its own columns are in degrees and millimetres, the goal is in millimetres along x, y and z.
    """

    near, capture, widest = 25.0, 28.0, 60.0
    most = np.array([7.0, 25.0, 25.0, 20.0])  # degrees and millimetres in a step
    low, high = np.array([-40.0, 110, 0, 5]), np.array([120.0, 440, 260, widest])

    def __init__(self) -> None:
        super().__init__(13, 3, 4)

    def begin(self, draw: Any) -> None:
        self.thickness, self.fall, self.is_held = draw(20, 40), 0.0, False
        swing, reach = draw(-10, 90), draw(170, 380)
        self.peg = self.goal = np.array([*reach * unit(np.radians(swing)), 0.0])
        while not 60 < np.linalg.norm(self.goal - self.peg) < 220:
            height = draw(60, 180) if draw(0, 1) < 0.5 else 0.0
            self.goal = np.array([*draw(160, 400) * unit(np.radians(draw(-20, 105))), height])
        self.arm = np.array([swing + draw(-6, 6), reach + draw(-30, 30), draw(0, 40), draw(15, self.widest)])

    def _tool(self) -> Any:
        return np.array([*self.arm[1] * unit(np.radians(self.arm[0])), self.arm[2]])

    def move(self, action: Any) -> None:
        was_wide = self.arm[3] >= self.thickness
        self.arm = np.clip(self.arm + self.most * action, self.low, self.high)
        gap, width = self.peg - self._tool(), self.arm[3]
        distance = float(np.sqrt(gap[:2] @ gap[:2]))
        is_around = distance < self.capture and abs(gap[2]) < 28
        if self.is_held or (is_around and was_wide and width < self.thickness):
            self.is_held = width < self.thickness + 6
        if self.is_held:
            self.arm[3], self.fall = max(width, self.thickness), 0.0
            self.peg = self._tool()
            return
        if is_around and width < self.thickness:  # a closed jaw pushes the peg
            self.peg[:2] += gap[:2] / max(distance, 1e-9) * (self.capture - distance)
        self.fall = self.fall + 8 if self.peg[2] > 0 else 0.0
        self.peg[2] = max(0.0, self.peg[2] - self.fall)

    def sensors(self) -> Any:
        gap, (cosine, sine) = self.peg - self._tool(), unit(np.radians(self.arm[0]))
        ahead, aside = cosine * gap[0] + sine * gap[1], cosine * gap[1] - sine * gap[0]
        current = float(self.is_held) + 0.03 * self.np_random.normal()
        (swing, reach, height, width), (x, y, z) = self.arm, self.peg
        first = [self.thickness, swing, ahead, height, x, width, aside]
        return [*first, reach, gap[2], y, current, z, self.fall]

    def reached(self) -> Any:
        return self.peg


def turret_script() -> Any:
    def act(observation: Any) -> Any:
        seen, goal = observation["observation"], observation["desired_goal"]
        (thickness, width, aside, reach), (ahead, down, current) = seen[[0, 5, 6, 7]], seen[[2, 8, 10]]
        if current > 0.5:
            swing = np.degrees(np.arctan2(goal[1], goal[0])) - seen[1]
            way = [swing, np.hypot(goal[0], goal[1]) - reach, goal[2] - seen[3], -1]
        else:
            is_over, is_open = np.hypot(ahead, aside) < 15, width > thickness
            is_around = is_over and is_open and abs(down) < 18
            lower = down if is_over and is_open else max(down + 50, 0)
            way = [np.degrees(aside / reach), ahead, lower, -20 if is_around else 20]
        return np.clip(np.array(way) / TurretPick.most, -1, 1).astype(np.float32)

    return act


class ShelfCrawler(_GoalEnv):
    """A crawler leaves the rail of a shelf and swims to a position in the deep; there its ballast lifts or sinks it."""

    near, drive, pump, lift = 0.08, 0.02, 0.1, 0.03
    low, high = np.array([-0.9, -0.9]), np.array([1.3, 0.25])

    def __init__(self) -> None:
        super().__init__(8, 2, 2)

    def begin(self, draw: Any) -> None:
        self.at, self.velocity = np.array([draw(-0.8, -0.2), 0.0]), np.zeros(2)
        self.ballast, self.salt, self.volts = draw(0, 1), draw(30, 38), draw(23, 25)
        self.goal = self.at
        while np.linalg.norm(self.goal - self.at) < 0.25:
            is_deep = draw(0, 1) < 0.85
            self.goal = draw([0.2, -0.75], [1.1, 0.15]) if is_deep else np.array([draw(-0.8, -0.1), 0.0])

    def move(self, action: Any) -> None:
        self.ballast = float(np.clip(self.ballast + self.pump * action[0], 0, 1))
        neutral = 0.5 + 0.04 * (self.salt - 34)
        lift = self.lift * (neutral - self.ballast) if self.at[0] >= 0 else 0.0
        velocity = np.array([0.7, 0.75]) * self.velocity + [self.drive * action[1], lift]
        at = np.clip(self.at + velocity, self.low, self.high)
        if at[0] < 0 <= self.at[0] and abs(at[1]) > 0.06:  # the face of the shelf, above or below the rail
            at[0] = 0.0
        if at[0] < 0:
            at[1] = 0.0
        self.velocity, self.at = at - self.at, at
        self.volts -= 0.003

    def sensors(self) -> Any:
        pressure = 101.3 - 10 * self.at[1] + 0.05 * self.np_random.normal()  # kilopascals
        return [pressure, self.ballast, self.at[0], self.velocity[1], self.volts, self.at[1], self.salt, self.velocity[0]]

    def reached(self) -> Any:
        return self.at


def crawler_script() -> Any:
    task = ShelfCrawler

    def act(observation: Any) -> Any:
        _, ballast, x, rise, _, z, salt, speed = observation["observation"]
        to = observation["desired_goal"] - [x, z]
        neutral, wish = 0.5 + 0.04 * (salt - 34), 0.0
        if x >= 0:
            wish = float(np.clip((np.clip(0.12 * to[1], -0.04, 0.04) - 0.75 * rise) / task.lift, -0.4, 0.4))
        drive = (0.3 * to[0] - 0.7 * speed) / task.drive
        return np.clip([(neutral - wish - ballast) / task.pump, drive], -1, 1).astype(np.float32)

    return act


class SheepDog(_GoalEnv):
    """A dog drives three sheep, which flee from it and keep together, until the middle of the flock is at a position."""

    near, sight, pace = 4.0, 12.0, 1.6  # metres; of the dog in a step

    def __init__(self) -> None:
        super().__init__(10, 2, 2, np.float32)

    def begin(self, draw: Any) -> None:
        middle = draw([15, 10], [38, 28])
        self.sheep, self.speed = middle + draw(-3, 3, (3, 2)), np.zeros(2)
        self.goal = self.dog = middle
        while not 8 < np.linalg.norm(self.goal - middle) < 18:
            self.goal = draw([12, 8], [52, 30])
        while not 12 < np.linalg.norm(self.dog - middle) < 20:
            self.dog = draw([0, 0], [60, 40])

    def move(self, action: Any) -> None:
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action
        self.dog = np.clip(self.dog + self.speed, [-8, -8], [68, 48])
        away = self.sheep - self.dog
        distance = np.sqrt((away**2).sum(1, keepdims=True)) + 1e-6
        flight = 1.8 * away / distance * np.maximum(0.0, 1 - distance / self.sight)
        apart = self.sheep[:, None] - self.sheep
        crowd = (apart * np.maximum(0.0, 3 - np.sqrt((apart**2).sum(-1, keepdims=True)))).sum(1)
        together = 0.12 * (self.sheep.mean(0) - self.sheep)
        wander = self.np_random.normal([0.02, 0.01], 0.06, (3, 2))  # they graze towards the far corner
        self.sheep = np.clip(self.sheep + flight + together + 0.1 * crowd + wander, [0, 0], [60, 40])

    def sensors(self) -> Any:
        return [*(self.sheep[:, 0] - self.dog[0]), *self.dog, *(self.sheep[:, 1] - self.dog[1]), *self.speed]

    def reached(self) -> Any:
        return self.sheep.mean(0)


def dog_script() -> Any:
    def act(observation: Any) -> Any:
        dog, flock = observation["observation"][3:5], observation["achieved_goal"]
        gap = dog - flock
        to = observation["desired_goal"] - flock
        if np.linalg.norm(to) < 1.5:
            move = gap if np.linalg.norm(gap) < 12 else np.zeros(2)
        else:
            move = around(dog, flock, observation["desired_goal"], 9.0, SheepDog.pace)
        return np.clip(move / SheepDog.pace, -1, 1).astype(np.float32)

    return act


TASKS = (
    Task("SpringBroom-v0", "push", "closed", SpringBroom, 70, broom_script),
    Task("TurretPick-v0", "grasp", "closed", TurretPick, 50, turret_script),
    Task("ShelfCrawler-v0", "later", "closed", ShelfCrawler, 80, crawler_script),
    Task("SheepDog-v0", "several-objects", "closed", SheepDog, 90, dog_script),
)
