"""Seven closed tasks: an oven, an ice floe, fires, a lock, a lake, a laser, and slots."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, clipped, push_out, toward_push, unit
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class OvenDoor(OwnUnits):
    """A hand opens or closes the door of an oven, seen from the side, to an angle in degrees.

    Actions: motion of the hand in centimetres, outward and upward, and the grip, which holds the handle if it is
    positive. A spring shuts the door if it is only ajar.
    """

    numbers, thing, near = (8, 1, 3), "angle", 4.0
    limits = ((-4.0, -4.0, -1.0), (4.0, 4.0, 1.0))
    hinge, length, ajar = np.array([0.0, 12.0]), 40.0, 20.0

    def begin(self) -> None:
        self.angle = 0.0 if self.np_random.random() < 0.7 else float(self.np_random.uniform(25, 88))
        wished = self.angle
        while abs(wished - self.angle) < 10:
            wished = float(self.np_random.uniform(25, 88))
        self.goal, self.is_held = np.array([wished]), False
        self.hand = self.handle() + self.place([5, -12], [25, 20])
        self.heat, self.clock = float(self.np_random.uniform(20, 220)), 0

    def handle(self) -> Array:
        return self.hinge + self.length * unit(np.pi / 2 - np.radians(self.angle))

    def move(self, action: Array) -> None:
        shift, grip = 4.0 * action[:2], action[2]
        self.clock += 1
        self.is_held = bool(grip > 0 and (self.is_held or np.linalg.norm(self.hand - self.handle()) < 4.5))
        if self.is_held:
            along = float(shift @ unit(-np.radians(self.angle)))
            self.angle = float(np.clip(self.angle + np.degrees(along / self.length), 0, 90))
            self.hand = self.handle()
        else:
            self.hand = np.clip(self.hand + shift, [-5, 5], [80, 90])
            if self.angle < self.ajar:
                self.angle = max(0.0, self.angle - 6)

    def observe(self) -> Array:
        heat = self.heat + self.np_random.normal()
        return np.array([heat, *self.handle(), self.angle, *self.hand, float(self.is_held), float(self.clock)])


def oven_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        turn = np.radians(observation["desired_goal"][0] - seen[3])
        if abs(turn) < np.radians(1.5):
            return np.array([0, 0, -1], np.float32)
        if seen[6]:
            shift = OvenDoor.length * turn * unit(-np.radians(seen[3]))
            return np.append(shift * min(1.0, 4 / np.abs(shift).max()), 1).astype(np.float32)
        return np.append(np.clip(seen[1:3] - seen[4:6], -4, 4), 1).astype(np.float32)

    return act


class TugFloe(OwnUnits):
    """A tug with thrusters in all directions pushes an ice floe to a place in a basin. Metres, seconds and kilonewtons."""

    numbers, thing, near = (11, 2, 2), "floe", 5.0
    limits = ((-20.0, -20.0), (20.0, 20.0))
    contact, basin = 8.0, 70.0  # distance of the centres when they touch; half the width of the basin

    def begin(self) -> None:
        self.floe, self.goal = self.place(-30, 30), np.full(2, 99.0)
        while np.abs(self.goal).max() > 45:
            self.goal = self.floe + self.np_random.uniform(12, 35) * unit(self.np_random.uniform(-np.pi, np.pi))
        self.tug = self.floe + self.np_random.uniform(10, 22) * unit(self.np_random.uniform(-np.pi, np.pi))
        self.velocity, self.drift, self.wind = np.zeros(2), np.zeros(2), float(self.np_random.uniform(0, 6))

    def move(self, action: Array) -> None:
        self.velocity = 0.7 * self.velocity + 1.1 * action
        self.tug = np.clip(self.tug + self.velocity, -self.basin, self.basin)
        self.drift = 0.5 * self.drift
        push = push_out(self.floe + self.drift, self.tug, self.contact)
        self.drift = self.drift + push
        self.floe = np.clip(self.floe + self.drift, -self.basin, self.basin)

    def observe(self) -> Array:
        self.wind += float(self.np_random.normal(0, 0.3))
        (east, north), (gap_east, gap_north) = self.tug, self.floe - self.tug
        motion = [self.velocity[1], self.velocity[0], self.drift[1], self.drift[0]]
        return np.array([north, east, *motion, gap_north, gap_east, self.wind, self.floe[1], self.floe[0]])


def tug_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        tug, velocity, drift, floe = seen[1::-1], seen[3:1:-1], seen[5:3:-1], seen[10:8:-1]
        way = toward_push(tug, floe + 0.5 * drift, observation["desired_goal"], TugFloe.contact, 4.0)
        wanted = 0.5 * way
        wanted *= min(1.0, 3.0 / max(1e-9, float(np.linalg.norm(wanted))))
        return (20 * clipped(*(wanted - 0.7 * velocity) / 1.1)).astype(np.float32)

    return act


class FireHall(SizedTask):
    """A robot drives to a place in a hall with three fires, in metres. It fails for good when it is 80 degrees hot."""

    numbers, thing, near = (11, 2, 2), "at", 0.35
    size, hottest = np.array([12.0, 8.0]), 80.0

    def begin(self) -> None:
        while True:
            self.at, self.goal = self.place(0.5, self.size - 0.5), self.place(0.5, self.size - 0.5)
            self.fires = np.array([self.place(1.0, self.size - 1.0) for _ in range(3)])
            self.fires[0] = 0.5 * (self.at + self.goal) + self.place(-0.7, 0.7)
            away = [np.linalg.norm(self.fires - place, axis=1).min() for place in (self.at, self.goal)]
            apart = np.linalg.norm(self.fires - np.roll(self.fires, 1, 0), axis=1).min()
            if min(away) > 2.2 and apart > 3.6:
                break
        self.velocity, self.heat = np.zeros(2), float(self.np_random.uniform(18, 26))

    def move(self, action: Array) -> None:
        if self.heat >= self.hottest:
            self.velocity = np.zeros(2)
            return
        self.velocity = 0.4 * self.velocity + 0.3 * action
        self.at = np.clip(self.at + self.velocity, 0, self.size)
        near = np.square(self.fires - self.at).sum(1)
        self.heat = min(self.hottest, self.heat + 45 * float(np.exp(-near).sum()) - 0.1 * (self.heat - 20))

    def observe(self) -> Array:
        return np.array([self.heat, *(self.fires - self.at).ravel(), *self.velocity, *self.at])


def fire_script() -> Any:
    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        fires, velocity, at = seen[1:7].reshape(3, 2), seen[7:9], seen[9:]
        way = observation["desired_goal"] - at
        far = float(np.linalg.norm(way))
        angle = float(np.arctan2(way[1], way[0]))
        steps = np.linspace(0.3, max(0.3, min(2.0, far)), 6)[:, None]
        best, cost = way, np.inf
        for turn in np.linspace(-np.pi, np.pi, 49):
            path = steps * unit(angle + turn)
            room = np.linalg.norm(path[:, None] - fires, axis=-1).min()
            is_out = ((at + path < 0) | (at + path > FireHall.size)).any()
            swing = 0.15 * np.linalg.norm(unit(angle + turn) - velocity / 0.5)
            price = abs(turn) + swing + 8 * max(0.0, 1.6 - room) + 9 * is_out
            if price < cost:
                best, cost = min(far, 1.0) * unit(angle + turn), price
        return clipped(*(0.5 * best - 0.4 * velocity) / 0.3)

    return act


class GearLock(DiscreteTask):
    """A lock with three dials of ten digits. A dial that is turned turns the next one the other way.

    Actions: wait, and turn a dial up or down.
    """

    dials, digits = 3, 10

    def __init__(self) -> None:
        code = numbers(self.digits - 1, self.dials)
        self.observation_space = spaces.Dict(observation=code, achieved_goal=code, desired_goal=code)
        self.action_space = spaces.Discrete(1 + 2 * self.dials)  # type: ignore[assignment]

    def begin(self) -> None:
        self.state = tuple(self.np_random.integers(0, self.digits, self.dials).tolist())
        self.goal = np.array(self.state)
        while (self.goal == self.state).all():
            self.goal = self.np_random.integers(0, self.digits, self.dials)

    def after(self, state: tuple[int, ...]) -> list[tuple[int, ...]]:
        found = [state]
        for dial in range(self.dials):
            for turn in (1, -1):
                digits = list(state)
                digits[dial] = (digits[dial] + turn) % self.digits
                if dial + 1 < self.dials:
                    digits[dial + 1] = (digits[dial + 1] - turn) % self.digits
                found.append(tuple(digits))
        return found

    def seen(self) -> Seen:
        return {key: np.array(self.state) for key in ("observation", "achieved_goal")} | {"desired_goal": self.goal.copy()}


def lock_script() -> Any:
    def act(observation: Observation) -> int:
        carry = 0
        for dial, turn in enumerate(observation["desired_goal"] - observation["achieved_goal"]):
            carry = (int(turn) + carry) % GearLock.digits
            if carry:
                return 1 + 2 * dial + (carry > GearLock.digits // 2)
        return 0

    return act


class LakeFish(SizedTask):
    """A warden brings the numbers of trout and pike in a lake to given ones. The pike eat trout; trout grow in summer.

    Actions, one in a week: nothing, stock trout, catch trout, stock pike, catch pike.
    """

    numbers = (5, 2, 1)
    changes = np.array([[0, 0], [400, 0], [-400, 0], [0, 50], [0, -50]], np.float64)
    near_each = np.array([350.0, 45.0])

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(len(self.changes))

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.change = self.changes[int(action)]
        return super().step(0.0)

    def begin(self) -> None:
        self.fish, self.goal = (self.place([2000, 150], [8000, 700]) for _ in range(2))
        while (np.abs(self.fish - self.goal) < 3 * self.near_each).all():
            self.goal = self.place([2000, 150], [8000, 700])
        self.week = int(self.np_random.integers(52))

    def warmth(self) -> float:
        return 12 - 8 * float(np.cos(2 * np.pi * self.week / 52))  # degrees

    def move(self, action: Array) -> None:
        self.week = (self.week + 1) % 52
        trout, pike = self.fish
        growth = 0.004 * self.warmth() * trout * (1 - trout / 10_000) - 5e-5 * trout * pike
        born = pike * (5e-6 * trout - 0.02)
        self.fish = np.clip(self.fish + self.change + np.array([growth, born]), [200, 20], [12_000, 1_500])

    def observe(self) -> Array:
        oxygen = 14 - 0.25 * self.warmth() + self.np_random.normal(0, 0.4)  # milligrams in a litre
        return np.array([self.week, self.warmth(), self.fish[1], self.fish[0], oxygen], np.float64)

    def achieved(self) -> Array:
        return self.fish.copy()

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near_each).all(-1)


def lake_script() -> Any:
    def act(observation: Observation) -> int:
        lack = (observation["desired_goal"] - observation["achieved_goal"]) / np.array([400, 50])
        which = int(np.argmax(np.abs(lack)))
        return 0 if abs(lack[which]) < 0.5 else 1 + 2 * which + int(lack[which] < 0)

    return act


class LaserRings(OwnUnits):
    """A laser on a pan-tilt head shoots at a target on a wall: 10, 3 or 1 points for the rings, in centimetres on the wall.

    Actions: wanted speeds of pan and tilt in degrees per step.
    """

    numbers, thing, near = (7, 2, 2), "spot", 8.0
    limits = ((-6.0, -6.0), (6.0, 6.0))
    wall, rings = 300.0, ((40.0, 1.0), (20.0, 2.0), (8.0, 7.0))  # distance of the wall; radius and further points

    def begin(self) -> None:
        self.head, self.rate, self.clock = self.place(-30, 30), np.zeros(2), 0
        self.aim()
        self.goal = self.spot
        while np.linalg.norm(self.goal - self.spot) < 45:
            self.goal = self.place([-160, -110], [160, 110])

    def aim(self) -> None:
        pan, tilt = np.radians(self.head)
        self.spot = self.wall * np.array([np.tan(pan), np.tan(tilt) / np.cos(pan)])

    def move(self, action: Array) -> None:
        self.clock += 1
        self.rate = 0.5 * self.rate + 0.5 * 6.0 * action
        before = self.head
        self.head = np.clip(before + self.rate, -40, 40)
        self.rate = self.head - before
        self.aim()

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        miss = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return sum((points * (miss <= radius) for radius, points in self.rings), np.zeros(miss.shape))

    def observe(self) -> Array:
        (pan, tilt), light = self.head, 300 + self.np_random.normal(0, 20)  # lux
        return np.array([tilt, self.rate[1], pan, self.rate[0], light, self.clock / 40, self.wall / 100])


def laser_script() -> Any:
    def act(observation: Observation) -> Array:
        tilt, tilt_rate, pan, pan_rate = observation["observation"][:4]
        x, y = observation["desired_goal"] / LaserRings.wall
        to_pan = np.arctan(x)
        to = np.degrees([to_pan, np.arctan(y * np.cos(to_pan))])
        wanted = 0.6 * (to - [pan, tilt])
        command: Array = np.clip((wanted - 0.5 * np.array([pan_rate, tilt_rate])) / 0.5, -6, 6)
        return command.astype(np.float32)

    return act


class SlotProbe(OwnUnits):
    """A probe measures places in and above the four slots of a workpiece, in millimetres. Ribs stop it.

    Actions: where the probe should go; it moves at most 8 mm in a step.
    """

    numbers, thing, near = (5, 2, 2), "at", 4.0
    limits = ((0.0, 0.0), (120.0, 90.0))
    ribs, top, half_rib, speed = np.array([30.0, 60.0, 90.0]), 45.0, 5.0, 8.0  # half_rib: with the radius of the probe

    def begin(self) -> None:
        start = int(self.np_random.integers(4))
        other = (start + int(self.np_random.integers(1, 4))) % 4
        self.at = self._in_slot(start)
        self.goal = self._in_slot(other) if self.np_random.random() < 0.75 else self.place([3, 52], [117, 87])
        self.travel, self.touches = np.zeros(2), False

    def _in_slot(self, slot: int) -> Array:
        return np.array([30 * slot + 15 + self.np_random.uniform(-8, 8), self.np_random.uniform(4, 40)])

    def _is_free(self, x: float, y: float) -> bool:
        return bool(y > self.top or (np.abs(self.ribs - x) > self.half_rib).all())

    def move(self, action: Array) -> None:
        before, way = self.at, self.middle + self.half * action - self.at
        way = way * min(1.0, self.speed / max(1e-9, float(np.linalg.norm(way)))) / 4
        self.touches = False
        for _ in range(4):
            (x, y), (dx, dy) = self.at, way
            ahead = x + dx if self._is_free(x + dx, y) else x
            up = y + dy if self._is_free(ahead, y + dy) else y
            self.touches |= bool(ahead != x + dx or up != y + dy)
            self.at = np.clip([ahead, up], [0, 0], [120, 90])
        self.travel = self.at - before

    def observe(self) -> Array:
        return np.array([self.at[1], self.travel[1], float(self.touches), self.at[0], self.travel[0]])


def probe_script() -> Any:
    def act(observation: Observation) -> Array:
        at, goal = observation["achieved_goal"], observation["desired_goal"]
        slots = [int(place[0] // 30) if place[1] < 48 else None for place in (at, goal)]
        if slots[0] == slots[1]:
            to = goal
        elif slots[0] is not None:
            to = np.array([at[0], 56.0])
        else:
            to = goal if abs(at[0] - goal[0]) < 1 else np.array([goal[0], 56.0])
        return np.asarray(to, np.float32)

    return act


TASKS: tuple[Task, ...] = (
    Task("OvenDoor-v0", "pull", "closed", OvenDoor, 50, oven_script),
    Task("TugFloe-v0", "push", "closed", TugFloe, 80, tug_script),
    Task("FireHall-v0", "fragile", "closed", FireHall, 70, fire_script),
    Task("GearLock-v0", "discrete", "closed", GearLock, 40, lock_script),
    Task("LakeFish-v0", "not-a-robot", "closed", LakeFish, 60, lake_script),
    Task("LaserRings-v0", "rewards", "closed", LaserRings, 40, laser_script),
    Task("SlotProbe-v0", "obstacles", "closed", SlotProbe, 60, probe_script),
)
