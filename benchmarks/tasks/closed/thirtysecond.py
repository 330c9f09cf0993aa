"""Four closed tasks: a drum in a hangar, a tilting labyrinth, a mash tun, and a stone on a rope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, SizedTask, clipped, grid_path, push_out, shortest_path, toward_push, unit
from ..open.grids import MOVES, DiscreteTask, numbers
from ..task import Observation, Task


class HangarDrum(OwnUnits):
    """A robot in a hangar rolls an upright drum to a place. The goal is in feet: north, then east.

    The robot reports its place in metres, the drum by range (metres) and bearing (degrees from north, clockwise), and its
    own speed in kilometres per hour. Actions: speeds to the east and to the north, in metres per second.
    """

    numbers, near = (6, 2, 2), 1.6
    limits = (-1.4, -1.4), (1.4, 1.4)
    seconds, lag, contact, foot, wide = 0.5, 0.7, 0.9, 0.3048, np.array([10.0, 7.0])

    def begin(self) -> None:
        self.drum, self.rate, self.charge = self.place(3 - self.wide, self.wide - 3), np.zeros(2), 100.0
        self.robot = self.drum + self.np_random.uniform(1.2, 3.0) * unit(self.np_random.uniform(-math.pi, math.pi))
        goal = self.drum
        while not 1.5 < np.linalg.norm(goal - self.drum) < 5:
            goal = self.place(2 - self.wide, self.wide - 2)
        self.goal = goal[::-1] / self.foot

    def achieved(self) -> Array:
        return self.drum[::-1] / self.foot

    def move(self, action: Array) -> None:
        wish = self.middle + self.half * action
        self.rate = (1 - self.lag) * self.rate + self.lag * wish
        self.robot = np.clip(self.robot + self.seconds * self.rate, -self.wide, self.wide)
        self.drum = self.drum + push_out(self.drum, self.robot, self.contact)
        self.drum = np.clip(self.drum, 0.5 - self.wide, self.wide - 0.5)
        self.charge -= 0.02 + 0.1 * float(np.linalg.norm(self.rate))

    def observe(self) -> Array:
        (east, north), (to_east, to_north) = self.robot, self.drum - self.robot
        bearing = math.degrees(math.atan2(to_east, to_north)) % 360
        speed = 3.6 * float(np.linalg.norm(self.rate))
        return np.array([bearing, speed, north, math.hypot(to_east, to_north), self.charge, east])


def roll_drum() -> Any:
    """Work out where the drum is, drive around it, and push."""

    def act(observation: Observation) -> Array:
        bearing, _, north, far, _, east = observation["observation"]
        task, robot = HangarDrum, np.array([east, north])
        drum = robot + far * unit(math.radians(90 - bearing))
        way = toward_push(robot, drum, observation["desired_goal"][::-1] * task.foot, task.contact, 0.3)
        wish = way / task.seconds
        return (wish * min(1.0, 1.4 / max(1e-9, float(np.abs(wish).max())))).astype(np.float32)

    return act


class TiltLabyrinth(SizedTask):
    """A marble rolls on a board of 40 by 30 centimetres with two long walls, which two knobs tilt by up to 3 degrees.

    Actions: by how many degrees the knobs turn.
    """

    numbers, thing, near = (7, 2, 2), "marble", 2.0
    pull, most, kept, rebound, wide = 0.12, 3.0, 0.96, 0.4, np.array([19.0, 14.0])  # without the radius of the marble
    low, high = np.array([[-8.5, -15.0], [5.5, -5.0]]), np.array([[-5.5, 5.0], [8.5, 15.0]])  # walls with the radius around

    def begin(self) -> None:
        self.marble, self.goal = self._free(), self._free()
        self.speed, self.tilt = np.zeros(2), self.place(-0.5, 0.5)
        while np.linalg.norm(self.goal - self.marble) < 10:
            self.goal = self._free()

    def _free(self) -> Array:
        """Return a random place that is not at a wall."""
        at = self.place(1 - self.wide, self.wide - 1)
        return at if self.is_free(at, 1.0) else self._free()

    @classmethod
    def is_free(cls, at: Array, margin: float = 0.0) -> bool:
        """Return whether the marble has room at a place, with some more centimetres around it."""
        is_in = bool((np.abs(at) <= cls.wide - margin).all())
        return is_in and not bool(((at > cls.low - margin) & (at < cls.high + margin)).all(1).any())

    def move(self, action: Array) -> None:
        self.tilt = np.clip(self.tilt + action, -self.most, self.most)
        self.speed = self.kept * self.speed + self.pull * self.tilt
        for _ in range(4):
            for axis in (0, 1):
                at = self.marble.copy()
                at[axis] += 0.25 * self.speed[axis]
                if self.is_free(at):
                    self.marble = at
                else:
                    self.speed[axis] *= -self.rebound

    def observe(self) -> Array:
        (x, y), (along, across) = self.marble, self.speed + self.np_random.normal(0, 0.02, 2)
        return np.array([*np.radians(self.tilt), y, x, across, along, self.np_random.normal(0, 0.1)])


def tilt() -> Any:
    """Search a path on a grid, and roll to the last place on it that is in sight."""
    path: list[Array] = []
    reached = 0

    def act(observation: Observation) -> Array:
        nonlocal reached
        seen, task = observation["observation"], TiltLabyrinth
        at, speed, now = seen[3:1:-1], seen[5:3:-1], np.degrees(seen[:2])
        goal = observation["desired_goal"]
        if not path:
            path.extend(grid_path(at, goal, 1.0, lambda place: TiltLabyrinth.is_free(place, 0.5)))
        shares = np.linspace(0, 1, 20)
        ahead = [all(task.is_free(at + share * (p - at), 0.3) for share in shares) for p in path]
        reached = max([reached, *np.flatnonzero(ahead).tolist()])
        if reached < len(path) - 1 and np.linalg.norm(path[reached] - at) < 1:
            reached += 1
        way = path[reached] - at
        wish = 0.18 * way * min(1.0, 1.4 / max(1e-9, 0.18 * float(np.linalg.norm(way))))
        angle = np.clip(0.35 * (wish - speed) / task.pull, -task.most, task.most)
        return clipped(*(angle - now))

    return act


class MashTun(OwnUnits):
    """A tun of 80 litres in a brewery shall have a temperature (degrees Celsius) and a volume (litres).

    Actions: litres of hot water, of cold water, and to drain, and the power of the heater, in kilowatts, which it takes up
    slowly. A step is a minute.
    """

    numbers, near = (7, 2, 4), 1.0
    limits = (0.0, 0.0, 0.0, 0.0), (3.0, 3.0, 4.0, 3.0)
    hot, cold, room, full, least, heat = 85.0, 12.0, 20.0, 80.0, 8.0, 14.3
    scale = np.array([1.0, 2.0])

    def begin(self) -> None:
        self.degrees, self.litres, self.power, self.minutes = *self.place([20, 15], [60, 65]), 0.0, 0
        self.goal = self.achieved()
        while (np.abs(self.goal - self.achieved()) < [8, 6]).any():
            self.goal = self.place([30, 20], [68, 74])

    def achieved(self) -> Array:
        return np.array([self.degrees, self.litres], np.float64)

    def move(self, action: Array) -> None:
        hot, cold, drained, power = self.middle + self.half * action
        self.power = 0.5 * self.power + 0.5 * power
        kept = max(self.least, self.litres - drained)
        litres = kept + hot + cold
        self.degrees = (kept * self.degrees + hot * self.hot + cold * self.cold) / litres
        self.degrees += self.heat * self.power / litres - 0.01 * (self.degrees - self.room)
        self.degrees, self.litres = min(98.0, self.degrees), min(self.full, litres)
        self.minutes += 1

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.scale).all(-1)

    def observe(self) -> Array:
        level, fahrenheit = self.litres / 2.4, 32 + 1.8 * self.degrees  # the level in centimetres
        return np.array([fahrenheit, self.power, level, self.hot, self.cold, self.np_random.normal(1013, 4), self.minutes])


def brew() -> Any:
    """Drain what is too much or of a wrong temperature, add water of the mix that lacks, and heat a little."""

    def act(observation: Observation) -> Array:
        task, (degrees, litres), power = MashTun, observation["achieved_goal"], observation["observation"][1]
        warmth, volume = observation["desired_goal"]
        change = 2.5 if abs(warmth - degrees) > 0.4 else 0.0
        drained = min(4.0, max(0.0, litres - volume) + change)
        kept = litres - drained
        added = max(0.0, min(3.0, volume - kept))
        heated = task.heat * 0.5 * power / max(1.0, kept + added) - 0.01 * (degrees - task.room)
        wish = ((kept + added) * (warmth - heated) - kept * degrees) / max(added, 1e-9)
        share = min(1.0, max(0.0, (wish - task.cold) / (task.hot - task.cold)))
        lack = 0.0 if share < 1 else (warmth - degrees) * litres / task.heat
        hold = 0.01 * (warmth - task.room) * litres / task.heat
        heater = min(3.0, max(0.0, lack if lack > 2 else hold))
        return np.array([share * added, (1 - share) * added, drained, heater], np.float32)

    return act


class RopeStone(DiscreteTask):
    """A man on a board of 7x7 squares, with pillars, pushes a stone, or ties a rope to it and pulls it behind him.

    Who has tied the rope and walks on draws the stone to the square he leaves. Actions: four moves, and to tie or untie the
    rope, for which the stone must be on the next square.
    """

    size, pillars = 7, ((1, 2), (2, 4), (3, 1), (4, 4), (5, 2), (3, 6))

    def __init__(self) -> None:
        square, all_five = numbers(self.size - 1, 2), numbers(self.size - 1, 5)
        self.observation_space = spaces.Dict(observation=all_five, achieved_goal=square, desired_goal=square)
        self.action_space = spaces.Discrete(5)  # type: ignore[assignment]

    def begin(self) -> None:
        free = [(i, j) for i in range(self.size) for j in range(self.size) if self.is_free(i, j)]
        man, stone, goal = (free[i] for i in self.np_random.choice(len(free), 3, replace=False).tolist())
        while abs(goal[0] - stone[0]) + abs(goal[1] - stone[1]) < 2:
            goal = free[int(self.np_random.integers(len(free)))]
        self.state, self.goal = (*man, *stone, 0), np.array(goal)

    @classmethod
    def is_free(cls, row: int, column: int) -> bool:
        """Return whether a square is on the board and has no pillar."""
        return 0 <= row < cls.size and 0 <= column < cls.size and (row, column) not in cls.pillars

    @classmethod
    def after(cls, state: Any) -> list[Any]:
        row, column, *stone, tied = state
        found = []
        for down, right in MOVES:
            to = (row + down, column + right)
            if list(to) == stone:
                beyond = (to[0] + down, to[1] + right)
                found.append((*to, *beyond, tied) if cls.is_free(*beyond) else tuple(state))
            elif cls.is_free(*to):
                found.append((*to, *((row, column) if tied else stone), tied))
            else:
                found.append(tuple(state))
        is_next = abs(row - stone[0]) + abs(column - stone[1]) == 1
        return [*found, (row, column, *stone, 1 - tied) if is_next else tuple(state)]

    def seen(self) -> Seen:
        row, column, down, right, tied = self.state
        return {
            "observation": np.array([row, column, tied, right, down]),
            "achieved_goal": np.array([down, right]),
            "desired_goal": self.goal.copy(),
        }


def haul() -> Any:
    """Follow a shortest sequence of moves, and then play with the rope."""
    plan: list[int] = []

    def act(observation: Observation) -> int:
        row, column, tied, right, down = observation["observation"].tolist()
        goal = tuple(observation["desired_goal"].tolist())
        if (down, right) == goal:
            return 4
        if not plan:
            plan.extend(shortest_path((row, column, down, right, tied), lambda s: s[2:4] == goal, RopeStone.after))
        return plan.pop(0)

    return act


TASKS: tuple[Task, ...] = (
    Task("HangarDrum-v0", "units", "closed", HangarDrum, 60, roll_drum),
    Task("TiltLabyrinth-v0", "obstacles", "closed", TiltLabyrinth, 80, tilt),
    Task("MashTun-v0", "not-a-robot", "closed", MashTun, 40, brew),
    Task("RopeStone-v0", "discrete", "closed", RopeStone, 30, haul),
)
