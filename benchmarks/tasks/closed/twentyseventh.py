"""Five closed tasks: a kettle and a cup, a bean bag, a rolling die, a canoe among rocks, and a laser with two mirrors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, shortest_path, unit, wrapped
from ..task import Observation, Task


class KettlePour(SizedTask):
    """A hand takes a kettle, seen from the side, and pours a wished amount into a cup, in millilitres.

    What runs beside the cup is lost, and nothing can be poured back. A fuller kettle pours at a smaller tilt. Actions:
    the hand's velocity aside and up, the grip (opens below -0.7), and the speed of the tilt.
    """

    numbers, thing, near = (10, 1, 4), "poured", 15.0
    pace, grab, spout, wide, rim, turn, rate = 0.06, 0.08, 0.1, 0.08, 0.05, 0.3, 80.0

    def begin(self) -> None:
        self.kettle = self.place([-0.3, 0], [-0.1, 0])
        self.cup = float(self.kettle[0] + self.spout + self.np_random.uniform(0.05, 0.2))
        self.hand, self.is_held = self.kettle + self.place([-0.1, 0.03], [0.1, 0.15]), False
        self.water, self.poured, self.tilt = float(self.np_random.uniform(300, 500)), 0.0, 0.0
        self.goal = self.place(50, 220, 1)

    @staticmethod
    def lip(water: float) -> float:
        """Return the tilt above which the kettle pours."""
        return 0.9 - 0.0012 * water

    def move(self, action: Array) -> None:
        if self.is_held:
            self.is_held = bool(action[2] > -0.7)
        elif np.linalg.norm(self.hand - self.kettle) < self.grab:
            self.is_held = bool(action[2] > 0)
        self.hand = np.clip(self.hand + self.pace * action[:2], [-0.6, 0], [0.6, 0.4])
        if self.is_held:
            self.kettle = self.hand.copy()
            self.tilt = float(np.clip(self.tilt + self.turn * action[3], 0, 1.4))
        else:
            self.kettle[1], self.tilt = max(0.0, self.kettle[1] - 0.1), 0.0
        flow = min(self.water, self.rate * max(0.0, self.tilt - self.lip(self.water)))
        self.water -= flow
        if abs(self.kettle[0] + self.spout - self.cup) < self.wide and self.kettle[1] > self.rim:
            self.poured = min(300.0, self.poured + flow)

    def observe(self) -> Array:
        (x, z), gap, tilt = self.hand, self.kettle - self.hand, self.tilt
        return np.array([math.sin(tilt), self.water, self.cup, z, self.is_held, self.poured, *gap, x, math.cos(tilt)])


def pour() -> Any:
    """Take the kettle, lift it over the cup, tilt it as far as the flow shall be, and tilt it back in time."""

    def act(observation: Observation) -> Array:
        s, water, cup, height, is_held, poured, aside, up, x, c = observation["observation"]
        task, tilt = KettlePour, math.atan2(s, c)
        missing = float(observation["desired_goal"][0]) - poured
        if not is_held:
            return clipped(aside / task.pace, up / task.pace, 1, 0)
        way = cup - task.spout - x
        if missing < 5 or abs(way) > 0.03 or height < 0.1:
            return clipped(way / task.pace if height > 0.03 else 0, (0.2 - height) / task.pace, 1, -tilt / task.turn)
        wish = task.lip(water) + 0.5 * min(missing, 60) / task.rate
        return clipped(way / task.pace, (0.2 - height) / task.pace, 1, (wish - tilt) / task.turn)

    return act


class BeanBag(SizedTask):
    """A hand, seen from the side, throws a bean bag once, in the wind, so that it lies at a place on the ground beyond.

    The goal is the place of the bag, right and up. Actions: where the hand's velocity goes to, and the release (above
    0.8).
    """

    numbers, thing, near = (10, 2, 3), "bag", 0.12
    pace, kept, gravity, low, high = 0.13, 0.4, 0.02, np.array([-0.5, 0.3]), np.array([0.2, 1.0])

    def begin(self) -> None:
        self.hand, self.rate = self.place([-0.4, 0.4], [0.1, 0.8]), np.zeros(2)
        self.bag, self.flight, self.is_held = self.hand, np.zeros(2), True
        self.wind, self.goal = float(self.np_random.uniform(-1.5, 1.5)), self.place([0.5, 0], [1.6, 0])

    @classmethod
    def pull(cls, wind: float) -> Array:
        """Return the acceleration of a flying bag."""
        return np.array([0.001 * wind, -cls.gravity])

    def move(self, action: Array) -> None:
        wish = self.hand + self.kept * self.rate + (1 - self.kept) * self.pace * action[:2]
        before, self.hand = self.hand, np.clip(wish, self.low, self.high)
        self.rate = self.hand - before
        if not self.is_held:
            self.flight = self.flight + self.pull(self.wind) if self.bag[1] > 0 else np.zeros(2)
            self.bag = np.maximum(self.bag + self.flight, [-3, 0])
            return
        self.bag, self.flight = self.hand, self.rate
        self.is_held = bool(action[2] < 0.8)

    def observe(self) -> Array:
        gap = self.bag - self.hand
        return np.array([*(10 * self.flight), *self.hand[::-1], self.wind, *gap, self.is_held, *(10 * self.rate)])


def landing(place: Array, rate: Array, wind: float) -> float:
    """Return where a bean bag lands."""
    while place[1] > 0:
        rate = rate + BeanBag.pull(wind)
        place = place + rate
    return float(place[0])


def toss() -> Any:
    """Swing back and then ahead, and let go as soon as some movement of the hand would throw the bag to the goal."""
    is_back, choices = True, np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 2), -1).reshape(-1, 2)

    def act(observation: Observation) -> Array:
        nonlocal is_back
        seen, task, goal = observation["observation"], BeanBag, float(observation["desired_goal"][0])
        hand, wind, rate = seen[3:1:-1], float(seen[4]), seen[8:] / 10
        if not seen[7]:
            return clipped(0, 0, 0)
        rates = np.clip(hand + task.kept * rate + (1 - task.kept) * task.pace * choices, task.low, task.high) - hand
        misses = [abs(landing(hand + after, after, wind) - goal) for after in rates]
        if min(misses) < 0.06:
            return clipped(*choices[int(np.argmin(misses))], 1)
        is_back = hand[0] > -0.35 if is_back else hand[0] > 0.1
        return clipped(-1, 0.6 - hand[1], -1) if is_back else clipped(1, 0.7, -1)

    return act


Die = tuple[int, int, int, int, int]


class RollingDie(SizedTask):
    """A die rolls over a board of 4x4 squares, over one edge a step, to a square and with a wished number on top.

    The observation is column and row, and the faces to the north and east and on top. Actions: north, east, south,
    west, or none.
    """

    numbers, thing, near, size = (5, 3, 1), "shown", 0.5, 4

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(5)

    @classmethod
    def after(cls, die: Die, action: int) -> Die:
        """Return row, column, top, north and east of the die after an action."""
        row, column, top, north, east = die
        rolled = (
            (row - 1, column, 7 - north, top, east),
            (row, column + 1, 7 - east, north, top),
            (row + 1, column, north, 7 - top, east),
            (row, column - 1, east, north, 7 - top),
            die,
        )[action]
        return rolled if 0 <= rolled[0] < cls.size and 0 <= rolled[1] < cls.size else die

    def begin(self) -> None:
        self.die = self._rolled((1, 2, 1, 2, 3))
        goal = self._rolled(self.die)
        while goal[:3] == self.die[:3]:
            goal = self._rolled(self.die)
        self.goal = np.array(goal[:3], np.float64)

    def _rolled(self, die: Die) -> Die:
        """Return the die after forty random actions."""
        for action in self.np_random.integers(5, size=40).tolist():
            die = self.after(die, action)
        return die

    @property
    def shown(self) -> tuple[int, ...]:
        return self.die[:3]

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.eye(5)[int(action)])

    def move(self, action: Array) -> None:
        self.die = self.after(self.die, int(action.argmax()))

    def observe(self) -> Array:
        row, column, top, north, east = self.die
        return np.array([column, row, north, east, top], np.float64)


def roll() -> Any:
    """Search a shortest sequence of rolls, and follow it."""

    def act(observation: Observation) -> int:
        column, row, north, east, top = observation["observation"].astype(int).tolist()
        goal = tuple(observation["desired_goal"].astype(int).tolist())
        plan = shortest_path(
            (row, column, top, north, east),
            lambda die: die[:3] == goal,
            lambda die: [RollingDie.after(die, action) for action in range(5)],
        )
        return plan[0] if plan else 4

    return act


class RockCanoe(SizedTask):
    """A canoe on a lake of 10 by 10 metres, with three rocks, goes to a place by the strokes of two paddles.

    A stroke on one side turns the canoe to the other. The goal is metres north and east. Actions: for the left and the
    right paddle, a stroke back, none, or a stroke ahead.
    """

    numbers, thing, near, size = (7, 2, 2), "north_east", 0.6, 10.0
    rocks, radius = np.array([[3.0, 3.5], [7.0, 4.5], [4.5, 7.5]]), 1.0
    stroke, turn = 0.04, 0.07

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([3, 3])

    def begin(self) -> None:
        self.at, self.heading = self._free(), float(self.np_random.uniform(-math.pi, math.pi))
        self.speed, self.spin = 0.0, 0.0
        self.goal = self._free()[::-1]
        while not 2 < np.linalg.norm(self.goal[::-1] - self.at) < 6:
            self.goal = self._free()[::-1]

    def _free(self) -> Array:
        """Return a random place that is not near a rock."""
        at = self.place(0.8, self.size - 0.8)
        return self._free() if self.clearance(at) < 0.6 else at

    @classmethod
    def clearance(cls, at: Array) -> float:
        """Return the distance to the nearest rock."""
        return float(np.linalg.norm(cls.rocks - at, axis=1).min()) - cls.radius

    @property
    def north_east(self) -> Array:
        return self.at[::-1]

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.asarray(action, np.float64) - 1)

    def move(self, action: Array) -> None:
        left, right = action
        self.speed = 0.8 * self.speed + self.stroke * (left + right)
        self.spin = 0.5 * self.spin + self.turn * (right - left)
        self.heading = wrapped(self.heading + self.spin)
        at = np.clip(self.at + self.speed * unit(self.heading), 0, self.size)
        if self.clearance(at) < 0:
            self.speed = 0.0
        else:
            self.at = at

    def observe(self) -> Array:
        x, y = self.at
        return np.array(
            [math.sin(self.heading), x, self.clearance(self.at), y, math.cos(self.heading), self.spin, self.speed]
        )


def around_rocks(at: Array, goal: Array) -> Array:
    """Return the way to a goal, beside the first rock that lies before it."""
    way = goal - at
    ahead = way / max(1e-9, float(np.linalg.norm(way)))
    side = np.array([-ahead[1], ahead[0]])
    for gap in sorted(RockCanoe.rocks - at, key=lambda gap: float(gap @ gap)):
        along, across = float(gap @ ahead), float(gap @ side)
        if -0.3 < along < np.linalg.norm(way) and abs(across) < RockCanoe.radius + 0.25:
            return np.asarray(gap - math.copysign(RockCanoe.radius + 0.6, across) * side)
    return way


def canoe() -> Any:
    """Turn towards the way to the goal, then paddle on, slower when it is near."""

    def act(observation: Observation) -> Array:
        s, x, _, y, c, spin, speed = observation["observation"]
        at, goal = np.array([x, y]), observation["desired_goal"][::-1]
        way, far = around_rocks(at, goal), float(np.linalg.norm(goal - at))
        aside = wrapped(math.atan2(way[1], way[0]) - math.atan2(s, c)) - spin
        if far < 0.35:
            return np.full(2, 0 if speed > 0.04 else 1)
        if abs(aside) > 0.6:
            return np.array([0, 2]) if aside > 0 else np.array([2, 0])
        if speed > 0.25 * far:
            return np.array([1, 1])
        if abs(aside) > 0.15:
            return np.array([1, 2]) if aside > 0 else np.array([2, 1])
        return np.array([2, 2])

    return act


class BeamMirrors(SizedTask):
    """Two mirrors, each tilted by two motors, send a laser beam to wished places on a near and on a far screen.

    The goal is both spots, in micrometres; the observation shows the motors only, in milliradians. The mirrors lag behind
    the motors, and their mount is rolled. Actions: steps of the four motors.
    """

    numbers, thing, near = (10, 4, 4), "spots", 300.0
    pace, lag, most = 0.5, 0.6, 3.0
    lever = np.array([[1000.0, 400.0], [2200.0, 1600.0]])  # micrometres per milliradian: screens, mirrors

    def begin(self) -> None:
        self.roll = float(self.np_random.uniform(-0.2, 0.2))
        self.motors, self.last = self.place(-2, 2, 4).reshape(2, 2), np.zeros(4)
        self.mirrors = self.motors
        wish = self.lever @ self.place(-2, 2, 4).reshape(2, 2) @ self.rolled(self.roll)
        self.goal = wish.reshape(-1)

    @staticmethod
    def rolled(angle: float) -> Array:
        """Return the matrix that turns by an angle."""
        return np.array([unit(angle), unit(angle + math.pi / 2)])

    def move(self, action: Array) -> None:
        self.motors = np.clip(self.motors + self.pace * action.reshape(2, 2), -self.most, self.most)
        self.mirrors, self.last = self.mirrors + self.lag * (self.motors - self.mirrors), action

    @property
    def spots(self) -> Array:
        return np.asarray(self.lever @ self.mirrors @ self.rolled(self.roll))

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.abs(achieved_goal - desired_goal).max(-1) <= self.near

    def observe(self) -> Array:
        power, motors = float(self.np_random.normal(5, 0.2)), self.motors.reshape(-1)
        return np.array([*self.last, math.degrees(self.roll), *motors[::-1], power])


def align() -> Any:
    """Solve the two equations of each axis, and go a part of the way."""

    def act(observation: Observation) -> Array:
        roll = math.radians(observation["observation"][4])
        missing = (observation["desired_goal"] - observation["achieved_goal"]).reshape(2, 2)
        tilts = np.linalg.solve(BeamMirrors.lever, missing) @ BeamMirrors.rolled(roll).T
        return clipped(*(0.5 * tilts.reshape(-1) / BeamMirrors.pace))

    return act


TASKS: tuple[Task, ...] = (
    Task("KettlePour-v0", "later", "closed", KettlePour, 50, pour),
    Task("BeanBag-v0", "hit", "closed", BeanBag, 40, toss),
    Task("RollingDie-v0", "discrete", "closed", RollingDie, 25, roll),
    Task("RockCanoe-v0", "obstacles", "closed", RockCanoe, 60, canoe),
    Task("BeamMirrors-v0", "not-a-robot", "closed", BeamMirrors, 25, align),
)
