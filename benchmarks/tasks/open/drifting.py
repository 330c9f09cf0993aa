"""Open tasks: objects that move by themselves, on a rolling deck and in space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..task import Observation, Task
from .base import Array, SizedTask, clipped, push_out, toward_push


class DeckCrate(SizedTask):
    """A finger pushes a crate on the deck of a ship that rolls. Where the deck is steep, the crate slides down.

    The episode ends when the crate is in its place. Actions: the velocity of the finger.
    """

    numbers, thing, near = (9, 2, 2), "crate", 0.06
    radius, pace, edge, hold, give = 0.09, 0.05, 0.5, 4.0, 0.003

    def begin(self) -> None:
        self.crate = self.goal = self.place(-0.35, 0.35)
        while np.linalg.norm(self.goal - self.crate) < 0.2:
            self.goal = self.place(-0.4, 0.4)
        self.finger = self.crate
        while not 0.12 < np.linalg.norm(self.finger - self.crate) < 0.35:
            self.finger = self.place(-0.55, 0.55)
        self.most, period, self.phase = self.np_random.uniform([5, 16, 0], [8, 26, 2 * np.pi])
        self.beat, self.slide = 2 * np.pi / period, 0.0

    @property
    def tilt(self) -> float:
        """Return the slope of the deck in degrees, toward larger x."""
        return float(self.most * math.sin(self.phase))

    def move(self, action: Array) -> None:
        self.phase += self.beat
        steep = math.copysign(max(0.0, abs(self.tilt) - self.hold), self.tilt)
        self.slide = 0.5 * self.slide + 0.5 * self.give * steep
        self.finger = np.clip(self.finger + self.pace * action, -0.6, 0.6)
        crate = self.crate + np.array([self.slide, 0])
        self.crate = np.clip(crate + push_out(crate, self.finger, self.radius), -self.edge, self.edge)

    def is_over(self) -> bool:
        return bool(self.is_met(self.crate, self.goal))

    def observe(self) -> Array:
        rate = self.most * self.beat * math.cos(self.phase)
        return np.array([self.tilt, *self.finger, rate, *(self.crate - self.finger), 100 * self.slide, *self.crate])


def push_on_deck() -> Any:
    """Push the crate from behind."""

    def act(observation: Observation) -> Array:
        finger, crate = observation["observation"][1:3], observation["achieved_goal"]
        way = toward_push(finger, crate, observation["desired_goal"], DeckCrate.radius, DeckCrate.near)
        return (way / max(DeckCrate.pace, float(np.linalg.norm(way)))).astype(np.float32)

    return act


class SatelliteCatch(SizedTask):
    """A space tug catches a drifting satellite in its claw, when it comes slowly enough, and brings it to a place.

    A closed claw knocks the satellite away. Actions: two thrusts, and a closed (above 0) or open claw.
    """

    numbers, thing, near = (11, 2, 3), "satellite", 0.08
    thrust, kept, reach, gentle, body = 0.016, 0.85, 0.09, 0.06, 0.05

    def begin(self) -> None:
        self.satellite, self.drift = self.place(-0.4, 0.4), self.place(-0.006, 0.006)
        self.tug, self.rate, self.claw, self.is_caught = self.satellite, np.zeros(2), 1.0, False
        while not 0.15 < np.linalg.norm(self.tug - self.satellite) < 0.4:
            self.tug = self.place(-0.6, 0.6)
        self.mass, self.goal = float(self.np_random.uniform(0.3, 1.0)), self.satellite
        while not 0.25 < np.linalg.norm(self.goal - self.satellite) < 0.7:
            self.goal = self.place(-0.5, 0.5)

    def move(self, action: Array) -> None:
        was_open = self.claw > 0.5
        self.claw = float(np.clip(self.claw - math.copysign(0.4, action[2]), 0, 1))
        heavy = 1 + 0.5 * self.mass * self.is_caught
        self.rate = self.kept * self.rate + self.thrust / heavy * action[:2]
        self.tug = self.tug + self.rate
        if self.is_caught:
            self.satellite, self.drift = self.satellite + self.rate, self.rate
            self.is_caught = self.claw <= 0.5
            return
        self.satellite = self.satellite + self.drift
        gap, fast = self.satellite - self.tug, float(np.linalg.norm(self.rate - self.drift))
        if was_open and self.claw <= 0.5 and np.linalg.norm(gap) < self.reach and fast < self.gentle:
            self.is_caught = True
        elif self.claw <= 0.5 and (push := push_out(self.satellite, self.tug, self.body)).any():
            self.satellite, self.drift = self.satellite + push, np.clip(self.drift + 0.3 * push, -0.02, 0.02)

    def observe(self) -> Array:
        gap, slip = self.satellite - self.tug, self.drift - self.rate
        return np.array([*gap, self.claw, *slip, self.is_caught, *self.tug, *self.rate, self.mass])


def catch() -> Any:
    """Fly after the satellite with an open claw, close it, and go to the place."""

    def act(observation: Observation) -> Array:
        seen = observation["observation"]
        gap, slip, rate, mass = seen[:2], seen[3:5], seen[8:10], seen[10]
        if seen[5]:
            wish = 0.2 * (observation["desired_goal"] - observation["achieved_goal"])
            wish *= min(1.0, 0.06 / max(1e-9, float(np.linalg.norm(wish))))
            return clipped(*((wish - 0.85 * rate) * (1 + 0.5 * mass) / SatelliteCatch.thrust), 1)
        distance, drift = float(np.linalg.norm(gap)), slip + rate
        wish = drift + gap * min(0.3, 0.08 / max(distance, 1e-9))
        is_there = distance < 0.06 and np.linalg.norm(slip) < 0.03
        return clipped(*((wish - 0.85 * rate) / SatelliteCatch.thrust), 1 if is_there else -1)

    return act


class CargoBag(SizedTask):
    """A hand in a module of a space station pushes a floating bag, which drifts on and slows down, to a place in the air.

    Lengths are in metres, and the hand is seen from the bag. Actions: the velocity of the hand.
    """

    numbers, thing, near = (7, 3, 3), "bag", 0.15
    contact, pace, room = 0.3, 0.12, np.array([3.0, 2.0, 2.0])

    def begin(self) -> None:
        self.bag, self.drift = self.place(0.5, self.room - 0.5, 3), np.zeros(3)
        self.hand = self.goal = self.bag
        while not 0.4 < np.linalg.norm(self.goal - self.bag) < 1.1:
            self.goal = self.place(0.4, self.room - 0.4, 3)
        while np.linalg.norm(self.hand - self.bag) < 0.45:
            self.hand = self.place(0, self.room, 3)

    def move(self, action: Array) -> None:
        self.hand = np.clip(self.hand + self.pace * action, 0, self.room)
        push = push_out(self.bag, self.hand, self.contact)
        self.bag = np.clip(self.bag + push + self.drift, 0.2, self.room - 0.2)
        self.drift = 0.6 * self.drift + 0.3 * push

    def observe(self) -> Array:
        pressure = 1013 + self.np_random.normal(0, 2)  # hectopascals
        return np.array([*self.drift, pressure, *(self.hand - self.bag)])


def push_bag() -> Any:
    """Go around the bag in the plane of hand, bag and goal, to behind it, and push."""

    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        gap, way = seen[4:], way - 1.5 * seen[:3]
        far = float(np.linalg.norm(way))
        if far < 0.06:
            return np.zeros(3, np.float32)
        ahead = way / far
        along = float(gap @ ahead)
        across = gap - along * ahead
        aside = float(np.linalg.norm(across))
        side = across / aside if aside > 1e-9 else np.zeros(3)
        flat = toward_push(np.array([along, aside]), np.zeros(2), np.array([far, 0.0]), CargoBag.contact, 0.1)
        return clipped(*(0.6 / CargoBag.pace * (flat[0] * ahead + flat[1] * side)))

    return act


TASKS: tuple[Task, ...] = (
    Task("DeckCrate-v0", "push", "open", DeckCrate, 60, push_on_deck),
    Task("SatelliteCatch-v0", "grasp", "open", SatelliteCatch, 60, catch),
    Task("CargoBag-v0", "push", "open", CargoBag, 60, push_bag),
)
