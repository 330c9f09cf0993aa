"""Three tasks of vehicles: a tug with a barge, two drones with a load, and a shunting engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Task
from .spaces import real
from .sparse import Sparse, unit


class TowBarge(Sparse):
    """A tug tows a barge on a rope to a position, in kilometres. An action is a course, in radians, and a throttle."""

    near, rope, hull, pace = 0.06, 0.12, 0.05, 0.035
    low, high = np.array([-0.1, -0.1]), np.array([2.1, 1.6])

    def __init__(self) -> None:
        low, high = np.array([-np.pi, 0], np.float32), np.array([np.pi, 1], np.float32)
        super().__init__(10, 2, spaces.Box(low, high, dtype=np.float32))

    def begin(self, draw: Any) -> None:
        self.barge = self.goal = draw([0.4, 0.4], [1.6, 1.1])
        while not 0.2 < np.linalg.norm(self.goal - self.barge) < 0.6:
            self.goal = draw([0.2, 0.2], [1.8, 1.3])
        self.tug = self.barge + draw(0.07, 0.115) * unit(draw(-np.pi, np.pi))
        self.speed, self.drift = np.zeros(2), np.zeros(2)
        self.course, self.tension = draw(-np.pi, np.pi), 0.0
        self.current = draw(0, 0.001) * unit(draw(-np.pi, np.pi))

    def move(self, action: Any) -> None:
        self.course, thrust = float(action[0]), 0.5 * self.pace * action[1] * unit(action[0])
        self.speed, self.drift, self.tension = 0.5 * self.speed + thrust, 0.8 * self.drift, 0.0
        self.tug, self.barge = self.tug + self.speed + self.current, self.barge + self.drift + self.current
        gap = self.tug - self.barge
        distance = float(np.sqrt(gap @ gap))
        way = gap / max(distance, 1e-9)
        if distance > self.rope:
            pull = (distance - self.rope) * way
            self.tug, self.barge = self.tug - 0.6 * pull, self.barge + 0.4 * pull
            self.drift, self.speed = self.drift + 0.4 * pull, self.speed - 0.4 * pull
            self.tension = 1000 * (distance - self.rope)
        elif distance < self.hull:
            self.tug = self.barge + self.hull * way
        self.tug, self.barge = np.clip(self.tug, self.low, self.high), np.clip(self.barge, self.low, self.high)

    def sensors(self) -> Any:
        (x, y), (vx, vy), (east, north) = self.tug, self.speed, 1000 * self.current
        gap = self.barge - self.tug
        return [east, x, vy, np.sqrt(gap @ gap), *self.barge, self.tension, y, vx, north]

    def reached(self) -> Any:
        return self.barge


def tow_script() -> Any:
    def act(observation: Any) -> Any:
        seen = observation["observation"]
        tug, barge, velocity = seen[[1, 7]], seen[4:6], seen[[8, 2]]
        to = observation["desired_goal"] - barge
        distance, ahead = np.linalg.norm(to), tug - barge
        if distance < 0.02:
            return np.zeros(2, np.float32)
        wish = barge + to / distance * min(0.18, 0.1 + 0.6 * distance) - tug
        if ahead @ to < 0 and np.linalg.norm(ahead) < 0.08:  # around the barge
            side = np.array([-ahead[1], ahead[0]])
            wish = side * (1 if side @ to > 0 else -1)
        wish = wish - 0.5 * velocity
        throttle = np.clip(2 * np.linalg.norm(wish) / TowBarge.pace, 0, 1)
        return np.array([np.arctan2(wish[1], wish[0]), throttle]).clip([-3.14, 0], [3.14, 1]).astype(np.float32)

    return act


class TwinLift(Sparse):
    """Two drones, seen from the side, bring a load on two elastic ropes to a position. A load on the ground ends it.

    Actions are wished velocities of the drones. Success has the reward 1, all else 0.
    """

    near, at_goal, rope, hull = 0.25, 1.0, 1.0, 0.6  # metres
    pace, gravity, part = 1.5, 9.81, 0.05  # metres in a second, seconds
    stiffness = 30.0  # newtons for a metre

    def __init__(self) -> None:
        super().__init__(13, 2, real(4, -self.pace, self.pace), np.float32)

    def begin(self, draw: Any) -> None:
        self.mass, self.is_down = draw(0.3, 0.7), False
        self.load = self.goal = draw([-1.5, 0.8], [1.5, 1.8])
        while not 0.6 < np.linalg.norm(self.goal - self.load) < 2.2:
            self.goal = draw([-2, 0.5], [2, 2.3])
        self.drones = self.load + np.array([[-0.6, 0.85], [0.6, 0.85]])
        self.speeds, self.fall = np.zeros((2, 2)), np.zeros(2)

    def move(self, action: Any) -> None:
        wished = action.reshape(2, 2)
        for _ in range(4):
            ropes = self.drones - self.load
            lengths = np.sqrt((ropes**2).sum(1, keepdims=True))
            pulls = self.stiffness * np.maximum(0.0, lengths - self.rope) * ropes / np.maximum(lengths, 1e-9)
            force = pulls.sum(0) - 1.2 * self.fall
            self.fall = self.fall + self.part * (force / self.mass - [0, self.gravity])
            self.speeds = self.speeds + 0.25 * (wished - self.speeds) - 0.1 * self.part * pulls
            self.load = self.load + self.part * self.fall
            self.drones = np.clip(self.drones + self.part * self.speeds, [-3.5, 0.3], [3.5, 4])
            between = self.drones[1] - self.drones[0]
            distance = float(np.sqrt(between @ between))
            if distance < self.hull:
                shift = 0.5 * (self.hull - distance) / max(distance, 1e-9) * between
                self.drones = self.drones + np.array([-shift, shift])
            self.is_down = self.is_down or self.load[1] <= 0

    def sensors(self) -> Any:
        (left, right), (left_speed, right_speed) = self.drones, self.speeds
        heights = [left[1], right[1], self.load[1]]
        return [self.mass, left[0], right[0], self.load[0], *heights, *left_speed, *self.fall, *right_speed]

    def reached(self) -> Any:
        return self.load

    def is_over(self) -> bool:
        return bool(self.is_down)


def lift_both_script() -> Any:
    def act(observation: Any) -> Any:
        seen, to = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        load, fall = seen[[3, 6]], seen[9:11]
        wish = np.clip(0.9 * to - 0.3 * fall, -0.9, 0.9)
        both = []
        for drone, side in ((seen[[1, 4]], -0.6), (seen[[2, 5]], 0.6)):
            off = load + np.array([side, 0.85]) - drone
            both += [wish[0] + 0.8 * off[0], wish[1] + 0.2 * off[1] + 0.12]
        return np.clip(both, -TwinLift.pace, TwinLift.pace).astype(np.float32)

    return act


class ShuntingYard(Sparse):
    """An engine, which must not pass a signal, hits a wagon, which rolls on and must come to rest at a position.

    Positions are in metres, speeds are observed in kilometres an hour, masses in tonnes; an action is in kilonewtons.
    """

    near, engine_mass, bounce, signal, parts = 12.0, 60.0, 0.5, 30.0, 8
    rolling, fastest, part = 0.08, 7.0, 0.25  # metres and seconds

    def __init__(self) -> None:
        super().__init__(6, 1, real(1, -60, 60))

    def begin(self, draw: Any) -> None:
        self.wagon, self.wagon_mass = draw(-15, 10), draw(20, 40)
        self.engine = self.wagon - draw(5, 35)
        self.goal = self.wagon + draw(60, 220, 1)
        self.speed, self.roll = 0.0, 0.0

    def move(self, action: Any) -> None:
        for _ in range(self.parts):
            thrust = float(action[0]) / self.engine_mass - 0.02 * self.speed
            self.speed = min(max(self.speed + self.part * thrust, -self.fastest), self.fastest)
            slowing = self.part * self.rolling * (1 + 0.1 * self.np_random.normal())
            self.roll = float(np.sign(self.roll)) * max(0.0, abs(self.roll) - slowing)
            self.engine, self.wagon = self.engine + self.part * self.speed, self.wagon + self.part * self.roll
            self._touch()
            if not -70 <= self.engine <= self.signal:
                self.engine, self.speed = min(max(self.engine, -70), self.signal), 0.0

    def _touch(self) -> None:
        if self.engine < self.wagon:
            return
        self.wagon, closing = self.engine, self.speed - self.roll
        if closing > 0:
            blow = (1 + self.bounce) * closing / (1 / self.engine_mass + 1 / self.wagon_mass)
            self.speed, self.roll = self.speed - blow / self.engine_mass, self.roll + blow / self.wagon_mass

    def sensors(self) -> Any:
        return [3.6 * self.roll, self.wagon_mass, self.engine, self.wagon, 3.6 * self.speed, self.signal - self.engine]

    def reached(self) -> Any:
        return [self.wagon]


def shunt_script() -> Any:
    task, is_hit, is_back = ShuntingYard, False, False

    def act(observation: Any) -> Any:
        nonlocal is_hit, is_back
        roll, mass, engine, wagon, speed, _ = observation["observation"] / [3.6, 1, 1, 1, 3.6, 1]
        is_hit = is_hit or roll > 0
        way = float(observation["desired_goal"][0] - wagon)
        if is_hit:
            return np.clip([-30 * speed], -60, 60).astype(np.float32)
        wish = np.sqrt(2 * task.rolling * way) * (task.engine_mass + mass) / task.engine_mass / (1 + task.bounce)
        gap = wagon - engine
        is_back = is_back or gap > 0.6 * wish**2 + 8
        target = wish if is_back else -5.0
        return np.clip([task.engine_mass * ((target - speed) / 2 + 0.02 * target)], -60, 60).astype(np.float32)

    return act


TASKS = (
    Task("TowBarge-v0", "pull", "closed", TowBarge, 60, tow_script),
    Task("TwinLift-v0", "several-bodies", "closed", TwinLift, 60, lift_both_script),
    Task("ShuntingYard-v0", "hit", "closed", ShuntingYard, 60, shunt_script),
)
