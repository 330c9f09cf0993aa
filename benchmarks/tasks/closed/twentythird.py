"""Five closed tasks: rovers with a radio, a hopper, an anchor, a globe, and capacitors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, clipped, unit
from ..open.grids import DiscreteTask
from ..task import Observation, Task


class RadioRelay(SizedTask):
    """A scout and a relay, two rovers, drive around a hill to a place each, in metres. A station guides both by radio.

    The scout stops while no radio reaches it, from the station or by the relay; the hill shadows the radio. Actions: the
    velocities of the scout and of the relay.
    """

    numbers, thing = (8, 4, 4), "rovers"
    station, scope, hill_radius, pace, near = np.array([50.0, 2.0]), 70.0, 16.0, 5.0, 7.0

    def begin(self) -> None:
        self.hill = self.place([40, 38], [60, 50])
        self.scout, self.relay = self.station + np.array([[-8, 6], [8, 6]])
        self.speeds = np.zeros(4)
        self.goal = self.hill.repeat(2)
        while not self._is_fair(self.goal[:2], self.goal[2:]):
            self.goal = np.concatenate([self.place([15, 60], [85, 95]), self.place([8, 25], [92, 80])])

    def _is_fair(self, scout: Array, relay: Array) -> bool:
        is_clear = all(np.linalg.norm(place - self.hill) > self.hill_radius + 5 for place in (scout, relay))
        return is_clear and self.hears(relay, self.station) and self.hears(scout, relay)

    def hears(self, one: Array, other: Array) -> bool:
        """Return whether the radio at one place reaches another place."""
        way, to_hill = other - one, self.hill - one
        part = min(1.0, max(0.0, float(way @ to_hill) / max(1e-9, float(way @ way))))
        return bool(np.linalg.norm(way) <= self.scope and np.linalg.norm(to_hill - part * way) >= self.hill_radius - 4)

    @property
    def is_guided(self) -> bool:
        """Whether radio reaches the scout."""
        hears_relay = self.hears(self.relay, self.scout) and self.hears(self.station, self.relay)
        return self.hears(self.station, self.scout) or hears_relay

    @property
    def rovers(self) -> Array:
        return np.concatenate([self.scout, self.relay])

    def move(self, action: Array) -> None:
        wish = self.pace * action * np.repeat([self.is_guided, True], 2)
        self.speeds = 0.4 * self.speeds + 0.6 * wish
        self.scout, self.relay = (self._free(place) for place in (self.rovers + self.speeds).reshape(2, 2))

    def _free(self, place: Array) -> Array:
        gap = np.clip(place, 0, 100) - self.hill
        return self.hill + gap * max(1.0, self.hill_radius / max(1e-9, float(np.linalg.norm(gap))))

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return (np.linalg.norm(gaps, axis=-1) <= self.near).all(-1)

    def observe(self) -> Array:
        return np.array([*self.hill, *self.speeds, self.is_guided, self.hears(self.station, self.relay)], np.float64)


def drive_rovers() -> Any:
    """Drive the relay to its place. The scout drives there, too, and from there, or from where it sees it, to its own."""
    is_past = False

    def act(observation: Observation) -> Array:
        nonlocal is_past
        hill, now, goal = observation["observation"][:2], observation["achieved_goal"], observation["desired_goal"]
        at, relay_way, way = now[:2], goal[2:] - now[2:], goal[:2] - now[:2]
        part = min(1.0, max(0.0, float(way @ (hill - at)) / max(1e-9, float(way @ way))))
        is_hidden = np.linalg.norm(hill - at - part * way) < RadioRelay.hill_radius - 1
        is_there = np.linalg.norm(relay_way) <= 4
        is_past = is_past or bool(np.linalg.norm(goal[2:] - at) < 4 or (is_there and not is_hidden))
        if not is_past:
            way = goal[2:] - at
        return clipped(*0.5 * np.concatenate([way, relay_way]) / RadioRelay.pace)

    return act


class LedgeHopper(SizedTask):
    """A robot, seen from the side, runs and hops up three ledges, through which it jumps from below, to a place in metres.

    There the episode ends. Actions: left, nothing or right, and the same three with a hop.
    """

    numbers, thing = (9, 2, 1), "at"
    heights, half, width = np.array([0.0, 1.2, 2.4, 3.6]), 0.8, 8.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(6)

    def begin(self) -> None:
        middles = [self.np_random.uniform(2.5, 5.5)]
        while len(middles) < 3:
            middle = middles[-1] + self.np_random.uniform(1.0, 2.0) * self.np_random.choice([-1, 1])
            middles += [middle] if 0.8 < middle < self.width - 0.8 else []
        self.middles = np.array([0.5 * self.width, *middles])
        self.halves = np.array([0.5 * self.width, *[self.half] * 3])
        level, place = int(self.np_random.choice(4, p=[0.05, 0.1, 0.35, 0.5])), self.np_random.uniform(-0.8, 0.8)
        self.goal = np.array([self.middles[level] + place * self.halves[level], self.heights[level]])
        self.at, self.speed, self.is_standing = np.array([self.goal[0], 0.0]), np.zeros(2), True
        while abs(self.at[0] - self.goal[0]) < 1.5:
            self.at[0] = self.np_random.uniform(0.3, self.width - 0.3)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.array([int(action) % 3 - 1, int(action) // 3]))

    def move(self, action: Array) -> None:
        run = self.speed[0] + 0.8 * action[0] if self.is_standing else self.speed[0] + 0.4 * action[0]
        run = 0.4 * self.speed[0] if self.is_standing and not action[0] else min(3.0, max(-3.0, run))
        rise = 6.2 if self.is_standing and action[1] else self.speed[1]
        before, rise = self.at[1], rise - 0.98
        x, z = min(self.width, max(0.0, self.at[0] + 0.1 * run)), before + 0.1 * rise
        is_above = (before >= self.heights - 1e-9) & (z <= self.heights) & (np.abs(x - self.middles) <= self.halves)
        self.is_standing = bool(rise < 0 and is_above.any())
        if self.is_standing:
            z, rise = float(self.heights[is_above].max()), 0.0
        self.at, self.speed = np.array([x, z]), np.array([run, rise])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= [0.2, 0.02]).all(-1)

    def is_over(self) -> bool:
        return bool(self.is_met(self.at, self.goal))

    def observe(self) -> Array:
        motor = 40 + self.np_random.normal()  # degrees Celsius
        return np.array([*self.speed, *(self.middles[1:] - self.at[0]), float(self.is_standing), motor, *self.at])


def hop() -> Any:
    """Hop from ledge to ledge, then run to the place."""
    level = 0  # of the ledge on which it stands or stood

    def act(observation: Observation) -> int:
        nonlocal level
        run, _, *gaps, is_standing, _, x, z = observation["observation"]
        goal, wished = observation["desired_goal"][0], round(observation["desired_goal"][1] / 1.2)
        level, is_hop = round(z / 1.2) if is_standing else level, False
        upper = min(wished, level + 1)
        gap = goal - x if upper == wished and (level == wished or not is_standing) else gaps[upper - 1]
        if is_standing and level > wished:  # run off
            gap = -math.copysign(2, gaps[level - 1])
        elif is_standing and level < wished:
            to_edge = 0.8 + math.copysign(1, gap) * gaps[level - 1] if level else 9.0
            is_hop = abs(gap) < (1.2 if level else 0.9) or to_edge < 0.35
        wish = gap - run * abs(run) / (12 if is_standing else 8)
        return 3 * is_hop + (1 if abs(wish) < 0.08 else 2 if wish > 0 else 0)

    return act


class GaleAnchor(OwnUnits):
    """A launch goes to a place in a roadstead, in metres, and has to ride out a gale there, which it can do at anchor only.

    The barometer tells when the gale will come. Actions: thrust to the east and to the north in kilonewtons, and metres of
    chain that the windlass pays out or hauls in. An anchor with less than 25 of 30 metres of chain doesn't hold.
    """

    numbers, thing, near = (8, 2, 3), "boat", 8.0
    limits = ((-4.0, -4.0, -6.0), (4.0, 4.0, 6.0))

    def begin(self) -> None:
        self.boat, self.speed = self.place(20, 180), np.zeros(2)
        self.goal = self.boat
        while not 30 < np.linalg.norm(self.goal - self.boat) < 110:
            self.goal = self.place(15, 185)
        self.chain = 30.0 if self.np_random.random() < 0.5 else 0.0
        self.left, self.gale = int(self.np_random.integers(38, 48)), unit(self.np_random.uniform(-np.pi, np.pi))

    def move(self, action: Array) -> None:
        self.left = max(0, self.left - 1)
        self.chain = min(30.0, max(0.0, self.chain + 6 * action[2]))
        force = 4 * action[:2] + (9 * self.gale if self.left == 0 else 0)
        self.speed = (0.8 * self.speed + 0.35 * force) * (self.chain < 25)
        self.boat = np.clip(self.boat + self.speed, -50, 250)

    def observe(self) -> Array:
        wind = 3 * self.np_random.normal(size=2) + (20 * self.gale if self.left < 8 else 0)
        return np.array([self.chain, *self.speed, *self.boat[::-1], 980 + self.left, *wind])


def ride_out() -> Any:
    """Weigh anchor, go to the place, stop, and drop the anchor."""

    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        speed, is_there = seen[1:3], bool(np.linalg.norm(way) < 4)
        thrust = (0.2 * way - 0.8 * speed) / 0.35
        return np.array([*np.clip(thrust, -4, 4), 6 if is_there else -6], np.float32)

    return act


class GlobeRollers(SizedTask):
    """Two rollers under a globe turn it about two fixed axes until a wished place of the earth is on its top.

    The goal is a longitude and a latitude in degrees. The observation tells which place is at the front, as a vector.
    """

    numbers, thing, near = (5, 2, 2), "top", 6.0
    fastest = math.radians(10)

    def begin(self) -> None:
        self.turn, _ = np.linalg.qr(self.np_random.normal(size=(3, 3)))  # rows: the front, left and top of the globe
        self.turn[1] = np.cross(self.turn[2], self.turn[0])
        self.rates, self.goal = np.zeros(2), self.top
        while _apart(self.goal, self.top) < 40:
            self.goal = self.place([-180, -65], [180, 65])

    @property
    def top(self) -> Array:
        x, y, z = self.turn[2]
        return np.degrees([math.atan2(y, x), math.asin(min(1.0, max(-1.0, z)))])

    def move(self, action: Array) -> None:
        slip = self.np_random.uniform(0.9, 1.0)
        self.rates = 0.5 * self.rates + 0.5 * self.fastest * action
        angle = float(np.linalg.norm(self.rates)) * slip
        axis = np.array([*self.rates, 0]) / max(1e-9, float(np.linalg.norm(self.rates)))
        cross = np.cross(np.eye(3), axis)  # cross @ v == axis x v
        front, _, top = (np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross) @ self.turn
        top = top / np.linalg.norm(top)
        front = front - (front @ top) * top
        front = front / np.linalg.norm(front)
        self.turn = np.array([front, np.cross(top, front), top])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return _apart(achieved_goal, desired_goal) <= self.near

    def observe(self) -> Array:
        return np.array([*np.degrees(self.rates), *self.turn[0]])


def _vector(place: Array) -> Array:
    longitude, latitude = np.moveaxis(np.radians(place), -1, 0)
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], -1)


def _apart(one: Array, other: Array) -> Any:
    """Return the angle between two places of the earth in degrees."""
    return np.degrees(np.arccos(np.clip((_vector(one) * _vector(other)).sum(-1), -1, 1)))


def roll_globe() -> Any:
    """Turn about the level axis on which the wished place comes to the top."""

    def act(observation: Observation) -> Array:
        front, top = observation["observation"][2:5], _vector(observation["achieved_goal"])
        wished = _vector(observation["desired_goal"])
        ahead, left = float(front @ wished), float(np.cross(top, front) @ wished)
        far = math.atan2(math.hypot(ahead, left), float(top @ wished))
        return clipped(*np.array([left, -ahead]) / max(1e-9, math.hypot(ahead, left)) * 0.6 * far / GlobeRollers.fastest)

    return act


class CapacitorBank(DiscreteTask):
    """Switches charge and drain a chain of three capacitors through resistors until each has its wished voltage.

    Actions, for a moment each: nothing, the source (5 V) to the first, the first to the second, the second to the third,
    the third to earth, the first to earth.
    """

    farads, near, source = (1.0, 0.8, 0.6), 0.3, 5.0

    def __init__(self) -> None:
        seen, goal = (spaces.Box(-np.inf, np.inf, (size,), np.float64) for size in (5, 3))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(6)  # type: ignore[assignment]

    def begin(self) -> None:
        self.state, self.goal = np.sort(self.np_random.uniform(0, 4, 3))[::-1], np.zeros(3)
        self.goal = self.state
        while np.abs(self.goal - self.state).max() < 1.5:
            self.goal = self.np_random.uniform(0.7, 3.8, 3)

    @classmethod
    def after(cls, state: Array) -> list[Any]:
        kept = 0.9995 * state
        first, last, found = kept.copy(), kept.copy(), [kept]
        charged = kept.copy()
        charged[0] += 0.3 * (cls.source - kept[0])
        first[0], last[2] = 0.75 * kept[0], 0.88 * kept[2]
        for one in (0, 1):
            shared, (here, there) = kept.copy(), cls.farads[one : one + 2]
            charge = 0.8 * (kept[one] - kept[one + 1]) * here * there / (here + there)
            shared[one : one + 2] += np.array([-charge / here, charge / there])
            found.append(shared)
        return [found[0], charged, *found[1:], last, first]

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near).all(-1).astype(np.float64) - 1

    def seen(self) -> Seen:
        hum, last = self.np_random.normal(0, 0.1), self.state[::-1]
        return {
            "observation": np.array([*last, hum, self.state.mean()]),
            "achieved_goal": self.state.copy(),
            "desired_goal": self.goal.copy(),
        }


def charge() -> Any:
    """Set the third, the second and the first one, in this order."""

    def act(observation: Observation) -> int:
        (first, second, third), (one, two, three) = now, goal = observation["achieved_goal"], observation["desired_goal"]
        if np.abs(now - goal).max() < 0.29:
            return 0
        if third > three + 0.22:
            return 4
        if third < three - 0.22:
            return 3 if second > third + 0.4 else 2 if first > second + 0.6 else 1
        if abs(second - two) > 0.22:
            is_low = second < two
            return 2 if (first > second + 0.5 if is_low else first < 0.6 * second) else 1 if is_low else 5
        return 1 if first < one else 5

    return act


TASKS: tuple[Task, ...] = (
    Task("RadioRelay-v0", "several-bodies", "closed", RadioRelay, 60, drive_rovers),
    Task("LedgeHopper-v0", "obstacles", "closed", LedgeHopper, 70, hop),
    Task("GaleAnchor-v0", "later", "closed", GaleAnchor, 70, ride_out),
    Task("GlobeRollers-v0", "angles", "closed", GlobeRollers, 40, roll_globe),
    Task("CapacitorBank-v0", "not-a-robot", "closed", CapacitorBank, 70, charge),
)
