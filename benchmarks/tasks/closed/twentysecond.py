"""Three closed tasks: rovers with a radio, an anchor, and a globe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, OwnUnits, SizedTask, clipped, unit
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


TASKS: tuple[Task, ...] = (
    Task("RadioRelay-v0", "several-bodies", "closed", RadioRelay, 60, drive_rovers),
    Task("GaleAnchor-v0", "later", "closed", GaleAnchor, 70, ride_out),
    Task("GlobeRollers-v0", "angles", "closed", GlobeRollers, 40, roll_globe),
)
