"""Closed tasks: a sticky tip, a drone with a hook, a tug for aircraft, a bee, and beads on a ring."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SinglePrecision, SizedTask, clipped, shortest_path, unit, wrapped
from ..task import Observation, Task


class GlueStick(SinglePrecision):
    """A stick dips its tip into a pot of glue, touches a piece of paper, and draws it to a place. In decimetres.

    Paper sticks to wet glue only, which dries within 30 steps. When the paper is there, the reward is 1 and the
    episode ends. Actions: accelerations of the tip.
    """

    numbers, thing, near = (11, 2, 2), "paper", 0.22
    thrust, kept, grab, pot_radius, drying, size = 0.13, 0.6, 0.2, 0.25, 1 / 30, 4.0

    def begin(self) -> None:
        self.tip, self.speed, self.wet, self.is_stuck = self.place(0.3, 3.7), np.zeros(2), 0.0, False
        self.pot, self.paper = self.place(0.3, 3.7), self.place(0.6, 3.4)
        while np.linalg.norm(self.pot - self.tip) < 0.5 or np.linalg.norm(self.pot - self.tip) > 1.5:
            self.pot = self.place(0.3, 3.7)
        while not 0.7 < np.linalg.norm(self.paper - self.pot) < 2:
            self.paper = self.place(0.6, 3.4)
        self.goal = self.paper
        while not 0.7 < np.linalg.norm(self.goal - self.paper) < 2.2:
            self.goal = self.place(0.3, 3.7)

    def move(self, action: Array) -> None:
        self.speed = self.kept * self.speed + self.thrust * action
        before = self.tip
        self.tip = np.clip(before + self.speed, 0, self.size)
        self.speed = self.tip - before
        self.wet = 1.0 if np.linalg.norm(self.tip - self.pot) < self.pot_radius else max(0.0, self.wet - self.drying)
        self.is_stuck = self.is_stuck or bool(self.wet > 0 and np.linalg.norm(self.paper - self.tip) < self.grab)
        if self.is_stuck:
            self.paper = np.clip(self.paper + self.speed, 0, self.size)

    def is_over(self) -> bool:
        return bool(self.is_met(self.paper, self.goal))

    def observe(self) -> Array:
        to_pot, (x, y), (east, north) = self.pot - self.tip, self.tip, self.paper
        return np.array([*(10 * self.speed), self.wet, y, north, *to_pot, x, east, self.is_stuck, 0.4])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the paper is at its place, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)


def glue() -> Any:
    """Dip the tip, touch the paper, and draw it to the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"].astype(float), GlueStick
        way = seen[5:7]
        if seen[9]:
            way = observation["desired_goal"].astype(float) - observation["achieved_goal"]
        elif seen[2] > 0:
            way = np.array([seen[8] - seen[7], seen[4] - seen[3]])
        return clipped(*((way - task.kept * 0.1 * seen[:2]) / task.thrust))

    return act


class DroneParcel(OwnUnits):
    """A drone takes a parcel with a hook and brings it to a place on the ground or in the air.

    Observations and goals are in degrees of latitude and longitude, feet, and knots. Goal: latitude, height, longitude.
    Actions: wished speeds north, east and up in metres per second, and the hook, from 0 to 1 (above 0.5 holds).
    """

    numbers, near, limits = (10, 3, 4), 3.0, ((-4.0, -4.0, -2.0, 0.0), (4.0, 4.0, 2.0, 1.0))
    home, degree, feet, knots, reach, rope = np.array([47.3769, 8.5417]), 111_320.0, 3.2808, 1.9438, 2.5, 1.0
    per_degree = degree * np.array([1.0, math.cos(math.radians(47.3769))])

    def begin(self) -> None:
        self.parcel, self.speed, self.is_held = np.append(self.place(-18, 18), 0.0), np.zeros(3), False
        self.drone = self.parcel + self.place([-10, -10, 4], [10, 10, 9], 3)
        to = self.parcel
        while not 9 < np.linalg.norm(to - self.parcel) < 35:
            to = np.append(self.place(-22, 22), self.np_random.uniform(4, 10) * (self.np_random.random() < 0.5))
        self.goal = self.on_map(to)

    def on_map(self, place: Array) -> Array:
        """Return the latitude, the height in feet and the longitude of a place in metres."""
        latitude, longitude = self.home + place[:2] / self.per_degree
        return np.array([latitude, self.feet * place[2], longitude])

    def achieved(self) -> Array:
        return self.on_map(self.parcel)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        north, east = self.per_degree
        gap = (achieved_goal - desired_goal) * np.array([north, 1 / self.feet, east])
        return np.linalg.norm(gap, axis=-1) <= self.near

    def move(self, action: Array) -> None:
        wished = np.array([4, 4, 2]) * action[:3]
        self.speed = 0.5 * self.speed + 0.5 * wished
        to = np.clip(self.drone + self.speed, [-30, -30, self.rope], [30, 30, 15])
        self.speed, self.drone = to - self.drone, to
        hook = to - np.array([0, 0, self.rope])
        self.is_held = bool(action[3] > 0 and (self.is_held or np.linalg.norm(hook - self.parcel) < self.reach))
        self.parcel = hook if self.is_held else np.append(self.parcel[:2], max(0.0, self.parcel[2] - 3))

    def observe(self) -> Array:
        (latitude, height, longitude), (north, up, east) = self.on_map(self.drone), self.on_map(self.parcel)
        return np.array([latitude, longitude, height, self.is_held, *(self.knots * self.speed), north, east, up])


def deliver() -> Any:
    """Fly to the parcel, hook it, and fly so that the parcel is at the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], DroneParcel
        (north, east), (latitude, height, longitude) = task.per_degree, observation["desired_goal"]
        to = np.array([latitude, longitude, height]) if seen[3] else seen[[7, 8, 9]]
        way = (to - seen[:3]) * np.array([north, east, 1 / task.feet]) + np.array([0, 0, task.rope])
        is_near = bool(np.linalg.norm(way) < 1.5)
        wished = np.clip(2 * way - seen[4:7] / task.knots, [-4, -4, -2], [4, 4, 2])
        return np.append(wished, 1.0 if seen[3] or is_near else 0.0).astype(np.float32)

    return act


class PushbackTug(SizedTask):
    """A tug with two driven wheels takes an aircraft by its nose wheel and brings that to a place, in metres.

    The main wheels of the aircraft follow. The reward is 100 at the place, less the fuel of a step, which info reports.
    Actions: the clamp (above 0 holds), speeds of the right and the left wheel.
    """

    numbers, near = (11, 2, 3), 2.5
    pace, width, front, grab, wheelbase, size = 1.6, 2.4, 2.0, 1.4, 8.0, 30.0

    def begin(self) -> None:
        self.nose, (self.heading, tail) = self.place(-15, 15), self.place(-math.pi, math.pi)
        self.main, self.is_held, self.fuel = self.nose - self.wheelbase * unit(tail), False, 0.0
        self.tug = self.nose + self.np_random.uniform(5, 10) * unit(tail + self.np_random.uniform(-1.5, 1.5))
        self.goal = self.nose
        while not 7 < np.linalg.norm(self.goal - self.nose) < 25:
            self.goal = self.place(-18, 18)

    def achieved(self) -> Array:
        return self.nose.copy()

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        seen, _, terminated, truncated, info = super().step(action)
        info["fuel"] = self.fuel
        return seen, float(self.compute_reward(seen["achieved_goal"], self.goal, info)), terminated, truncated, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 100 at the place, else 0, less the fuel."""
        is_batch = isinstance(info, list | tuple | np.ndarray)
        fuel = np.array([each["fuel"] for each in info]) if is_batch else info.get("fuel", 0.0)
        return 100.0 * self.is_met(achieved_goal, desired_goal) - fuel

    def move(self, action: Array) -> None:
        clamp, right, left = action
        self.fuel = float(right**2 + left**2)
        self.heading = wrapped(self.heading + self.pace * float(right - left) / self.width)
        self.tug = np.clip(self.tug + 0.5 * self.pace * (left + right) * unit(self.heading), -self.size, self.size)
        tip = self.tug + self.front * unit(self.heading)
        self.is_held = bool(clamp > 0 and (self.is_held or np.linalg.norm(tip - self.nose) < self.grab))
        if self.is_held:
            self.nose = tip
            gap = self.main - tip
            self.main = tip + gap * self.wheelbase / max(1e-9, float(np.linalg.norm(gap)))

    def observe(self) -> Array:
        gap, ahead, body = self.nose - self.tug, unit(self.heading), self.nose - self.main
        axle = math.degrees(math.atan2(body[1], body[0]))
        along, aside = float(gap @ ahead) - self.front, float(ahead[0] * gap[1] - ahead[1] * gap[0])
        return np.array([*self.nose, ahead[1], *self.tug, ahead[0], self.is_held, axle, along, aside, self.wheelbase])


def push_back() -> Any:
    """Move the front of the tug to the nose wheel, clamp, and move the front to the goal."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], PushbackTug
        ahead = np.array([seen[5], seen[2]])
        gap = observation["desired_goal"] - observation["achieved_goal"]
        way = np.array([gap @ ahead, ahead[0] * gap[1] - ahead[1] * gap[0]]) if seen[6] else seen[8:10]
        is_near = bool(np.linalg.norm(way) < 0.8)
        way = 0.7 * way * min(1.0, 2.0 / max(1e-9, float(np.linalg.norm(way))))
        spin = 0.5 * task.width * way[1] / task.front
        wheels = np.array([way[0] + spin, way[0] - spin]) / task.pace
        return clipped(1 if seen[6] or is_near else -1, *(wheels / max(1.0, float(np.abs(wheels).max()))))

    return act


HEXES = np.array([[1, 0], [0, 1], [-1, 1], [-1, 0], [0, -1], [1, -1]])
BeeState = tuple[int, int, int, int]  # the two coordinates, whose pollen (-1: none), and which flowers are pollinated


def fly(state: BeeState, action: int, flowers: Any) -> BeeState:
    """Return the state after an action of the bee; pollinated flowers are the bits of a number."""
    q, r, pollen, done = state
    if action < 6:
        to = (q + int(HEXES[action, 0]), r + int(HEXES[action, 1]))
        return (*to, pollen, done) if max(abs(to[0]), abs(to[1]), abs(sum(to))) <= 3 else state
    if (q, r) not in flowers:
        return state
    flower = flowers.index((q, r))
    return q, r, flower, done | (1 << flower if pollen not in (-1, flower) else 0)


class BeeHex(SizedTask):
    """A bee on a board of 37 hexagons pollinates some of three flowers. It needs the pollen of another flower.

    A bee that dips takes pollen, and leaves what it had. The goal: which flowers shall be pollinated; none can be undone.
    Actions: six directions, and dip.
    """

    numbers = (15, 3, 1)
    state: BeeState

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(7)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.state = fly(self.state, int(action), self.flowers)
        return super().step(0)

    def move(self, action: Array) -> None:
        """Change nothing more."""

    def begin(self) -> None:
        cells = [(q, r) for q in range(-3, 4) for r in range(-3, 4) if abs(q + r) <= 3]
        drawn = [cells[number] for number in self.np_random.permutation(37)[:4]]
        self.flowers, self.state = drawn[:3], (*drawn[3], -1, 0)
        self.goal = self.bits(int(self.np_random.integers(1, 8)))

    @staticmethod
    def bits(number: int) -> Array:
        """Return which of three flowers are pollinated."""
        return (number >> np.arange(3) & 1).astype(np.float64)

    def achieved(self) -> Array:
        return self.bits(self.state[3])

    def observe(self) -> Array:
        q, r, pollen, done = self.state
        places = np.array(self.flowers, np.float64).T.ravel()
        return np.array([r, *self.bits(done), *places, q, *(np.arange(-1, 3) == pollen)])


def visit_flowers() -> Any:
    """Take the first action of a shortest path each time, planned once."""
    path: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal path
        seen, goal = observation["observation"].astype(int), int(observation["desired_goal"] @ [1, 2, 4])
        if path is None:
            flowers = list(zip(seen[4:7].tolist(), seen[7:10].tolist(), strict=True))
            start = (int(seen[10]), int(seen[0]), -1, 0)
            path = shortest_path(start, lambda at: at[3] == goal, lambda at: [fly(at, a, flowers) for a in range(7)])
        return path.pop(0) if path else 0

    return act


class RingBeads(SizedTask):
    """A finger at a ring pushes two beads along it, each to an angle of its own. It must rise to pass a bead.

    The goal: the cosines of both angles, then their sines. The reward is the number of beads in place, less 2.
    Actions: the height the finger moves to (above 0: up), and its speed along the ring.
    """

    numbers, near = (8, 4, 2), 0.16
    pace, climb, contact, length = 0.24, 0.5, 0.25, 0.3

    def begin(self) -> None:
        self.finger, first = self.place(-math.pi, math.pi)
        self.height, self.rate, apart = 1.0, 0.0, float(self.np_random.uniform(1.1, 5.1))
        self.beads, goals, room = np.array([first, first + apart]), np.zeros(2), 0.0
        while not 0.8 < room < 2 * math.pi - 0.8 or np.abs(goals - self.beads).min() < 0.4:
            goals = self.beads + self.place(-1.1, 1.1)
            room = float(goals[1] - goals[0])
        self.goal = np.concatenate([np.cos(goals), np.sin(goals)])

    def achieved(self) -> Array:
        return np.concatenate([np.cos(self.beads), np.sin(self.beads)])

    def in_place(self, achieved_goal: Array, desired_goal: Array) -> Array:
        """Return whether each bead is in place, (..., 2) bool."""
        gap = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return np.asarray(np.linalg.norm(gap, axis=-2) < self.near)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return self.in_place(achieved_goal, desired_goal).all(axis=-1)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the number of beads in place, less 2."""
        return self.in_place(achieved_goal, desired_goal).sum(axis=-1) - 2.0

    def move(self, action: Array) -> None:
        self.rate = self.pace * float(action[1])
        is_down = self.height < 0.4
        gaps = [wrapped(float(bead) - self.finger) for bead in self.beads]
        self.finger = wrapped(self.finger + self.rate)
        for number, gap in enumerate(gaps):
            sign = 1.0 if gap > 0 else -1.0
            lack = self.contact - sign * wrapped(float(self.beads[number]) - self.finger)
            if is_down and 0 < lack < 1 and sign * self.rate > 0:
                self.beads[number] += sign * lack
                other = sign * wrapped(float(self.beads[1 - number] - self.beads[number]))
                self.beads[1 - number] += sign * max(0.0, self.length - other) * (other > 0)
        is_free = all(abs(wrapped(float(bead) - self.finger)) >= self.contact - 1e-9 for bead in self.beads)
        height = min(1.0, max(0.0, self.height + (self.climb if action[0] > 0 else -self.climb)))
        self.height = height if is_free or is_down else max(0.5, height)

    def observe(self) -> Array:
        return np.array([self.finger, self.height, *self.achieved()[[0, 2, 1, 3]], 10 * self.rate, self.contact])


def push_beads() -> Any:
    """Choose a bead whose path is free, get behind it, push it to its angle, then push the other one."""
    number: int | None = None

    def act(observation: Observation) -> Array:
        nonlocal number
        finger, height = observation["observation"][:2]
        beads, goals = (
            np.arctan2(seen[2:], seen[:2]) for seen in (observation["achieved_goal"], observation["desired_goal"])
        )
        lacks = [wrapped(float(lack)) for lack in goals - beads]
        if max(map(abs, lacks)) < 0.05:
            return clipped(1, 0)
        if number is None or abs(lacks[number]) < 0.05:
            number = int(np.argmax(np.abs(lacks)))
            sign = math.copysign(1, lacks[number])
            ahead = sign * wrapped(float(beads[1 - number] - beads[number]))
            if 0 < ahead < abs(lacks[number]) + 0.7 and sign * lacks[1 - number] > 0.05:
                number = 1 - number  # the bead ahead has to make room first
        sign = math.copysign(1, lacks[number])
        behind = sign * wrapped(float(beads[number]) - finger)
        if height < 0.4 and RingBeads.contact - 0.01 < behind < 0.45:
            return clipped(-1, sign * (behind - RingBeads.contact + abs(lacks[number])) / RingBeads.pace)
        way = wrapped(float(beads[number]) - sign * (RingBeads.contact + 0.07) - finger)
        return clipped(-1 if abs(way) < 0.06 else 1, way / RingBeads.pace if height > 0.4 else 0)

    return act


TASKS: tuple[Task, ...] = (
    Task("GlueStick-v0", "later", "closed", GlueStick, 50, glue),
    Task("DroneParcel-v0", "units", "closed", DroneParcel, 50, deliver),
    Task("PushbackTug-v0", "rewards", "closed", PushbackTug, 60, push_back),
    Task("BeeHex-v0", "discrete", "closed", BeeHex, 40, visit_flowers),
    Task("RingBeads-v0", "several-objects", "closed", RingBeads, 60, push_beads),
)
