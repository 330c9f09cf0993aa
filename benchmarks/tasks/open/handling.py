"""Open tasks: a gear stick, plates on a belt, a tea trolley, a grape on a skewer, and skittles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, OwnUnits, SizedTask, clipped, push_out, unit


class GearStick(OwnUnits):
    """A hand takes the knob of a gear stick, which moves in a gate like an H with three bars, and puts it into a gear.

    There the episode ends. The gears engage and come out with the clutch only. Lengths are in centimetres. Actions: motion
    of the hand to the right and ahead, its grip, and the pedal of the clutch.
    """

    numbers, thing, near = (8, 2, 4), "knob", 0.8
    limits = ((-1.2, -1.2, -1.0, -1.0), (1.2, 1.2, 1.0, 1.0))
    columns, end, slack = np.array([-4.0, 0.0, 4.0]), 5.0, 0.8

    def begin(self) -> None:
        gears = np.array([[column, end] for column in self.columns for end in (-self.end, self.end)])
        now, wished = self.np_random.choice(6, 2, replace=False)
        self.knob = gears[now] if self.np_random.random() < 0.5 else np.zeros(2)
        self.goal, self.is_held, self.is_pressed = gears[wished], False, False
        self.hand = self.knob + self.np_random.uniform(2, 8) * unit(self.np_random.uniform(-np.pi, np.pi))

    def move(self, action: Array) -> None:
        motion, self.is_pressed = 1.2 * action[:2], bool(action[3] > 0)
        self.is_held = bool(action[2] > 0 and np.linalg.norm(self.hand - self.knob) < 1.5)
        if self.is_held:
            self._slide(motion)
            self.hand = self.knob.copy()
            return
        self.hand = np.clip(self.hand + motion, -12, 12)
        if abs(self.knob[1]) <= self.slack:  # a spring draws it to the middle
            self.knob = 0.7 * self.knob

    def _slide(self, motion: Array) -> None:
        x, y = self.knob
        if abs(y) <= self.slack:
            x = min(4.0, max(-4.0, x + motion[0]))
        column = self.columns[np.abs(self.columns - x).argmin()]
        if self.is_pressed or abs(y) <= self.slack:
            reach = self.end if self.is_pressed and abs(x - column) <= self.slack else self.slack
            y = min(reach, max(-reach, y + motion[1]))
        self.knob = np.array([column if abs(y) > self.slack else x, y])

    def is_over(self) -> bool:
        return bool(self.is_met(self.knob, self.goal))

    def observe(self) -> Array:
        revs, (gap_x, gap_y) = 850 + self.np_random.normal(0, 20), self.hand - self.knob
        return np.array([revs, gap_y, self.knob[0], float(self.is_pressed), gap_x, float(self.is_held), *self.hand])


def shift_gear() -> Any:
    """Take the knob, draw it to the middle lane, along the lane, and into the gear."""

    def act(observation: Observation) -> Array:
        seen, (x, y), (to_x, to_y) = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        if abs(seen[4]) + abs(seen[1]) > 1.2:
            way, grip = -np.array([seen[4], seen[1]]), -1.0
        elif abs(to_x - x) < 0.6:
            way, grip = np.array([to_x - x, to_y - y]), 1.0
        else:
            way, grip = np.array([0.0 if abs(y) > 0.7 else to_x - x, -y]), 1.0
        return np.array([*np.clip(way, -1.2, 1.2), grip, 1.0], np.float32)

    return act


class SushiBelt(OwnUnits):
    """A hand takes a plate off a belt, which runs in a circle, and brings it to a place beside the belt or above it.

    Lengths are in centimetres. Only fingers that close around the plate hold it. Actions: motion of the hand, and shut.
    """

    numbers, thing, near = (9, 3, 4), "plate", 4.0
    limits = ((-6.0, -6.0, -6.0, -1.0), (6.0, 6.0, 6.0, 1.0))
    radius, beside, reach = 30.0, 5.0, 4.5

    def begin(self) -> None:
        bearing, to = self.np_random.uniform(-np.pi, np.pi, 2)
        self.turn = float(self.np_random.uniform(3, 7) * self.np_random.choice([-1, 1]))  # degrees in a step
        self.plate, self.hand = np.array([*self.radius * unit(bearing), 0]), self.place([-40, -40, 8], [40, 40, 18], 3)
        far = self.np_random.uniform(*((4, 20) if self.np_random.random() < 0.5 else (40, 50)))
        height = 0.0 if self.np_random.random() < 0.5 else self.np_random.uniform(5, 15)
        self.goal, self.is_shut, self.is_held = np.array([*far * unit(to), height]), False, False

    def move(self, action: Array) -> None:
        if not self.is_held and abs(math.hypot(*self.plate[:2]) - self.radius) <= self.beside:
            turn = math.radians(self.turn)
            (x, y), cos, sin = self.plate[:2], math.cos(turn), math.sin(turn)
            self.plate = np.array([cos * x - sin * y, sin * x + cos * y, 0])
        self.hand = np.clip(self.hand + 6 * action[:3], [-55, -55, 0], [55, 55, 20])
        is_shut = bool(action[3] > 0)
        if is_shut and not self.is_shut:
            self.is_held = bool(np.linalg.norm(self.hand - self.plate) <= self.reach)
        self.is_held, self.is_shut = self.is_held and is_shut, is_shut
        self.plate = self.hand.copy() if self.is_held else self.plate * [1, 1, 0]

    def observe(self) -> Array:
        ripeness = self.np_random.uniform(0, 1)
        state = [float(self.is_shut), ripeness, self.turn]
        return np.array([self.hand[2], *state, *(self.plate - self.hand), *self.hand[:2]])


def take_plate() -> Any:
    """Go with the plate, close the fingers, and carry it."""

    def act(observation: Observation) -> Array:
        seen, plate = observation["observation"], observation["achieved_goal"]
        gap, is_shut, angle = seen[4:7], seen[1] > 0, math.radians(seen[3])
        if is_shut and np.linalg.norm(gap) < 0.1:
            return np.array([*np.clip(observation["desired_goal"] - plate, -6, 6), 1], np.float32)
        ahead = plate + angle * np.array([-plate[1], plate[0], 0]) * (abs(math.hypot(*plate[:2]) - 30) <= 5)
        way = ahead - plate + gap
        is_there = bool(np.abs(way).max() < 6) and not is_shut
        return np.array([*np.clip(way, -6, 6), 1 if is_there else -1], np.float32)

    return act


class TeaTrolley(SizedTask):
    """A hand with a suction pad moves a cup and a trolley, which rolls on a rail at a counter and carries what is on it.

    The goal: where the trolley is on the rail, and where the cup is. Lengths are in centimetres.
    """

    numbers, thing = (7, 3, 3), "places"
    rail, half, handle, pace, size = 46.0, np.array([12.0, 10.0]), 17.0, 6.0, np.array([100.0, 60.0])

    def begin(self) -> None:
        self.trolley, self.cup, self.is_aboard = self._drawn()
        self.hand, self.held = self.place([5, 5], [95, 55]), 0
        self.goal = self.places
        while np.linalg.norm(self.goal[1:] - self.cup) < 15:
            trolley, cup, _ = self._drawn()
            self.goal = np.array([trolley, *cup])

    def _drawn(self) -> tuple[float, Array, bool]:
        trolley, is_aboard = float(self.np_random.uniform(22, 86)), bool(self.np_random.random() < 0.4)
        return trolley, self._on(trolley) + self.place(-6, 6) if is_aboard else self.place([6, 5], [94, 30]), is_aboard

    def _on(self, trolley: float) -> Array:
        return np.array([trolley, self.rail])

    @property
    def places(self) -> Array:
        return np.array([self.trolley, *self.cup])

    def move(self, action: Array) -> None:
        self.hand = np.clip(self.hand + self.pace * action[:2], 0, self.size)
        grip = self._on(self.trolley - self.handle)
        if action[2] <= 0:
            self.held = 0
        elif not self.held:
            is_near = np.linalg.norm(self.hand - self.cup) < 5.5, np.linalg.norm(self.hand - grip) < 5.5
            self.held = 1 if is_near[0] else 2 * int(is_near[1])
        if self.held == 1:
            self.cup, self.is_aboard = self.hand.copy(), False
        elif self.held == 2:
            rolled = min(88.0, max(20.0, self.hand[0] + self.handle))
            self.cup = self.cup + np.array([rolled - self.trolley, 0]) * self.is_aboard
            self.trolley, self.hand = rolled, self._on(rolled - self.handle)
        if self.held != 1 and (np.abs(self.cup - self._on(self.trolley)) <= self.half).all():
            self.is_aboard = True

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.abs(gap[..., 0]) <= 5) & (np.linalg.norm(gap[..., 1:], axis=-1) <= 5)

    def observe(self) -> Array:
        x, y = self.cup - self.hand
        return np.array([self.held, *self.hand, self.trolley - self.hand[0], y, x, self.is_aboard], np.float64)


def serve() -> Any:
    """Roll the trolley to its place, then bring the cup to its own."""

    def act(observation: Observation) -> Array:
        seen, now, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
        hand, held, grip = seen[1:3], seen[0], np.array([now[0] - TeaTrolley.handle, TeaTrolley.rail])
        part, at, to = 1, now[1:], goal[1:]
        if abs(goal[0] - now[0]) > (0.5 if held == 2 else 3):
            part, at, to = 2, grip, np.array([goal[0] - TeaTrolley.handle, TeaTrolley.rail])
        if held not in (0, part):
            return clipped(0, 0, -1)
        way = to - hand if held else at - hand
        if not held and np.linalg.norm(to - at) < 3:
            return clipped(0, 0, -1)
        return clipped(*way / TeaTrolley.pace, 1 if held or np.linalg.norm(way) < 5 else -1)

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


TASKS: tuple[Task, ...] = (
    Task("GearStick-v0", "pull", "open", GearStick, 40, shift_gear),
    Task("SushiBelt-v0", "grasp", "open", SushiBelt, 50, take_plate),
    Task("TeaTrolley-v0", "several-objects", "open", TeaTrolley, 70, serve),
    Task("GrapeSkewer-v0", "grasp", "open", GrapeSkewer, 60, skewer),
    Task("SkittleFinger-v0", "several-objects", "open", SkittleFinger, 70, knock_over),
)
