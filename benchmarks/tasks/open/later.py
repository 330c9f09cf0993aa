"""Columns that matter later: a key that opens the brake of a puck, a battery that runs empty, and a rod with a magnet."""

from __future__ import annotations

import numpy as np

from ..task import Observation, Task
from .base import Array, GoalTask, push_out, toward_push, unit

SPEED, RADIUS = 0.08, 0.12


class KeyAndPuck(GoalTask):
    """A disc pushes a puck. The puck stands still until the disc was at the key. Two columns are noise."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(9, 2, 2)

    def begin(self) -> None:
        """Place the key and the puck around the disc."""
        self.disc, self.goal = self.place(-0.05, 0.05), self.place(-0.5, 0.5)
        first = self.np_random.uniform(0, 2 * np.pi)
        self.key, self.puck = 0.22 * unit(first), 0.3 * unit(first + self.np_random.uniform(1, 2 * np.pi - 1))
        self.is_open = False

    def move(self, action: Array) -> None:
        """Move the disc, and the puck once it is free."""
        self.disc = self.disc + SPEED * action
        self.is_open = self.is_open or bool(np.linalg.norm(self.disc - self.key) < RADIUS)
        if self.is_open:
            self.puck = self.puck + push_out(self.puck, self.disc, RADIUS)

    def observe(self) -> Array:
        """Return disc, noise, key, whether the puck is free, and the puck."""
        return np.concatenate([self.disc, self.np_random.normal(size=2), self.key, [float(self.is_open)], self.puck])

    def achieved(self) -> Array:
        """Return the position of the puck."""
        return self.puck.copy()


def fetch_key(observation: Observation) -> Array:
    """Go to the key first, then push."""
    seen = observation["observation"]
    disc, key, puck = seen[:2], seen[4:6], seen[7:9]
    way = toward_push(disc, puck, observation["desired_goal"], RADIUS, KeyAndPuck.near) if seen[6] else key - disc
    return (way / max(SPEED, float(np.linalg.norm(way)))).astype(np.float32)


class Battery(GoalTask):
    """A cart drives to a place. Its battery runs empty on the way unless it waits at the charger when it is low."""

    near = 0.1

    def __init__(self) -> None:
        super().__init__(5, 2, 2)

    def begin(self) -> None:
        """Draw places and what is left in the battery, enough for the way to the charger."""
        self.charger, self.at, self.goal = np.zeros(2), self.place(-0.9, 0.9), self.place(-0.9, 0.9)
        self.charge = float(np.linalg.norm(self.at)) + float(self.np_random.uniform(0.1, 0.6))

    def move(self, action: Array) -> None:
        """Drive as far as the battery allows."""
        step = 0.1 * action
        length = float(np.linalg.norm(step))
        self.at = np.clip(self.at + step * min(1.0, self.charge / max(length, 1e-9)), -1, 1)
        self.charge = max(0.0, self.charge - length)
        if np.linalg.norm(self.at - self.charger) < 0.15:
            self.charge = min(2.0, self.charge + 0.5)

    def observe(self) -> Array:
        """Return the position, the charge, and the charger."""
        return np.array([*self.at, self.charge, *self.charger])

    def achieved(self) -> Array:
        """Return the position."""
        return self.at.copy()


def charge_first(observation: Observation) -> Array:
    """Drive to the charger if the charge does not suffice for the goal."""
    at, charge, goal = observation["observation"][:2], observation["observation"][2], observation["desired_goal"]
    target = goal if charge > np.linalg.norm(goal - at) - 0.05 else np.zeros(2)
    way = target - at
    return (way / max(0.1, float(np.linalg.norm(way)))).astype(np.float32)


class MagnetRod(GoalTask):
    """A hand with a short reach takes a rod with a magnet at its end, and draws a steel plate to a place with it."""

    reach, length = 0.08, 0.3

    def __init__(self) -> None:
        super().__init__(9, 2, 3)

    def begin(self) -> None:
        """Place the hand near the handle of the rod, and the plate beyond its reach."""
        draw = self.np_random.uniform
        self.rod = np.array([draw(-0.3, -0.05), draw(-0.2, 0.2)])
        self.plate = self.goal = np.array([draw(0.2, 0.4), draw(-0.25, 0.25)])
        while np.linalg.norm(self.goal - self.plate) < 0.12:
            self.goal = draw([0.0, -0.3], [0.42, 0.3])
        self.hand = self.rod + draw(0.08, 0.2) * unit(draw(-np.pi, np.pi))
        self.is_closed, self.volts = 0.0, draw(11.5, 12.5)

    def _to_plate(self) -> float:
        """Return the distance from the magnet to the plate."""
        return float(np.linalg.norm(self.rod - self.plate + np.array([self.length, 0])))

    def move(self, action: Array) -> None:
        """Move the hand, with it the rod that it holds, and with that the plate that hangs at the magnet."""
        self.volts -= 0.005
        self.is_closed = float(action[2] > 0)
        is_held = self.is_closed and np.linalg.norm(self.hand - self.rod) < self.reach
        before = self.hand
        self.hand = np.clip(before + 0.05 * action[:2], [-0.5, -0.4], [0.15, 0.4])
        if is_held:
            if self._to_plate() < self.reach:
                self.plate = self.plate + self.hand - before
            self.rod = self.rod + self.hand - before

    def observe(self) -> Array:
        """Return the hand, the plate, the battery, the rod, and the field that a sensor beside the magnet measures."""
        field = 1 / (1 + (self._to_plate() / self.reach) ** 2)
        return np.array([*self.hand, self.is_closed, *self.plate, self.volts, *self.rod, field])

    def achieved(self) -> Array:
        """Return the position of the plate."""
        return self.plate.copy()


def draw_plate(observation: Observation) -> Array:
    """Take the rod, lead its magnet to the plate, then the plate to its goal."""
    seen = observation["observation"]
    hand, plate, rod = seen[:2], seen[3:5], seen[6:8]
    way, grip = rod - hand, -1
    if np.linalg.norm(way) <= 0.7 * MagnetRod.reach:
        hangs = seen[8] > 0.5
        way, grip = observation["desired_goal"] - plate if hangs else plate - rod - [MagnetRod.length, 0], 1
    return np.array([*(way / max(0.05, float(np.linalg.norm(way)))), grip], np.float32)


TASKS = (
    Task("KeyAndPuck-v0", "later", "open", KeyAndPuck, 50, lambda: fetch_key),
    Task("Battery-v0", "later", "open", Battery, 50, lambda: charge_first),
    Task("MagnetRod-v0", "later", "open", MagnetRod, 60, lambda: draw_plate),
)
