"""Open tasks: a pony and a gate, two robots at a door, a drone with a hook, a bee, and beads on a ring."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, OwnUnits, Seen, SizedTask, clipped, push_out, shortest_path, unit, wrapped

HEXES = np.array([[1, 0], [0, 1], [-1, 1], [-1, 0], [0, -1], [1, -1]])
BeeState = tuple[int, int, int, int]  # the two coordinates, whose pollen (-1: none), and which flowers are pollinated


class PaddockGate(SizedTask):
    """A groom leads a pony on a rope to a place, and slides a gate to a wished opening. In metres.

    The goal: place of the pony (x), opening of the gate, place of the pony (y). A hand holds the rope or the handle of
    the gate, if one of them is near. Actions: steps along x and y, and the hand (above 0 holds).
    """

    numbers, near, near_gate = (9, 3, 3), 0.75, 0.45
    pace, reach, rope, post, size = 0.65, 0.8, 1.0, np.array([3.0, 9.3]), 10.0

    def begin(self) -> None:
        self.held, self.gate = 0, float(self.np_random.uniform(0, 4))
        self.pony = self.place(2, [8, 6.5])
        self.groom = np.clip(self.pony + self.np_random.uniform(1.2, 3) * unit(self.np_random.uniform(-3.14, 3.14)), 0, 10)
        self.goal = self.achieved()
        while np.linalg.norm(self.goal[::2] - self.pony) < 1.5 or abs(self.goal[1] - self.gate) < 1:
            self.goal = self.place([2, 0, 1.5], [8, 4, 7], 3)

    def handle(self) -> Array:
        """Return the position of the handle of the gate."""
        return np.array([self.post[0] + self.gate, self.post[1]])

    def achieved(self) -> Array:
        return np.array([self.pony[0], self.gate, self.pony[1]])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return (np.linalg.norm(gap[..., ::2], axis=-1) < self.near) & (np.abs(gap[..., 1]) < self.near_gate)

    def move(self, action: Array) -> None:
        gaps = [float(np.linalg.norm(self.pony - self.groom)), float(np.linalg.norm(self.handle() - self.groom))]
        if action[2] <= 0:
            self.held = 0
        elif self.held == 0 and min(gaps) < self.reach:
            self.held = 1 if gaps[0] < gaps[1] else -1
        before = self.groom
        self.groom = np.clip(before + self.pace * action[:2], 0, self.size)
        if self.held == 1:
            gap = self.pony - self.groom
            self.pony = self.groom + gap * min(1.0, self.rope / max(1e-9, float(np.linalg.norm(gap))))
        if self.held == -1:
            self.gate = float(np.clip(self.gate + self.groom[0] - before[0], 0, 4))
            self.held = -1 if np.linalg.norm(self.handle() - self.groom) < self.rope else 0

    def observe(self) -> Array:
        (x, y), (east, north) = self.groom, self.pony - self.groom
        flies = self.np_random.uniform(0, 3)
        return np.array([x, self.gate, y, self.held, east, self.post[1] - y, north, flies, self.post[0] + self.gate - x])


def lead_pony() -> Any:
    """Take the rope and lead the pony to its place, then take the gate by its handle and slide it."""

    def act(observation: Observation) -> Array:
        seen, task, lack = (
            observation["observation"],
            PaddockGate,
            observation["desired_goal"] - observation["achieved_goal"],
        )
        far, gap, to_gate = float(np.linalg.norm(lack[::2])), seen[[4, 6]], seen[[8, 5]]
        is_brought = far < 0.3
        if seen[3] == (-1 if is_brought else 1):
            way = np.array([lack[1], 0]) if is_brought else gap + lack[::2] * (1 + task.rope / far)
            return clipped(*(way / task.pace), 1)
        way = to_gate if is_brought else gap
        is_near = seen[3] == 0 and np.linalg.norm(way) < 0.3
        return clipped(*(way / task.pace), 1 if is_near else -1)

    return act


class PlateDoor(SizedTask):
    """Two robots in a house of two rooms: the second drives to a place, mostly in the other room. Decimetres.

    The door between the rooms is open only while the first robot stands on a plate. Robots push each other aside.
    Actions: speeds of the first robot, then of the second one.
    """

    numbers, near = (12, 2, 4), 0.9
    pace, radius, plate_radius, half, span = 0.9, 0.5, 1.0, 1.3, np.array([9.0, 5.0])

    def begin(self) -> None:
        self.robots, self.speeds = self.pair(), np.zeros((2, 2))
        self.plate = self.place([-8, -4], [-3, 4])
        while np.linalg.norm(self.plate - self.robots[0]) < 2 or np.linalg.norm(self.robots[1] - self.robots[0]) < 1.2:
            self.robots = self.pair()
        self.goal = self.robots[1]
        while np.linalg.norm(self.goal - self.robots[1]) < 2:
            is_far = self.np_random.random() < 0.8
            self.goal = self.place([1.5, -4], [8, 4]) if is_far else self.place([-8, -4], [-1.5, 4])

    def pair(self) -> Array:
        """Return two random places in the first room."""
        return self.place([-8, -4, -8, -4], [-1.5, 4, -1.5, 4], 4).reshape(2, 2)

    def achieved(self) -> Array:
        return np.array(self.robots[1])

    def is_open(self) -> bool:
        """Return whether the first robot stands on the plate."""
        return bool(np.linalg.norm(self.robots[0] - self.plate) < self.plate_radius)

    def move(self, action: Array) -> None:
        self.speeds = 0.4 * self.speeds + 0.6 * self.pace * action.reshape(2, 2)
        to = self.robots + self.speeds
        overlap = push_out(to[0], to[1], 2 * self.radius)
        to = np.clip(to + 0.5 * np.array([overlap, -overlap]), -self.span, self.span)
        sides = np.where(self.robots[:, 0] < 0, -1.0, 1.0)
        is_in_door = (np.abs(to[:, 1]) < self.half) & (np.abs(self.robots[:, 1]) < self.half) & self.is_open()
        to[:, 0] = np.where(is_in_door, to[:, 0], sides * np.maximum(sides * to[:, 0], 0.2))
        self.robots = to

    def observe(self) -> Array:
        (first, second), here = self.robots, self.plate - self.robots[0]
        speeds = self.speeds.T.ravel()
        return np.array([*(second - first), self.is_open(), *speeds, *here, *second, self.half])


def pass_door() -> Any:
    """Put the first robot on the plate; drive the second to the door, through it, and to the goal."""

    def act(observation: Observation) -> Array:
        seen, goal, task = observation["observation"].astype(float), observation["desired_goal"], PlateDoor
        at = seen[9:11]
        way = goal - at
        if (at[0] < 0) != (goal[0] < 0) or abs(at[0]) < 0.6:
            side = -1.0 if at[0] < 0 else 1.0
            is_before = abs(at[1]) < 0.7
            way = np.array([1.2 * np.sign(goal[0]) if is_before and seen[2] else 0.8 * side, 0]) - at
        gap = seen[:2]
        if np.linalg.norm(gap) < 1.4 and gap @ way < 0:
            way = way + np.array([-gap[1], gap[0]]) * 3
        return clipped(*(seen[7:9] / task.pace), *(way / task.pace))

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
    Task("PaddockGate-v0", "several-objects", "open", PaddockGate, 60, lead_pony),
    Task("PlateDoor-v0", "several-bodies", "open", PlateDoor, 50, pass_door),
    Task("DroneParcel-v0", "units", "open", DroneParcel, 50, deliver),
    Task("BeeHex-v0", "discrete", "open", BeeHex, 40, visit_flowers),
    Task("RingBeads-v0", "several-objects", "open", RingBeads, 60, push_beads),
)
