"""Closed tasks: a catheter, a balloon, a roller blind, and a boat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..open.base import Array, SizedTask, clipped, wrapped
from ..task import Observation, Task


class CatheterTree(SizedTask):
    """The tip of a catheter is fed and turned through a vessel that branches twice, from the puncture into a branch. Pulled
    back, the tip goes to the last fork, and on to the one before. It bends but slowly. Millimetres.
    """

    numbers, thing, near = (5, 2, 2), "tip", 2.5
    nodes = np.array([[0, 0], [0, 30], [-20, 50], [20, 55], [-40, 58], [-12, 78], [10, 82], [42, 66]], np.float64)
    parent, widths = (0, 0, 1, 1, 2, 2, 3, 3), np.array([5.0, 4, 4, 3, 3, 3, 3])  # vessel k ends at the node k + 1
    origins = nodes[list(parent[1:])]
    lines = nodes[1:] - origins

    def begin(self) -> None:
        self.tip, self.heading = np.array([0.0, 2.0]), math.pi / 2 + self.np_random.uniform(-0.6, 0.6)
        self.vessel, self.free, at = 0, 5.0, int(self.np_random.integers(1, 7))
        self.goal = self.origins[at] + self.np_random.uniform(0.35, 1.0) * self.lines[at]

    @classmethod
    def nearest(cls, place: Array) -> tuple[int, Array, float]:
        """Return the vessel of a place, the nearest point of its centre line, and how far within the wall the place is."""
        share = np.clip(((place - cls.origins) * cls.lines).sum(1) / (cls.lines**2).sum(1), 0, 1)
        points = cls.origins + share[:, None] * cls.lines
        free = cls.widths - np.sqrt(((place - points) ** 2).sum(1))
        vessel = int(free.argmax())
        return vessel, points[vessel], float(free[vessel])

    def move(self, action: Array) -> None:
        feed, self.heading = 3.0 * action[0], wrapped(self.heading + 0.4 * action[1])
        way = feed * np.array([math.cos(self.heading), math.sin(self.heading)])
        if feed < 0:
            fork = self.parent[self.vessel + 1]
            if np.linalg.norm(self.nodes[fork] - self.tip) < 3:
                fork = self.parent[fork]
            back = self.nodes[fork] - self.tip
            way = back * min(1.0, -feed / max(1e-6, math.hypot(*back)))
        self.vessel, point, self.free = self.nearest(self.tip + way)
        radius = self.widths[self.vessel]
        self.tip = point + (self.tip + way - point) * min(1.0, radius / max(1e-6, radius - self.free))

    def observe(self) -> Array:
        return np.array([self.free, math.cos(self.heading), math.sin(self.heading), *self.tip])


def insert(observation: Observation) -> Array:
    """Steer to the fork ahead on the way to the goal, or pull back out of a wrong branch."""
    tree, tip, goal = CatheterTree, observation["achieved_goal"], observation["desired_goal"]
    way, at = [tree.nearest(goal)[0]], tree.nearest(tip)[0]
    while way[0]:
        way.insert(0, tree.parent[way[0] + 1] - 1)
    if at not in way:
        return clipped(-1, 0)
    aims = [*(tree.nodes[vessel + 1] for vessel in way[:-1]), goal][way.index(at) :]
    gap = aims[int(len(aims) > 1 and np.linalg.norm(aims[0] - tip) < 4)] - tip
    turn = wrapped(math.atan2(gap[1], gap[0]) - math.atan2(*observation["observation"][[2, 1]]))
    return clipped(math.hypot(*gap) / 3 if abs(turn) < 0.5 and math.hypot(*gap) > 0.5 else 0, turn / 0.4)


class HotAirBalloon(SizedTask):
    """A balloon goes where the wind of its height blows, and has to pass a gate in the air, which ends the flight. The wind
    changes with the height, and its direction too. A hard landing, a power line and thin air end the flight. Actions:
    burner and vent. Metres; a step lasts five seconds.
    """

    numbers, near = (8, 2, 2), 40.0

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.shear, self.calm = draw(0.015, 0.03) * self.np_random.choice([-1, 1]), draw(180, 400)
        self.x, self.z, self.climb, self.heat, self.line = draw(-400, 400), draw(150, 450), 0.0, 0.5, draw(-600, 600)
        self.goal = self.achieved()
        while abs(self.goal[0] - self.x) < 200 or abs(self.goal[1] - self.calm) < 60:
            self.goal = draw([-600, 120], [600, 520])

    def move(self, action: Array) -> None:
        burner, vent = 0.5 * (action + 1)
        self.heat = min(1.2, max(0.0, 0.98 * self.heat + 0.1 * burner - 0.12 * vent))
        self.climb = 0.65 * self.climb + 0.35 * 14 * (self.heat - 0.5)
        self.z = max(0.0, self.z + 5 * self.climb)
        self.x += 5 * self.shear * (self.z - self.calm)

    def is_over(self) -> bool:
        hits = (self.z < 60 and abs(self.x - self.line) < 25) or self.z > 620 or (self.z <= 0 and self.climb < -2)
        return hits or bool(self.is_met(self.achieved(), self.goal))

    def observe(self) -> Array:
        wind = self.shear * (self.z - self.calm)
        return np.array([self.z, self.climb, 100 * self.heat, self.x, wind, 100 * self.shear, self.calm, self.line])

    def achieved(self) -> Array:
        return np.array([self.x, self.z])


def fly() -> Any:
    """Drift upwind of the gate at another height, then go to its height in time."""
    approaches = False

    def act(observation: Observation) -> Array:
        nonlocal approaches
        z, climb, heat, x, _, shear, calm, _ = observation["observation"]
        shear, heat, goal = shear / 100, heat / 100, observation["desired_goal"]
        blows, above = shear * (goal[1] - calm), math.copysign(1, goal[1] - calm)  # the wind at the height of the gate
        ahead = (goal[0] - x) * math.copysign(1, blows)
        needs = 40 + max(0.0, (goal[1] - calm) ** 2 - (z - calm) ** 2) * abs(shear) / 2 / 3.5
        approaches = ahead > (-30 if approaches else needs)
        wish = goal[1] + max(0.0, ahead - needs - 60) / 50 / abs(shear) * above if approaches else calm - 180 * above
        speed = min(4.5, max(-4.5, (min(560.0, max(80.0, wish)) - z) / 30))
        warmer = 0.5 + speed / 14 + 0.04 * (speed - climb) - 0.98 * heat
        return clipped(2 * warmer / 0.1 - 1, 2 * -warmer / 0.12 - 1)

    return act


class RollerBlind(SizedTask):
    """A hand takes the bar of a roller blind and pulls it down. A pawl holds the blind where it is let go. A short tug down
    frees the pawl. Let go while it rises, the blind rolls up. Actions: speeds and grip. Centimetres.
    """

    numbers, thing, near = (6, 1, 3), "bar", 2.0

    def begin(self) -> None:
        draw, self.tug, self.held, self.rolls = self.np_random.uniform, 0.0, 0.0, False
        self.bar, self.hand = draw(30, 110), draw([-40, 20], [40, 120])
        self.goal = np.array([self.bar])
        while abs(self.goal[0] - self.bar) < 10:
            self.goal = draw(25, 115, 1)

    def move(self, action: Array) -> None:
        """Move the hand, and with it the bar if it is held."""
        was = self.hand
        self.hand = np.clip(was + 4.0 * action[:2], [-60, 5], [60, 140])
        if not self.held and self.rolls:
            self.bar = min(120.0, self.bar + 7.0)
        if action[2] <= 0:
            self.rolls = self.rolls or bool(self.held and self.hand[1] - was[1] > 1 and self.tug > 2)
            self.held = self.tug = 0.0
        elif not self.held and abs(self.hand[0]) < 12 and abs(self.hand[1] - self.bar) < 4:
            self.held, self.rolls, self.hand[1] = 1.0, False, self.bar
        elif self.held:
            self.tug += max(0.0, self.bar - self.hand[1])
            free = self.hand[1] < self.bar or self.tug > 2
            self.bar = min(120.0, max(20.0, float(self.hand[1]))) if free else self.bar
            self.hand = np.array([min(12.0, max(-12.0, self.hand[0])), self.bar])
        self.rolls = self.rolls and self.bar < 120

    def observe(self) -> Array:
        return np.array([self.hand[0], self.held, self.bar, self.hand[1], float(self.tug > 2), float(self.rolls)])


def draw_down(observation: Observation) -> Array:
    """Take the bar, free the pawl if the blind must rise, and move it."""
    x, held, bar, z, is_free, _ = observation["observation"]
    missing = float(observation["desired_goal"][0] - bar)
    if not held:
        is_near = abs(x) < 12 and abs(z - bar) < 4
        return clipped(-x / 4, (bar - z) / 4, 1 if is_near else -1)
    return clipped(0, -1 if missing > 1 and not is_free else missing / 4, 1)


class TidalBar(SizedTask):
    """A boat crosses a sand bar to a mooring. The depth depends on tide and channel, and has to exceed the draught.
    Actions: thrust along both axes. The bar lies across, at x between -1.5 and 1.5. The tide has a period of 50 steps.
    """

    numbers, thing, near, period = (8, 2, 2), "boat", 0.6, 50

    def begin(self) -> None:
        draw, side = self.np_random.uniform, self.np_random.choice([-1, 1])
        self.phase, self.draught, self.channel = draw([-math.pi, 0.8, -4], [math.pi, 1.35, 4])
        self.boat, other = draw([3, -5], [9, 5]) * [side, 1], side if draw() < 0.1 else -side
        self.goal, self.speed = draw([3, -5], [9, 5]) * [other, 1], np.zeros(2)

    def move(self, action: Array) -> None:
        self.phase = wrapped(self.phase + 2 * math.pi / self.period)
        self.speed = 0.6 * self.speed + 0.2 * action
        place = np.clip(self.boat + self.speed, [-10, -6], [10, 6])
        depth = 0.75 + 0.6 * math.exp(-(((place[1] - self.channel) / 1.2) ** 2)) + 0.7 * math.sin(self.phase)
        if abs(place[0]) < 1.5 and depth < self.draught:  # aground
            place, self.speed = self.boat, np.zeros(2)
        self.boat = place

    def observe(self) -> Array:
        tide = math.sin(self.phase), math.cos(self.phase)
        return np.array([*tide, self.draught, *self.boat, self.channel, *self.speed])


def sail(observation: Observation) -> Array:
    """Wait in front of the channel until the tide is high enough for the next steps, cross, and go to the mooring."""
    (sine, cosine, draught, x, y, channel, *speed), goal = observation["observation"], observation["desired_goal"]
    aim, soon = goal, math.sin(math.atan2(sine, cosine) + 2 * math.pi * 9 / TidalBar.period)
    if abs(x) < 1.5 or x * goal[0] < 0:
        is_high = 1.33 + 0.7 * min(sine, soon) > draught and abs(y - channel) < 0.2
        aim = np.array([math.copysign(3 if abs(x) < 1.5 or is_high else -2.2, goal[0]), channel])
    return clipped(*(1.5 * (aim - [x, y]) - 2.0 * np.array(speed)))


TASKS: tuple[Task, ...] = (
    Task("CatheterTree-v0", "obstacles", "closed", CatheterTree, 60, lambda: insert),
    Task("HotAirBalloon-v0", "fragile", "closed", HotAirBalloon, 100, fly),
    Task("RollerBlind-v0", "pull", "closed", RollerBlind, 50, lambda: draw_down),
    Task("TidalBar-v0", "later", "closed", TidalBar, 100, lambda: sail),
)
