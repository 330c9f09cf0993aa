"""Five closed tasks: a hoop, a cork, a grape, skittles, and toy boats."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, clipped, push_out
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


class GrapeSkewer(SizedTask):
    """A skewer pierces a grape, if it comes down upon it fast, and carries it to a place in the air or on the table.

    A slow skewer makes the grape slip aside. Lengths are in centimetres. Actions: accelerations.
    """

    numbers, thing, near = (10, 3, 3), "grape", 3.5
    room, thrust, size, fast = np.array([28.0, 28.0, 24.0]), 1.2, 3.5, 2.5

    def begin(self) -> None:
        self.grape, self.tip = np.append(self.place(5, 23), 0.0), self.place([0, 0, 10], self.room, 3)
        self.rate, self.goal = np.zeros(3), self.grape
        self.is_on = False
        height = self.np_random.uniform(4, 20) if self.np_random.random() < 0.75 else 0.0
        while np.linalg.norm(self.goal - self.grape) < 8:
            self.goal = np.append(self.place(3, 25), height)

    def move(self, action: Array) -> None:
        self.rate = 0.8 * self.rate + self.thrust * action
        start = self.tip
        self.tip = np.clip(start + self.rate, 0, self.room)
        aside = float(np.linalg.norm(self.tip[:2] - self.grape[:2]))
        if not self.is_on and self.tip[2] < self.size and aside < self.size:
            self.is_on = bool(start[2] >= self.size) and bool(self.rate[2] < -self.fast)
            if not self.is_on:
                slip = push_out(self.grape[:2], self.tip[:2], self.size + 1)
                self.grape = np.append(np.clip(self.grape[:2] + slip, 2, 26), 0.0)
        if self.is_on:
            self.grape = self.tip
        self.rate = self.tip - start

    def observe(self) -> Array:
        return np.array([*self.rate, *(self.grape - self.tip), self.np_random.normal(), *self.tip[::-1]])


def skewer() -> Any:
    """Hover over the grape, dive, and carry."""
    is_diving = False

    def act(observation: Observation) -> Array:
        nonlocal is_diving
        rate, gap, tip = (observation["observation"][part] for part in (slice(3), slice(3, 6), slice(9, 6, -1)))
        if not gap.any():
            to = observation["desired_goal"] - tip
        else:
            still = np.linalg.norm(gap[:2]) < 1 and np.linalg.norm(rate[:2]) < 0.7
            is_diving = bool(tip[2] > 1 and (is_diving or (still and tip[2] > 11)))
            to = gap if is_diving else gap + np.array([0, 0, 14])
        wish = 0.3 * to
        if is_diving and gap.any():
            wish[2] = -6
        return clipped(*(wish - 0.8 * rate) / GrapeSkewer.thrust)

    return act


class SkittleFinger(SizedTask):
    """A finger knocks over the skittles that should lie, two or three of four, and spares the others. None gets up again.

    Lengths are in decimetres. Actions: the wished velocity of the finger. The episode ends at success.
    """

    numbers, thing, near = (13, 4, 2), "fallen", 0.5
    pace, reach, size = 0.6, 0.7, 10.0

    def begin(self) -> None:
        self.finger, self.rate, self.fallen = self.place(0, self.size), np.zeros(2), np.zeros(4)
        self.skittles = self.place(1, self.size - 1, 8).reshape(4, 2)
        while self._crowding() < 2.2:
            self.skittles = self.place(1, self.size - 1, 8).reshape(4, 2)
        wished = self.np_random.permutation(4)[: self.np_random.integers(2, 4)]
        self.goal = np.isin(np.arange(4), wished).astype(np.float64)

    def _crowding(self) -> float:
        places = np.vstack([self.skittles, self.finger])
        return float(min(np.linalg.norm(places[i] - places[j]) for i in range(5) for j in range(i)))

    def move(self, action: Array) -> None:
        self.rate = 0.5 * self.rate + 0.5 * self.pace * action
        self.finger = np.clip(self.finger + self.rate, 0, self.size)
        self.fallen = np.maximum(self.fallen, np.linalg.norm(self.skittles - self.finger, axis=1) < self.reach)

    def is_over(self) -> bool:
        return bool(self.is_met(self.fallen, self.goal))

    def observe(self) -> Array:
        return np.array([self.np_random.normal(), *self.finger, *self.skittles.T.ravel(), *self.rate])


def knock_over() -> Any:
    """Go to the nearest skittle that should fall, and around those that should stand."""

    def act(observation: Observation) -> Array:
        seen, fallen, wished = (observation[key] for key in ("observation", "achieved_goal", "desired_goal"))
        finger, skittles = seen[1:3], seen[3:11].reshape(2, 4).T
        open_ones = skittles[(wished > 0.5) & (fallen < 0.5)]
        if not len(open_ones):
            return np.zeros(2, np.float32)
        to = min(open_ones - finger, key=lambda gap: float(np.linalg.norm(gap)))
        heading, far = np.arctan2(to[1], to[0]), float(np.linalg.norm(to))

        def cost(turn: float) -> float:
            ray = np.array([np.cos(heading + turn), np.sin(heading + turn)])
            for gap in skittles[(wished < 0.5) & (fallen < 0.5)] - finger:
                along = float(np.clip(gap @ ray, 0, min(far, 2.0)))
                if np.linalg.norm(gap - along * ray) < 0.95:
                    return 10 + abs(turn) - float(np.linalg.norm(gap - 0.6 * ray))
            outside = np.abs(finger + 0.8 * ray - 5).max() > 5
            return float(abs(turn) + 5 * outside)

        turn = min(np.linspace(-2.4, 2.4, 49), key=cost)
        return clipped(*(np.array([np.cos(heading + turn), np.sin(heading + turn)]) - seen[11:] / 0.6))

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
    Task("GrapeSkewer-v0", "grasp", "closed", GrapeSkewer, 60, skewer),
    Task("SkittleFinger-v0", "several-objects", "closed", SkittleFinger, 70, knock_over),
    Task("ToyBoats-v0", "several-bodies", "closed", ToyBoats, 80, steer_boats),
)
