"""Ten closed tasks: a gantry, an oven, an ice floe, fires, a lock, a lake, a laser, a brush, slots, and a pump room."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, push_out, toward_push, unit
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class OwnUnits(SizedTask):
    """A task whose actions have their own lower and upper limits; `move` receives them in these units."""

    limits: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    def __init__(self) -> None:
        super().__init__()
        low, high = (np.array(limit) for limit in self.limits)
        self.action_space = spaces.Box(low.astype(np.float32), high.astype(np.float32))
        self.middle, self.half = 0.5 * (low + high), 0.5 * (high - low)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step((np.asarray(action, np.float64) - self.middle) / self.half)


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
    Task("BoltGantry-v0", "grasp", "closed", BoltGantry, 50, gantry_script),
    Task("OvenDoor-v0", "pull", "closed", OvenDoor, 50, oven_script),
    Task("TugFloe-v0", "push", "closed", TugFloe, 80, tug_script),
    Task("FireHall-v0", "fragile", "closed", FireHall, 70, fire_script),
    Task("GearLock-v0", "discrete", "closed", GearLock, 40, lock_script),
    Task("LakeFish-v0", "not-a-robot", "closed", LakeFish, 60, lake_script),
    Task("LaserRings-v0", "rewards", "closed", LaserRings, 40, laser_script),
    Task("PaintDot-v0", "later", "closed", PaintDot, 60, paint_script),
    Task("SlotProbe-v0", "obstacles", "closed", SlotProbe, 60, probe_script),
    Task("PumpRoom-v0", "several-objects", "closed", PumpRoom, 80, pump_script),
)
