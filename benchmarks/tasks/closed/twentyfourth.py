"""Four closed tasks: a bouncing ball, a compass, a turn without weight, and a converter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, clipped, wrapped
from ..task import Observation, Task


class BallBouncer(SizedTask):
    """A paddle keeps a ball bouncing, seen from the front, until a bounce takes it to a wished height, in metres.

    The achieved goal is the highest point of the newest flight. A ball that falls past the paddle ends the episode.
    Actions: the velocity of the paddle, to the right and up.
    """

    numbers, thing, near = (7, 1, 2), "peak", 0.05
    pace, tick, gravity, bounce, half_width, parts = np.array([0.8, 1.5]), 0.04, 9.81, 0.8, 0.14, 4

    def begin(self) -> None:
        self.ball, self.rate = self.place([-0.3, 0.5], [0.3, 0.7]), np.array([self.np_random.uniform(-0.2, 0.2), 0.0])
        self.paddle, self.peak = np.array([self.ball[0] + self.np_random.uniform(-0.1, 0.1), 0.1]), float(self.ball[1])
        self.goal, self.is_lost = self.place(1.15, 1.55, 1), False

    def move(self, action: Array) -> None:
        for _ in range(self.parts):
            tick, before = self.tick / self.parts, self.ball[1] - self.paddle[1]
            moved = np.clip(self.paddle + tick * self.pace * action, [-0.6, 0], [0.6, 0.3])
            swing, self.paddle = (moved - self.paddle) / tick, moved
            self.rate = self.rate - np.array([0, self.gravity * tick])
            self.ball = self.ball + tick * self.rate
            if abs(self.ball[0]) > 0.6:
                self.ball[0], self.rate[0] = math.copysign(0.6, self.ball[0]), -self.rate[0]
            gap = self.ball - self.paddle
            if before >= 0 > gap[1] and abs(gap[0]) < self.half_width:
                self.ball[1] = self.paddle[1]
                self.rate[1] = max(0.3, -self.bounce * self.rate[1] + (1 + self.bounce) * swing[1])
                self.rate[0] = 0.7 * self.rate[0] + 0.3 * swing[0]
                self.peak = float(self.ball[1] + self.rate[1] ** 2 / (2 * self.gravity))
        self.is_lost = self.is_lost or bool(self.ball[1] < -0.05)

    def is_over(self) -> bool:
        return self.is_lost or bool(self.is_met(self.achieved(), self.goal))

    def observe(self) -> Array:
        return np.array([*self.rate, *(self.ball - self.paddle), self.np_random.normal(20, 1), *self.paddle])


def bounce_ball() -> Any:
    """Stay below the ball, and meet it with the speed that sends it to the height."""

    def act(observation: Observation) -> Array:
        across, up, aside, above, _, _, height = observation["observation"]
        pace, gravity, tick = BallBouncer.pace, BallBouncer.gravity, BallBouncer.tick
        meet = math.sqrt(max(0.0, up**2 + 2 * gravity * above))
        leave = math.sqrt(2 * gravity * max(0.05, float(observation["desired_goal"][0]) - height - 0.02))
        wish = float(np.clip((leave - BallBouncer.bounce * meet) / (1 + BallBouncer.bounce), -1.5, 1.5))
        is_near = above + tick * (up - wish) - 0.5 * gravity * tick**2 < 0.01
        rise = wish if is_near else (0.14 - height) / tick
        return clipped((across + aside / tick * 0.5) / pace[0], rise / pace[1])

    return act


class CompassDrone(OwnUnits):
    """A drone flies to a place, in metres east, north and up, once its compass has been set by a turn of 270 degrees.

    Until then it flies slowly, and in a direction that is off by an unknown angle. Actions: the speeds to the east, north
    and up in metres per step, and the turn in degrees.
    """

    numbers, thing, near = (9, 3, 4), "at", 6.0
    limits = (-5.0, -5.0, -2.0, -30.0), (5.0, 5.0, 2.0, 30.0)
    site, slow, full = np.array([120.0, 120.0, 30.0]), 0.2, 270.0

    def begin(self) -> None:
        self.at = self.goal = self.place([10, 10, 5], self.site - 5, 3)
        while not 25 < np.linalg.norm(self.goal - self.at) < 100:
            self.goal = self.place([10, 10, 5], self.site - 5, 3)
        self.fault, self.wind = float(self.np_random.uniform(-np.pi, np.pi)), self.place(-0.4, 0.4)
        self.turned, self.is_set, self.rate = 0.0, False, np.zeros(3)

    def move(self, action: Array) -> None:
        wish, part = self.half[:3] * action[:3], 1.0
        if not self.is_set:
            c, s = math.cos(self.fault), math.sin(self.fault)
            wish, part = np.array([c * wish[0] - s * wish[1], s * wish[0] + c * wish[1], wish[2]]), self.slow
        self.rate = 0.4 * self.rate + 0.6 * part * wish
        self.at = np.clip(self.at + self.rate + np.append(part * self.wind, 0), 0, self.site)
        self.turned += 0.0 if self.is_set else float(self.half[3] * action[3])
        self.is_set = self.is_set or abs(self.turned) >= self.full

    def observe(self) -> Array:
        volts = self.np_random.normal(14.8, 0.1)
        return np.array([self.at[2], self.turned, volts, self.is_set, *self.at[:2], *self.wind, self.rate[2]])


def set_and_fly() -> Any:
    """Turn until the compass is set, then fly to the place."""

    def act(observation: Observation) -> Array:
        seen, way = observation["observation"], observation["desired_goal"] - observation["achieved_goal"]
        if not seen[3]:
            return np.array([0, 0, 0, 30], np.float32)
        wish = 0.6 * way - np.append(seen[6:8], 0)
        return np.array([*np.clip(wish, [-5, -5, -2], [5, 5, 2]), 0], np.float32)

    return act


class FloatingTurn(SizedTask):
    """An astronaut floats and turns by swinging one arm, which turns the trunk the other way, more so if it is long.

    The goal is the heading of the trunk, as cosine and sine. Actions: the swing of the arm, and how it is stretched.
    """

    numbers, thing, near = (6, 2, 2), "heading", 0.13
    stop, swing, reach, stretch, trunk = 115.0, 25.0, (0.25, 1.0), 0.15, 1.2

    def begin(self) -> None:
        self.angle, wished = self.np_random.uniform(-np.pi, np.pi, 2)
        while abs(wrapped(wished - self.angle)) < 0.5:
            wished = self.np_random.uniform(-np.pi, np.pi)
        self.goal, self.spin = np.array([np.cos(wished), np.sin(wished)]), 0.0
        self.arm, self.length = float(self.np_random.uniform(-90, 90)), float(self.np_random.uniform(*self.reach))

    @property
    def heading(self) -> Array:
        return np.array([np.cos(self.angle), np.sin(self.angle)])

    @classmethod
    def share(cls, length: float) -> float:
        """Return by what part of its swing an arm turns the trunk."""
        return length**2 / (length**2 + cls.trunk)

    def move(self, action: Array) -> None:
        self.length = float(np.clip(self.length + self.stretch * action[1], *self.reach))
        arm = float(np.clip(self.arm + self.swing * action[0], -self.stop, self.stop))
        self.spin, self.arm = -self.share(self.length) * (arm - self.arm), arm
        self.angle = wrapped(self.angle + math.radians(self.spin))

    def observe(self) -> Array:
        return np.array([100 * self.length, self.spin, self.np_random.normal(), *self.heading[::-1], self.arm])


def swing_arm() -> Any:
    """Swing with a long arm, and take it back short."""
    is_back = False

    def act(observation: Observation) -> Array:
        nonlocal is_back
        length, _, _, sine, cosine, arm = observation["observation"]
        goal, stop = observation["desired_goal"], FloatingTurn.stop
        missing = math.degrees(wrapped(math.atan2(goal[1], goal[0]) - math.atan2(sine, cosine)))
        if abs(missing) < 3:
            return np.zeros(2, np.float32)
        way = -math.copysign(1.0, missing)  # of the arm
        is_back = way * arm > -0.8 * stop if is_back else way * arm > stop - 5
        if is_back:
            return clipped(-way if length < 40 else 0, -1)
        if length < 85:
            return clipped(0, 1)
        return clipped(-missing / FloatingTurn.share(length / 100) / FloatingTurn.swing, 0)

    return act


class DualConverter(SizedTask):
    """One coil feeds two outputs of a converter, which shall have wished voltages. Each has a capacitor and a load.

    An action is one of four states of the switches: charge the coil, empty it into one output or the other, or let it rest.
    """

    numbers, thing, near = (6, 2, 1), "volts", 0.8
    supply, coil, farads, most = 18.0, 20.0, 2.0, 4.0

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(4)

    def begin(self) -> None:
        self.amperes, self.volts, self.loads = 0.0, self.place(0, 3), self.place(40, 80)
        self.goal = self.place(5, 14)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.eye(4)[int(action)])

    def move(self, action: Array) -> None:
        state = int(action.argmax())
        given = np.array([state == 1, state == 2]) * self.amperes
        change = self.supply / self.coil if state == 0 else -0.05 * self.amperes
        if 0 < state < 3:
            change = -(self.volts[state - 1] + 0.7) / self.coil
        self.amperes = float(np.clip(self.amperes + change, 0, self.most))
        self.volts = self.volts + (given - self.volts / self.loads) / self.farads

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.abs(achieved_goal - desired_goal).max(-1) <= self.near

    def observe(self) -> Array:
        ripple = self.np_random.normal(0, 5)  # millivolts
        return np.array([self.volts[1], 1000 * self.amperes, ripple, *self.loads, self.volts[0]])


def switch() -> Any:
    """Keep some current in the coil, and empty it into the output that lacks most."""

    def act(observation: Observation) -> int:
        amperes, lack = observation["observation"][1] / 1000, observation["desired_goal"] - observation["achieved_goal"]
        output = int(lack.argmax())
        wished = float(np.clip(2 * lack[output], 1.0, 3.0))
        if lack[output] < 0.25 * wished:
            return 3
        return 0 if amperes < wished - 0.6 else 1 + output

    return act


TASKS: tuple[Task, ...] = (
    Task("BallBouncer-v0", "hit", "closed", BallBouncer, 80, bounce_ball),
    Task("CompassDrone-v0", "later", "closed", CompassDrone, 50, set_and_fly),
    Task("FloatingTurn-v0", "angles", "closed", FloatingTurn, 60, swing_arm),
    Task("DualConverter-v0", "not-a-robot", "closed", DualConverter, 80, switch),
)
