"""Closed tasks: two arms, a bat, a truck, and water jugs."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, Seen, SizedTask, clipped, shortest_path, wrapped
from ..task import Observation, Task


class FacingArms(SizedTask):
    """Two arms with two joints each face each other over a table. Both tips have a goal. An arm that hits stops both.
    Actions: speeds of shoulder and elbow of the first arm, then of the second. Metres.
    """

    numbers, thing, near, base, links = (14, 4, 4), "tips", 0.08, np.array([[0.0, 0.0], [1.15, 0.0]]), (0.45, 0.4)
    low, high, shares = np.array([-1.6, 0.2] * 2), np.array([1.2, 2.6] * 2), np.linspace(0, 1, 6)[:, None]

    def begin(self) -> None:
        self.joints, self.rates = self.place([-1.6, 1.8] * 2, [1.2, 2.4] * 2, 4), np.zeros(4)
        joints = self.place(self.low, self.high, 4)
        while self.clearance(joints) < 0.12 or joints[[1, 3]].max() > 1.8:
            joints = self.place(self.low, self.high, 4)
        self.tips, self.goal = (self.shape(each)[:, 1].ravel() for each in (self.joints, joints))

    @classmethod
    def shape(cls, joints: Array) -> Array:
        """Return elbow and tip of each arm, (2, 2, 2). The second arm is the first one, turned by half a circle."""
        first, second = joints[::2], joints[::2] + joints[1::2]
        elbow = cls.links[0] * np.stack([np.cos(first), np.sin(first)], -1)
        tip = elbow + cls.links[1] * np.stack([np.cos(second), np.sin(second)], -1)
        return cls.base[:, None] + np.stack([elbow, tip], 1) * np.array([1, -1])[:, None, None]

    @classmethod
    def clearance(cls, joints: Array) -> float:
        """Return the distance between the arms."""
        elbows, tips = cls.shape(joints).transpose(1, 0, 2)[:, :, None]  # points of both arms: (2, 6, 2)
        lower, upper = cls.base[:, None] + cls.shares * (elbows - cls.base[:, None]), elbows + cls.shares * (tips - elbows)
        first, second = np.concatenate([lower, upper], 1)
        return math.sqrt(((first[:, None] - second) ** 2).sum(-1).min())

    def move(self, action: Array) -> None:
        self.rates = 0.4 * self.rates + 0.09 * action
        joints = np.clip(self.joints + self.rates, self.low, self.high)
        if self.clearance(joints) < 0.06:
            self.rates, joints = np.zeros(4), self.joints
        self.joints, self.tips = joints, self.shape(joints)[:, 1].ravel()

    def observe(self) -> Array:
        turn, bend = self.joints[::2], self.joints[1::2]
        return np.array([*np.sin(turn), *np.cos(turn), *bend, *self.tips, *(10 * self.rates)])


def reach_both() -> Any:
    """Fold both arms, turn them, and unfold them in an order in which they do not meet."""
    phases: list[Array] = []

    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], observation["desired_goal"]
        joints = np.array([[math.atan2(seen[k], seen[2 + k]), seen[4 + k]] for k in range(2)]).ravel()
        if not phases:
            local, (one, two) = (goal.reshape(2, 2) - FacingArms.base) * [[1], [-1]], FacingArms.links
            elbow = np.arccos(np.clip(((local**2).sum(1) - one**2 - two**2) / (2 * one * two), -1, 1))
            shoulder = np.arctan2(local[:, 1], local[:, 0]) - np.arctan2(two * np.sin(elbow), one + two * np.cos(elbow))
            end = np.stack([shoulder, elbow], 1).ravel()
            folded = end * [1, 0, 1, 0] + [0, 2.5, 0, 2.5]
            orders = [np.where(np.arange(4) // 2 == first, end, folded) for first in range(2)]
            path = [min(FacingArms.clearance(a + s * (end - a)) for s in np.linspace(0, 1, 12)) for a in orders]
            phases.extend([folded, orders[int(np.argmax(path))], end])
        while len(phases) > 1 and np.abs(joints - phases[0]).max() < 0.12:
            phases.pop(0)
        return clipped(*((phases[0] - joints) / 0.15 - seen[10:14]))

    return act


class TeeBall(SizedTask):
    """A bat on a pivot hits a ball off a tee. The ball flies and sticks where it lands, which has to be the goal. Seen from
    the side. Actions: torque of the bat, and speed of the pivot, up and down. Metres, radians, seconds.
    """

    numbers, thing, near, tee, pause, most = (8, 2, 2), "ball", 0.3, (0.4, 0.5), 0.01, 25.0

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.angle, self.spin, self.pivot, self.is_hit = draw(-1.0, 0.2), 0.0, draw(0.75, 1.05), False
        self.ball, self.speed, self.goal = np.array(self.tee), np.zeros(2), np.array([draw(2, 8), 0.0])

    def move(self, action: Array) -> None:
        self.pivot = min(1.2, max(0.7, self.pivot + 0.03 * action[1]))
        tee = math.atan2(self.tee[0], self.pivot - self.tee[1])  # the angle of the bat that touches the ball
        for _ in range(5):
            before, self.spin = self.angle, 0.995 * self.spin + self.most * self.pause * action[0]
            self.angle = min(2.4, max(-2.0, before + self.pause * self.spin))
            self.spin = (self.angle - before) / self.pause
            if not self.is_hit and self.angle >= tee:
                self.is_hit, radius = True, math.hypot(self.tee[0], self.pivot - self.tee[1])
                self.speed = 1.5 * max(0.1, self.spin) * radius * np.array([math.cos(tee), math.sin(tee)])
            if self.is_hit and self.ball[1] > 0:
                self.speed = self.speed - [0.0, 9.81 * self.pause]
                self.ball = np.maximum(self.ball + self.pause * self.speed, [-np.inf, 0.0])

    def observe(self) -> Array:
        flies = self.is_hit and self.ball[1] > 0
        return np.array([self.spin, self.pivot, self.angle, *(self.speed * flies), float(self.is_hit), *self.ball])


def bat() -> Any:
    """Wind up, and swing with the speed that carries the ball to its goal."""
    swings = False

    def act(observation: Observation) -> Array:
        nonlocal swings
        spin, pivot, angle, *_, is_hit, _, _ = observation["observation"]
        swings = swings or (angle < -1.75 and abs(spin) < 1 and abs(pivot - 0.9) < 0.01)
        if is_hit or not swings:
            return clipped(-0.3 * spin if is_hit else 1.5 * (-1.85 - angle) - 0.3 * spin, (0.9 - pivot) / 0.03)
        (width, height), far = TeeBall.tee, observation["desired_goal"][0] - TeeBall.tee[0]
        tee, radius = math.atan2(width, pivot - height), math.hypot(width, pivot - height)
        speed = math.sqrt(9.81 * far**2 / (2 * math.cos(tee) ** 2 * (height + far * math.tan(tee))))
        return clipped((speed / (1.5 * radius) - spin) / 1.25 + 0.02 * spin, 0)

    return act


class TruckTrailer(SizedTask):
    """A truck with a trailer on an open lot. Both need a direction. They can't bend by more than 1.1 radians. Actions:
    speed and steering wheel. Metres. It sees its place too, which does not matter.
    """

    numbers, near = (8, 4, 2), 0.15

    def begin(self) -> None:
        draw, self.speed, self.steer = self.np_random.uniform, 0.0, 0.0
        self.x, self.y, self.trailer = draw(-20, 20), draw(-20, 20), draw(-math.pi, math.pi)
        self.truck, wish = self.trailer + draw(-0.3, 0.3), draw(-math.pi, math.pi)
        self.goal = self.directions(wish + draw(0.4, 0.9) * self.np_random.choice([-1, 1]), wish)

    @staticmethod
    def directions(truck: float, trailer: float) -> Array:
        """Return cosines and sines."""
        return np.array([math.cos(truck), math.sin(truck), math.cos(trailer), math.sin(trailer)])

    def move(self, action: Array) -> None:
        self.steer += min(0.15, max(-0.15, 0.6 * action[1] - self.steer))
        self.speed = 0.5 * self.speed + 0.4 * action[0]
        for _ in range(4):
            truck = self.truck + self.speed / 4 / 1.5 * math.tan(self.steer)
            trailer = self.trailer + self.speed / 4 / 2.5 * math.sin(self.truck - self.trailer)
            if abs(truck - trailer) > 1.1:
                self.speed = 0.0
                break
            self.truck, self.trailer = truck, trailer
            self.x, self.y = self.x + self.speed / 4 * math.cos(truck), self.y + self.speed / 4 * math.sin(truck)

    def observe(self) -> Array:
        bend = self.truck - self.trailer
        directions = math.cos(self.truck), math.sin(self.truck), math.cos(bend), math.sin(bend)
        return np.array([self.x, self.y, self.steer, *directions, self.speed])

    def achieved(self) -> Array:
        return self.directions(self.truck, self.trailer)


def circle(observation: Observation) -> Array:
    """Drive in the circle that bends the truck as it must be, until the direction is right."""
    speed = observation["observation"][-1]
    truck, trailer, wish, behind = (
        math.atan2(*observation[key][[k + 1, k]]) for key in ("achieved_goal", "desired_goal") for k in (0, 2)
    )
    bend, wished = wrapped(truck - trailer), wrapped(wish - behind)
    sign, missing = math.copysign(1, wished), wrapped(behind - trailer)
    wheel = math.atan(1.5 / 2.5 * math.sin(wished)) + 0.8 * (wished - bend)
    if abs(bend - wished) < 0.06 and -0.3 < missing * sign < 0.4:
        return clipped(1.9 * missing / math.sin(wished) - 0.4 * speed, wheel / 0.6)
    return clipped(1, wheel / 0.6)


class WaterJugs(GoalTask):
    """Three jugs of 9, 6 and 4 litres are filled at a tap, emptied, and poured into each other. The goal: what is in each.
    The observation is one whole number. Success ends the episode.
    """

    sizes, pours = (9, 6, 4), ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))

    def __init__(self) -> None:
        goal = spaces.Box(0, 9, (3,), np.int64)
        self.observation_space = spaces.Dict(observation=spaces.Discrete(350), achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(12)

    @classmethod
    def after(cls, jugs: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the jugs after each action."""
        found = [(*jugs[:k], new, *jugs[k + 1 :]) for new_of in (cls.sizes, (0, 0, 0)) for k, new in enumerate(new_of)]
        for one, other in cls.pours:
            poured = min(jugs[one], cls.sizes[other] - jugs[other])
            found.append(tuple(n + poured * ((k == other) - (k == one)) for k, n in enumerate(jugs)))
        return found

    @classmethod
    @cache
    def far(cls, jugs: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return what takes at least five actions."""
        within, rims = {jugs}, [[jugs]]
        while rims[-1]:
            rims.append(sorted({new for old in rims[-1] for new in cls.after(old)} - within))
            within.update(rims[-1])
        return [jugs for rim in rims[5:] for jugs in rim]

    def begin(self) -> None:
        self.jugs: tuple[int, ...] = (0, 0, 0)
        for action in self.np_random.integers(12, size=15):
            self.jugs = self.after(self.jugs)[action]
        self.goal = self.np_random.choice(self.far(self.jugs))

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Fill, empty or pour."""
        self.jugs = self.after(self.jugs)[int(action)]
        return super().step(0)

    def move(self, action: Array) -> None:
        """Do nothing more."""

    def is_over(self) -> bool:
        return self.jugs == tuple(self.goal.tolist())

    def observe(self) -> Any:
        return np.int64((self.jugs[0] * 7 + self.jugs[1]) * 5 + self.jugs[2])

    def achieved(self) -> Array:
        return np.array(self.jugs)


def pour(observation: Observation) -> int:
    """Take the first step of a shortest path."""
    goal = tuple(observation["desired_goal"].tolist())
    return shortest_path(tuple(observation["achieved_goal"].tolist()), lambda jugs: jugs == goal, WaterJugs.after)[0]


TASKS: tuple[Task, ...] = (
    Task("FacingArms-v0", "several-bodies", "closed", FacingArms, 60, reach_both),
    Task("TeeBall-v0", "hit", "closed", TeeBall, 50, bat),
    Task("TruckTrailer-v0", "angles", "closed", TruckTrailer, 90, lambda: circle),
    Task("WaterJugs-v0", "discrete", "closed", WaterJugs, 40, lambda: pour),
)
