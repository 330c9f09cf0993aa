"""Three closed tasks: a stretcher, containers in a port, and a ferry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, shortest_path, wrapped
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class StretcherPair(SizedTask):
    """Two robots carry a stretcher through a yard with a wall across. Its door is narrower than the stretcher is long.

    Both robots have a place to reach, in metres. Actions: the speeds of both, to the right and ahead.
    """

    numbers, thing = (11, 4, 4), "ends"
    length, wall, half_door, speed = 2.2, 5.0, 0.8, 0.3
    yard = np.array([10.0, 7.0])

    def begin(self) -> None:
        self.door = float(self.np_random.uniform(1.5, 5.5))
        side = self.np_random.random() < 0.5
        other = side if self.np_random.random() < 0.3 else not side
        self.ends, self.rates = self._pose(side), np.zeros((2, 2))
        self.goal = self.ends.ravel()
        while np.linalg.norm(self.goal - self.ends.ravel()) < 1.5:
            self.goal = self._pose(other).ravel()

    def _pose(self, is_right: bool) -> Array:
        middle, angle = self.place([1.3, 1.3], [3.6, 5.7]), self.np_random.uniform(-np.pi, np.pi)
        half = 0.5 * self.length * np.array([np.cos(angle), np.sin(angle)])
        return np.array([middle - half, middle + half]) + np.array([5.1 * is_right, 0])

    def _is_free(self, ends: Array) -> bool:
        for before, after in [*zip(self.ends, ends, strict=True), ends]:
            a, b = before[0] - self.wall, after[0] - self.wall
            if a * b < 0 and abs(before[1] + (after[1] - before[1]) * a / (a - b) - self.door) > self.half_door:
                return False
        return True

    def move(self, action: Array) -> None:
        start = self.ends
        self.rates = 0.3 * self.rates + 0.7 * self.speed * action.reshape(2, 2)
        for kept in ([1, 1], [0, 1], [1, 0]):
            ends = np.clip(start + self.rates * kept, 0, self.yard)
            bar = ends[1] - ends[0]
            ends = ends + 0.5 * (1 - self.length / float(np.linalg.norm(bar))) * np.array([bar, -bar])
            if self._is_free(ends):
                self.ends = ends
                break
        self.rates = self.ends - start

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*achieved_goal.shape[:-1], 2, 2)
        return (np.linalg.norm(gaps, axis=-1) <= 0.35).all(-1)

    def observe(self) -> Array:
        wind = self.np_random.normal(2, 0.5)
        first, second = self.ends
        return np.array([*second, *self.rates[1], wind, *first, *self.rates[0], first[1] - self.door, self.door])


def carry_stretcher() -> Any:
    """Stand lengthwise before the door, walk through, then go to the place."""

    def act(observation: Observation) -> Array:
        seen, goal = observation["observation"], observation["desired_goal"].reshape(2, 2)
        first, second, door, half = seen[5:7], seen[:2], seen[10], 0.5 * StretcherPair.length
        middle, angle = (first + second) / 2, float(np.arctan2(*(second - first)[::-1]))
        side = np.sign(goal[:, 0].mean() - StretcherPair.wall)
        along = 0.0 if abs(angle) < np.pi / 2 else np.pi
        if (middle[0] - StretcherPair.wall) * side > 1.2:
            to, turn = goal.mean(0), float(np.arctan2(*(goal[1] - goal[0])[::-1])) - angle
        else:
            is_aligned = abs(np.sin(angle)) * half < 0.2 and abs(middle[1] - door) < 0.25
            to, turn = np.array([StretcherPair.wall + (1.4 if is_aligned else -1.4) * side, door]), along - angle
        spin = 0.6 * wrapped(turn) * half * np.array([-np.sin(angle), np.cos(angle)])
        shift = 0.6 * (to - middle)
        wish = np.array([shift - spin, shift + spin]).ravel()
        return clipped(*wish / max(StretcherPair.speed, float(np.abs(wish).max())))

    return act


class PortStacks(DiscreteTask):
    """A crane sorts four containers on three stacks, each at most three high. It takes the upper one of a stack only.

    A container has a code: ten times the stack plus the level, from 11 to 33, or 0 while it hangs on the crane.
    Actions: one stack to the left, one to the right, and take or put down.
    """

    stacks, highest, containers = 3, 3, 4

    def __init__(self) -> None:
        observed, code = numbers(33, self.containers + 1), numbers(33, self.containers)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=code, desired_goal=code)
        self.action_space = spaces.Discrete(3)  # type: ignore[assignment]

    def begin(self) -> None:
        self.state = (self._piled(), int(self.np_random.integers(self.stacks)), -1)
        self.goal = np.array(self.codes(self.state))
        while (self.goal == self.codes(self.state)).sum() > 1:
            self.goal = np.array(self.codes((self._piled(), 0, -1)))

    def _piled(self) -> tuple[tuple[int, ...], ...]:
        piles: list[tuple[int, ...]] = [()] * self.stacks
        for container in self.np_random.permutation(self.containers).tolist():
            free = [stack for stack, pile in enumerate(piles) if len(pile) < self.highest]
            stack = free[int(self.np_random.integers(len(free)))]
            piles[stack] = (*piles[stack], container)
        return tuple(piles)

    @classmethod
    def codes(cls, state: Any) -> list[int]:
        found = [0] * cls.containers
        for stack, pile in enumerate(state[0]):
            for level, container in enumerate(pile):
                found[container] = 10 * (stack + 1) + level + 1
        return found

    @classmethod
    def after(cls, state: Any) -> list[Any]:
        piles, crane, held = state
        moved, pile = list(piles), piles[crane]
        if held >= 0 and len(pile) < cls.highest:
            moved[crane], now = (*pile, held), -1
        elif held < 0 and pile:
            moved[crane], now = pile[:-1], pile[-1]
        else:
            now = held
        sides = max(0, crane - 1), min(cls.stacks - 1, crane + 1)
        return [(piles, sides[0], held), (piles, sides[1], held), (tuple(moved), crane, now)]

    def seen(self) -> Seen:
        codes = self.codes(self.state)
        observed = np.array([self.state[1] + 1, *codes])
        return {"observation": observed, "achieved_goal": np.array(codes), "desired_goal": self.goal.copy()}


def stack_containers() -> Any:
    """Follow a shortest path, then drive to the left."""
    plan: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal plan
        if plan is None:
            crane, *codes = observation["observation"].tolist()
            order = sorted(range(len(codes)), key=codes.__getitem__)
            piles = tuple(tuple(c for c in order if codes[c] // 10 == 1 + stack) for stack in range(PortStacks.stacks))
            goal = observation["desired_goal"].tolist()
            start = (piles, crane - 1, codes.index(0) if 0 in codes else -1)
            plan = shortest_path(start, lambda state: PortStacks.codes(state) == goal, PortStacks.after)
        return plan.pop(0) if plan else 0

    return act


class FerryScooter(SizedTask):
    """A scooter, in metres, rides to an address on this or the other bank of a river, which a ferry crosses by timetable.

    Headings are in degrees, north is 0 and east 90. Actions: throttle or brake, and the handlebar.
    """

    numbers, thing, near = (8, 2, 2), "at", 3.0
    banks, town, deck, period = (25.0, 45.0), np.array([100.0, 70.0]), np.array([4.0, 3.0]), 30

    def begin(self) -> None:
        self.landing, self.clock = float(self.np_random.uniform(25, 75)), int(self.np_random.integers(self.period))
        is_north, is_across = self.np_random.random() < 0.5, self.np_random.random() < 0.65
        self.at = self.goal = self._address(is_north)
        while np.linalg.norm(self.goal - self.at) < 15:
            self.goal = self._address(is_north != is_across)
        self.heading, self.speed = float(self.np_random.uniform(0, 360)), 0.0

    def _address(self, is_north: bool) -> Array:
        return self.place([5, 3], [95, 22]) + np.array([0, 45 * is_north])

    @property
    def ferry(self) -> Array:
        return np.array([self.landing, 28.0 + 2 * min(7, max(0, self.clock - 7)) - 2 * min(7, max(0, self.clock - 22))])

    def _is_floor(self, at: Array) -> bool:
        is_land = not self.banks[0] < at[1] < self.banks[1]
        return bool(is_land or (np.abs(at - self.ferry) <= self.deck).all())

    def move(self, action: Array) -> None:
        before = self.ferry
        is_aboard = self.banks[0] < self.at[1] < self.banks[1]
        self.clock = (self.clock + 1) % self.period
        if is_aboard:
            self.at = self.at + self.ferry - before
        self.heading = (self.heading + 30 * action[1]) % 360
        self.speed = float(np.clip(self.speed + 0.8 * action[0], 0, 3))
        turn = math.radians(self.heading)
        ahead = np.clip(self.at + self.speed * np.array([math.sin(turn), math.cos(turn)]), 0, self.town)
        if self._is_floor(ahead):
            self.at = ahead
        else:
            self.speed = 0.0

    def observe(self) -> Array:
        charge = 60 + self.np_random.normal()  # per cent
        ferry, (x, y) = self.ferry, self.at
        return np.array([self.clock, x, self.heading, ferry[0] - x, charge, self.speed, y, ferry[1]])


def ride() -> Any:
    """Ride to the landing, onto the ferry when it is there, off it on the other side, and to the address."""

    def act(observation: Observation) -> Array:
        _, x, heading, gap, _, speed, y, ferry = observation["observation"]
        goal, (south, north) = observation["desired_goal"], FerryScooter.banks
        is_north, landing, is_waiting = goal[1] >= north, x + gap, False
        if (y >= north) if is_north else (y <= south):
            to = goal
        elif south < y < north:
            to = np.array([landing, north + 2 if is_north else south - 2])
            is_waiting = abs(ferry - (42 if is_north else 28)) > 0.5
        else:
            to = np.array([landing, south - 1.5 if is_north else north + 1.5])
            if abs(gap) < 2.5 and abs(ferry - (28 if is_north else 42)) < 0.5:
                to = np.array([landing, ferry])
        way = to - [x, y]
        far = float(np.linalg.norm(way))
        turn = (math.degrees(math.atan2(way[0], way[1])) - heading + 180) % 360 - 180
        wish = 0.0 if is_waiting or abs(turn) > 30 or far < 0.5 else min(3.0, 0.5 * far)
        return clipped((wish - speed) / 0.8, turn / 30 if far > 0.5 else 0)

    return act


TASKS: tuple[Task, ...] = (
    Task("StretcherPair-v0", "several-bodies", "closed", StretcherPair, 90, carry_stretcher),
    Task("PortStacks-v0", "discrete", "closed", PortStacks, 60, stack_containers),
    Task("FerryScooter-v0", "later", "closed", FerryScooter, 110, ride),
)
