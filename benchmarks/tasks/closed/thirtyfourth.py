"""Closed tasks: table football, a broom on a cart, a solar panel, and a swinging load."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, unit, wrapped
from ..task import Observation, Task


class KickerRod(SizedTask):
    """A player of table football on a rod kicks a resting ball, which shall come to rest at a place. Centimetres.

    A ball that the foot meets off its middle leaves at a slant. Actions: speeds of sliding and of turning the rod.
    """

    numbers, thing, near = (8, 2, 2), "ball", 6.0
    pace, spin, leg, rod, most = 1.5, 0.4, 8.0, 20.0, 1.2
    contact, half, force, slant, kept = 2.0, 3.0, 1.5, 0.2, 0.9
    table = np.array([110.0, 68.0])

    def begin(self) -> None:
        self.ball, self.speed = self.place([22.5, 24], [25, 44]), np.zeros(2)
        self.across = float(self.ball[1] + self.np_random.uniform(-6, 6))
        self.angle = float(self.np_random.uniform(-1.0, -0.2))
        self.goal = np.zeros(2)
        while not 8 < self.goal[1] < 60:
            far = self.np_random.uniform(16, 40)
            self.goal = self.ball + far * np.array([1, self.np_random.uniform(-0.5, 0.5)])

    def foot(self) -> float:
        """Return how far along the table the foot is."""
        return self.rod + self.leg * math.sin(self.angle)

    def move(self, action: Array) -> None:
        before = self.foot()
        self.across = float(np.clip(self.across + self.pace * action[0], 4, 64))
        self.angle = float(np.clip(self.angle + self.spin * action[1], -self.most, self.most))
        rate, off = self.foot() - before, float(self.ball[1] - self.across)
        front = float(self.ball[0]) - self.contact
        if before <= front < self.foot() and rate > self.speed[0] and abs(off) < self.half:
            self.speed = self.force * rate * np.array([1, self.slant * off])
        self.ball = self.ball + self.speed
        is_out = (self.ball < 2) | (self.ball > self.table - 2)
        self.ball = np.clip(self.ball, 2, self.table - 2)
        self.speed = self.kept * np.where(is_out, -0.6 * self.speed, self.speed)

    def observe(self) -> Array:
        (x, y), (along, aside) = self.ball, self.speed
        return np.array([self.across, self.angle, self.foot(), y - self.across, x, y, along, aside])


def kick() -> Any:
    """Draw the foot back, slide to the right distance from the ball's middle, and kick with the right speed."""
    is_kicking = False

    def act(observation: Observation) -> Array:
        nonlocal is_kicking
        seen, task = observation["observation"], KickerRod
        along, aside = observation["desired_goal"] - seen[4:6]
        if seen[6] > 0:
            return clipped(0, 0)
        lack = seen[3] - aside / along / task.slant
        is_kicking = is_kicking or (abs(lack) < 0.05 and seen[1] < -0.5)
        if not is_kicking:
            return clipped(lack / task.pace, (-0.6 - seen[1]) / task.spin)
        rate = along * (1 - task.kept) / task.force
        angle = math.asin(min(0.9, math.sin(seen[1]) + rate / task.leg))
        return clipped(0, (angle - seen[1]) / task.spin)

    return act


class BroomCart(SizedTask):
    """A cart carries an upright broom to a place on a rail of 4.8 metres. The episode ends if the broom falls.

    The goal is the place of the cart, and a broom that stands. Action: the force on the cart. Metres, seconds, radians.
    """

    numbers = (5, 2, 1)
    dt, parts, force, mass, broom, half, gravity = 0.04, 2, 10.0, 1.0, 0.1, 1.0, 9.8
    near, upright, fallen, end = 0.25, 0.2, 0.6, 2.4

    def begin(self) -> None:
        self.x, self.speed = float(self.np_random.uniform(-1, 1)), 0.0
        self.angle, self.rate = (float(number) for number in self.place(-0.05, 0.05))
        self.goal = np.array([self.x, 0.0])
        while not 0.5 < abs(self.goal[0] - self.x) < 1.8:
            self.goal[0] = self.np_random.uniform(-1.5, 1.5)

    def achieved(self) -> Array:
        return np.array([self.x, self.angle])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = np.abs(achieved_goal - desired_goal)
        return (gap[..., 0] < self.near) & (gap[..., 1] < self.upright)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 where the goal is met, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def move(self, action: Array) -> None:
        dt, total = self.dt / self.parts, self.mass + self.broom
        for _ in range(self.parts):
            sine, cosine = math.sin(self.angle), math.cos(self.angle)
            push = (self.force * float(action[0]) + self.broom * self.half * self.rate**2 * sine) / total
            turning = (self.gravity * sine - cosine * push) / (self.half * (4 / 3 - self.broom * cosine**2 / total))
            self.rate += dt * turning
            self.speed += dt * (push - self.broom * self.half * turning * cosine / total)
            self.x, self.angle = self.x + dt * self.speed, self.angle + dt * self.rate

    def is_over(self) -> bool:
        return abs(self.angle) > self.fallen or abs(self.x) > self.end

    def observe(self) -> Array:
        return np.array([self.x, self.speed, math.cos(self.angle), math.sin(self.angle), self.rate])


def balance() -> Any:
    """Feed the state back linearly, with a bounded distance to the goal."""

    def act(observation: Observation) -> Array:
        x, speed, _, sine, rate = observation["observation"]
        lack = min(0.8, max(-0.8, x - float(observation["desired_goal"][0])))
        return clipped((3.0 * lack + 4.5 * speed + 38.0 * sine + 14.0 * rate) / BroomCart.force)

    return act


class SolarTracker(SizedTask):
    """A solar panel on a heavy mount turns until it faces the sun. Angles in degrees; the goal is a direction.

    Actions: which of five torques acts on either axis.
    """

    numbers, near = (7, 3, 2), 8.0
    torque, kept = 2.0, 0.8

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([5, 5])

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(0.5 * np.asarray(action) - 1)

    @staticmethod
    def facing(turn: float, height: float) -> Array:
        """Return the direction of length 1 at two angles in degrees."""
        up = math.radians(height)
        return np.append(math.cos(up) * unit(math.radians(turn)), math.sin(up))

    def begin(self) -> None:
        self.turn, self.height = (float(number) for number in self.place([-180, 5], [180, 80]))
        self.rates, self.light, self.goal = np.zeros(2), float(self.np_random.uniform(400, 900)), self.achieved()
        while self.goal @ self.achieved() > math.cos(math.radians(35)):
            self.goal = self.facing(*self.place([-180, 10], [180, 75]))

    def achieved(self) -> Array:
        return self.facing(self.turn, self.height)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (achieved_goal * desired_goal).sum(axis=-1) > math.cos(math.radians(self.near))

    def move(self, action: Array) -> None:
        self.rates = self.kept * self.rates + self.torque * action
        self.turn = (self.turn + float(self.rates[0]) + 180) % 360 - 180
        height = self.height + float(self.rates[1])
        self.height = min(90.0, max(0.0, height))
        if self.height != height:
            self.rates[1] = 0

    def observe(self) -> Array:
        wind = abs(self.np_random.normal(0, 3))
        return np.array([self.turn, self.height, *self.rates, self.light, wind, 47.4])


def face_sun() -> Any:
    """Brake in time: aim with the angle at which each axis would come to rest."""

    def act(observation: Observation) -> Array:
        turn, height, *rates = observation["observation"][:4]
        x, y, z = observation["desired_goal"]
        lack = np.array([wrapped(math.atan2(y, x) - math.radians(turn)), math.asin(z) - math.radians(height)])
        rest = SolarTracker.kept / (1 - SolarTracker.kept) * np.array(rates)
        wished = np.clip((np.degrees(lack) - rest) / 10, -1, 1)
        levels: Array = np.rint(2 * wished + 2).astype(np.int64)
        return levels

    return act


class SwingHoist(SizedTask):
    """A bridge crane brings a load that swings on its rope to a place. Metres and seconds.

    The reward falls with the distance of the load; a load within `near` earns 1 more.
    Actions: acceleration of the trolley, and speed of the rope.
    """

    numbers, near = (9, 2, 2), 0.5
    dt, parts, thrust, fastest, winch, gravity, damping, span = 0.1, 4, 2.0, 2.0, 0.8, 9.8, 0.4, 10.0

    def begin(self) -> None:
        self.trolley, self.rope = (float(number) for number in self.place([0.5, 1.2], [9.5, 3.6]))
        self.speed, self.angle, self.rate = 0.0, float(self.np_random.uniform(-0.1, 0.1)), 0.0
        self.goal = self.achieved()
        while np.linalg.norm(self.goal - self.achieved()) < 1.5:
            self.goal = self.place([1.0, -3.6], [9.0, -1.2])

    def achieved(self) -> Array:
        return np.array([self.trolley + self.rope * math.sin(self.angle), -self.rope * math.cos(self.angle)])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the negative distance in units of 5 metres, and 1 more where the goal is met."""
        far = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -0.2 * far + (far <= self.near)

    def move(self, action: Array) -> None:
        dt, reel = self.dt / self.parts, self.winch * float(action[1])
        for _ in range(self.parts):
            before = self.speed
            self.speed = min(self.fastest, max(-self.fastest, before + dt * self.thrust * float(action[0])))
            if not 0 < self.trolley + dt * self.speed < self.span:
                self.speed = 0.0
            drive = (self.speed - before) / dt
            self.trolley += dt * self.speed
            rope = min(4.0, max(1.0, self.rope + dt * reel))
            pull = self.gravity * math.sin(self.angle) + drive * math.cos(self.angle)
            pull += 2 * (rope - self.rope) / dt * self.rate
            self.rate -= dt * (pull / rope + self.damping * self.rate)
            self.rope, self.angle = rope, self.angle + dt * self.rate

    def observe(self) -> Array:
        load = 2.5 + self.np_random.normal(0, 0.02)
        return np.array([load, self.trolley, self.speed, self.angle, self.rate, self.rope, *self.achieved(), self.span])


def hoist() -> Any:
    """Drive to the goal with a bounded speed, and against the swing; reel the rope to the height of the goal."""

    def act(observation: Observation) -> Array:
        _, trolley, speed, angle, rate, rope, *_ = observation["observation"]
        x, y = observation["desired_goal"]
        wished = min(1.7, max(-1.7, 0.8 * (x - trolley)))
        drive = 1.2 * (wished - speed) + 3.0 * angle + 0.5 * rate
        return clipped(drive / SwingHoist.thrust, 2 * (-y - rope) / SwingHoist.winch)

    return act


TASKS: tuple[Task, ...] = (
    Task("KickerRod-v0", "hit", "closed", KickerRod, 45, kick),
    Task("BroomCart-v0", "fragile", "closed", BroomCart, 100, balance),
    Task("SolarTracker-v0", "angles", "closed", SolarTracker, 50, face_sun),
    Task("SwingHoist-v0", "rewards", "closed", SwingHoist, 100, hoist),
)
