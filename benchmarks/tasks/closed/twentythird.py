"""Three closed tasks: a hoop, a cork, and toy boats."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, push_out
from ..task import Observation, Task


class HoopPeg(OwnUnits):
    """A peg moves a flat hoop over a table to a place, in millimetres. Lowered into the hoop, it drags it from within.

    The rim is 20 high; a peg above it passes over. Actions: steps of the peg in millimetres, to the right, ahead and up.
    """

    numbers, thing, near = (6, 2, 3), "hoop", 20.0
    limits = (-25.0, -25.0, -10.0), (25.0, 25.0, 10.0)
    table, rim, radius, half_wall = np.array([600.0, 400.0]), 20.0, 70.0, 10.0

    def begin(self) -> None:
        self.hoop, self.height = self.place(80, self.table - 80), float(self.np_random.uniform(20, 40))
        self.goal = self.peg = self.hoop
        while not 100 < np.linalg.norm(self.goal - self.hoop) < 350:
            self.goal = self.place(80, self.table - 80)
        while not 100 < np.linalg.norm(self.peg - self.hoop) < 250:
            self.peg = self.place(0, self.table)

    def move(self, action: Array) -> None:
        was_low, was_inside = self.height < self.rim, np.linalg.norm(self.peg - self.hoop) < self.radius
        self.peg = np.clip(self.peg + self.half[:2] * action[:2], 0, self.table)
        self.height = float(np.clip(self.height + self.half[2] * action[2], 0, 40))
        gap = self.peg - self.hoop
        distance = float(np.linalg.norm(gap))
        if self.height >= self.rim:
            return
        if not was_low:  # it comes down inside, outside, or on the rim
            self.height = self.rim if abs(distance - self.radius) < self.half_wall else self.height
            return
        limit = self.radius + self.half_wall * (-1 if was_inside else 1)
        kept = min(distance, limit) if was_inside else max(distance, limit)
        ahead = gap / max(distance, 1e-9)
        self.hoop = np.clip(self.peg - kept * ahead, 80, self.table - 80)
        self.peg = self.peg if kept == distance else self.hoop + kept * ahead

    def observe(self) -> Array:
        light = self.np_random.normal(300, 20)  # lux
        return np.array([*self.peg, light, *(self.hoop - self.peg), self.height])


def drag_hoop() -> Any:
    """Come down in the middle of the hoop, and drag."""

    def act(observation: Observation) -> Array:
        seen, (hoop, goal) = observation["observation"], (observation[key] for key in ("achieved_goal", "desired_goal"))
        gap, height, way = seen[3:5], seen[5], goal - hoop
        off, far = float(np.linalg.norm(gap)), float(np.linalg.norm(way))
        if height < HoopPeg.rim and off < HoopPeg.radius:
            to, up = gap + way + 60 * way / max(far, 1e-9) if far > 6 else np.zeros(2), -10.0
        else:
            to, up = gap, 10.0 if off > 30 else -10.0
        return np.array([*np.clip(to / max(1.0, float(np.abs(to).max()) / 25), -25, 25), up], np.float32)

    return act


class CorkLift(OwnUnits):
    """A corkscrew above a bench draws the cork of a bottle out by some millimetres, or presses it back.

    The screw bites only above the cork, and it holds a pull by its depth only; else it tears out. Actions: a step to the
    side in millimetres, a force upwards in newtons, and turns to the right.
    """

    numbers, thing, near = (5, 1, 3), "cork", 1.5
    limits = (-8.0, -100.0, -1.0), (8.0, 100.0, 1.0)
    pitch, deep, firm, stiction = 6.0, 35.0, 12.0, 0.3

    def begin(self) -> None:
        self.bottle = float(self.np_random.uniform(-30, 30))
        self.side = self.bottle + float(self.np_random.uniform(-20, 20))
        self.cork, self.tip, self.goal = 0.0, float(self.np_random.uniform(2, 15)), self.place(6, 30, 1)

    def move(self, action: Array) -> None:
        side, lift, turn = (float(part) for part in action)
        if self.tip >= self.cork:
            self.side = float(np.clip(self.side + 8 * side, -50, 50))
            self.tip = float(np.clip(self.tip + 6 * lift, self.cork, 45))
            if self.tip == self.cork and abs(self.side - self.bottle) < 10:
                self.tip -= self.pitch * max(0.0, turn)
            return
        depth = float(np.clip(self.cork - self.tip + self.pitch * turn, 0, self.deep))
        if lift > self.stiction and depth < self.firm * lift:
            depth = max(0.0, depth - 2 * lift)
        elif abs(lift) > self.stiction and depth > 0:
            self.cork = float(np.clip(self.cork + 3 * lift - 0.6 * np.sign(lift), 0, 40))
        self.tip = self.cork - depth

    def observe(self) -> Array:
        depth = max(0.0, self.cork - self.tip)
        return np.array([depth, self.side, self.np_random.normal(12, 0.3), self.tip, self.bottle])


def draw_cork() -> Any:
    """Come down upon the cork, screw deep, and pull by what is missing."""

    def act(observation: Observation) -> Array:
        (depth, side, _, _, bottle), cork = observation["observation"], float(observation["achieved_goal"][0])
        missing = float(observation["desired_goal"][0]) - cork
        if depth <= 0:
            is_above = abs(side - bottle) < 6
            return np.array([np.clip(bottle - side, -8, 8), -100 if is_above else 0, is_above], np.float32)
        if depth < 1.1 * CorkLift.firm or abs(missing) < 0.7:
            return np.array([0, 0, depth < 1.1 * CorkLift.firm], np.float32)
        return np.array([0, np.sign(missing) * np.clip(100 * (abs(missing) + 0.6) / 3, 42, 100), 0], np.float32)

    return act


class ToyBoats(SizedTask):
    """One remote control drives two toy boats on a pond, each to its place, in metres. The wind drifts both.

    An action is one of eight thrusts: to the east, west, north and south for one boat, and the same for the other.
    """

    numbers, thing, near = (10, 4, 4), "boats", 0.7
    pond, thrust, keel, radius = np.array([12.0, 8.0]), 0.16, 0.7, 0.5

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(8)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        wish = np.zeros(4)
        wish[2 * (int(action) // 4) + int(action) % 4 // 2] = 1 - 2 * (int(action) % 2)
        return super().step(wish)

    def begin(self) -> None:
        self.wind = self.place(-0.006, 0.006)
        self.places, self.rates = (
            np.array([[2.0, 1.0], [10.0, 1.0]]) + self.place(-0.5, 0.5, 4).reshape(2, 2),
            np.zeros((2, 2)),
        )
        goals = np.zeros((2, 2))
        while np.linalg.norm(goals[0] - goals[1]) < 2 or np.linalg.norm(goals - self.places, axis=1).min() < 2:
            goals = np.array([self.place(1, self.pond - 1), self.place(1, self.pond - 1)])
        self.goal = goals.ravel()

    @property
    def boats(self) -> Array:
        return self.places.ravel()

    def move(self, action: Array) -> None:
        self.rates = self.keel * self.rates + self.thrust * action.reshape(2, 2) + self.wind
        before = self.places
        one, other = before + self.rates
        push = 0.5 * push_out(one, other, 2 * self.radius)
        self.places = np.clip([one + push, other - push], 0, self.pond)
        self.rates = self.places - before

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return (np.linalg.norm(gaps, axis=-1) <= self.near).all(-1)

    def observe(self) -> Array:
        one, other = self.places
        return np.array([*other, *self.rates[0], *(100 * self.wind), *one, *self.rates[1]])


def steer_boats() -> Any:
    """Thrust where a boat will stop farthest from its place."""

    def act(observation: Observation) -> int:
        seen, rest = observation["observation"], ToyBoats.keel / (1 - ToyBoats.keel)
        rates = np.array([*seen[2:4], *seen[8:10]])
        missing = observation["desired_goal"] - observation["achieved_goal"] - rest * rates
        number = int(np.abs(missing).argmax())
        return 2 * number + int(missing[number] < 0)

    return act


TASKS: tuple[Task, ...] = (
    Task("HoopPeg-v0", "push", "closed", HoopPeg, 60, drag_hoop),
    Task("CorkLift-v0", "pull", "closed", CorkLift, 50, draw_cork),
    Task("ToyBoats-v0", "several-bodies", "closed", ToyBoats, 80, steer_boats),
)
