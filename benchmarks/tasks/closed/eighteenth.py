"""Closed tasks, eighteenth file: tasks of four families, from imagined workplaces."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, push_out, shortest_path, toward_push, unit
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class BoomJar(SizedTask):
    """A boom that turns about a post and telescopes pushes a jar with its tip. Actions are targets of angle and length.

    The tip and the jar are in metres. The angle spans -1.4 to 1.4 rad and the length 0.3 to 1 m for actions from -1 to 1.
    """

    numbers, thing, near = (10, 2, 2), "jar", 0.05
    middle, half, rate = np.array([0.0, 0.65]), np.array([1.4, 0.35]), np.array([0.1, 0.06])
    radius = 0.08

    def begin(self) -> None:
        self.boom, self.rates, self.warmth = np.array([-1.3, 0.35]), np.zeros(2), float(self.place(30, 40, 1)[0])
        self.jar = self.goal = self._spot()
        while np.linalg.norm(self.goal - self.jar) < 0.15:
            self.goal = self._spot()

    def _spot(self) -> Array:
        return self.np_random.uniform(0.48, 0.82) * unit(self.np_random.uniform(-0.8, 0.8))

    def tip(self) -> Array:
        return self.boom[1] * unit(self.boom[0])

    def move(self, action: Array) -> None:
        before = self.boom
        wish = np.clip(self.middle + self.half * action - before, -self.rate, self.rate)
        for part in (0.5, 1.0):
            self.boom = before + part * wish
            self.jar = self.jar + push_out(self.jar, self.tip(), self.radius)
        self.rates, self.warmth = wish, self.warmth + 0.1 * self.np_random.normal()

    def observe(self) -> Array:
        gap, share = self.jar - self.tip(), (self.boom[1] - 0.65) / 0.35
        return np.array([*gap, self.warmth / 40, *unit(self.boom[0]), share, *(self.rates / self.rate), *self.tip()])


def boom_script() -> Any:
    def act(observation: Observation) -> Array:
        tip, jar = observation["observation"][8:], observation["achieved_goal"]
        way = toward_push(tip, jar, observation["desired_goal"], BoomJar.radius, BoomJar.near)
        wish = tip + way * min(1.0, 0.045 / max(float(np.linalg.norm(way)), 1e-9))
        polar = np.array([math.atan2(wish[1], wish[0]), float(np.linalg.norm(wish))])
        return clipped(*((polar - BoomJar.middle) / BoomJar.half))

    return act


class BridgeRovers(SizedTask):
    """Two rovers, in decimetres, go to their places in two yards that a bridge joins, too narrow for both at once.

    The first takes velocities, the second takes forces. A rover that would touch the other stops.
    """

    numbers, near = (8, 4, 4), 0.6
    apart = 0.9

    def begin(self) -> None:
        self.first, self.second, self.speed, self.clock = self._spot(), self._spot(), np.zeros(2), 0
        while np.linalg.norm(self.first - self.second) < 1.5:
            self.second = self._spot()
        self.goal = np.concatenate([self._spot(), self._spot()])
        while np.linalg.norm(self.goal[:2] - self.goal[2:]) < 1.8:
            self.goal[2:] = self._spot()

    def _spot(self) -> Array:
        x, y, side = self.place([2, -2.5, -1], [5.5, 2.5, 1], 3)
        return np.array([math.copysign(x, side), y])

    def _moved(self, rover: Array, way: Array, other: Array) -> Array:
        for part in (way, way * [1, 0], way * [0, 1]):
            place = rover + part
            is_free = abs(place[0]) <= 6 and abs(place[1]) <= (3 if abs(place[0]) >= 1 else 0.6)
            if is_free and (place - other) @ (place - other) > self.apart**2:
                return place
        return rover

    def move(self, action: Array) -> None:
        self.clock += 1
        self.first = self._moved(self.first, 0.5 * action[:2], self.second)
        before, self.speed = self.second, 0.6 * self.speed + 0.2 * action[2:]
        self.second = self._moved(before, self.speed, self.first)
        self.speed = self.second - before

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gap = achieved_goal - desired_goal
        return np.maximum(np.linalg.norm(gap[..., :2], axis=-1), np.linalg.norm(gap[..., 2:], axis=-1)) <= self.near

    def achieved(self) -> Array:
        return np.concatenate([self.first, self.second])

    def observe(self) -> Array:
        return np.array([*self.first, *(self.second - self.first), *self.second, *self.speed])


def rovers_script() -> Any:
    leader = -1

    def route(at: Array, goal: Array) -> Array:
        if at[0] * goal[0] > 0 and abs(at[0]) >= 1.2:
            return goal - at
        side = math.copysign(1, goal[0])
        if abs(at[1]) > 0.3 and abs(at[0]) < 1.6:  # beside the mouth
            return np.array([-side if at[0] * side < 0 else side, -2 * at[1]])
        return np.array([-1.8 * side - at[0], -at[1]]) if at[0] * side < -1.9 else np.array([side, -at[1]])

    def aside(way: Array, gap: Array) -> Array:
        far, long = float(np.linalg.norm(gap)), float(np.linalg.norm(way))
        if far > 1.8 or long < 0.1 or gap @ way < 0.3 * far * long:
            return way
        side = np.array([-gap[1], gap[0]]) / far
        return long * (side * np.copysign(1.0, side @ way + 1e-6) - 0.25 * gap / far * (far < 1.3))

    def act(observation: Observation) -> Array:
        nonlocal leader
        seen = observation["observation"]
        at, to = [seen[:2], seen[4:6]], observation["desired_goal"].reshape(2, 2)
        crosses = [bool(at[k][0] * to[k][0] < 0 or abs(at[k][0]) < 1.6) for k in (0, 1)]
        if not any(crosses):
            leader = -1
        elif leader < 0 or not crosses[leader]:
            leader = int(crosses[1]) if not all(crosses) else int(abs(at[1][0]) < abs(at[0][0]))
        ways = []
        for k in (0, 1):
            other, way = at[1 - k], route(at[k], to[k])
            if leader == 1 - k:  # wait in the corner that is farther from the leader's goal
                corner = np.array([math.copysign(4.2, at[k][0]), -math.copysign(2.7, to[1 - k][1])])
                way = corner - at[k] if crosses[k] or abs(at[k][1]) < 1.5 else np.zeros(2)
            ways.append(aside(way, other - at[k]))
        first, second = (way / max(0.5, float(np.linalg.norm(way))) for way in ways)
        return clipped(*first, *((0.5 * second - 0.6 * seen[6:8]) / 0.2))

    return act


class PlatenPusher(SizedTask):
    """A square pusher slides a platen that stays parallel to it, in thousandths of an inch from 0 to 24,000.

    The actions are targets on the same scale, and the goal is also among the columns, in 32-bit numbers.
    """

    numbers, thing, near = (7, 2, 2), "platen", 1000.0
    reach, most = np.array([2100.0, 1600.0]), 1100.0  # of the centres at which the two touch, mils in a step

    def __init__(self) -> None:
        super().__init__()
        seen, goal = (spaces.Box(-np.inf, np.inf, (n,), np.float32) for n in (7, 2))
        self.observation_space = spaces.Dict(observation=seen, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(0.0, 24_000.0, (2,), np.float32)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.asarray(action, np.float64) / 12_000 - 1)

    def begin(self) -> None:
        self.pusher, self.heat = np.array([1000.0, 1000.0]), 70 + float(self.place(-5, 5, 1)[0])
        self.platen = self.place(7000, 17_000)
        self.goal = self.platen
        while np.linalg.norm(self.goal - self.platen) < 3000:
            self.goal = np.round(self.place(5000, 19_000)).astype(np.float32)

    def move(self, action: Array) -> None:
        wish = np.clip(12_000 * (action + 1) - self.pusher, -self.most, self.most)
        self.pusher = np.clip(self.pusher + wish, 600, 23_400)
        gap = self.platen - self.pusher
        deep = self.reach - np.abs(gap)
        if (deep > 0).all():  # along the axis on which they overlap less
            k = int(np.argmin(deep))
            self.platen[k] = np.clip(self.platen[k] + math.copysign(deep[k], gap[k]), 2100, 21_900)
            left = self.reach[k] - abs(self.platen[k] - self.pusher[k])
            self.pusher[k] -= math.copysign(max(0.0, left), gap[k])
        self.heat += 0.1 * self.np_random.normal()

    def achieved(self) -> Array:
        return self.platen.astype(np.float32)

    def observe(self) -> Array:
        return np.array([*self.pusher, self.heat, *self.goal, *self.platen], np.float32)


def platen_script() -> Any:
    axis = 0

    def act(observation: Observation) -> Array:
        nonlocal axis
        seen = observation["observation"].astype(np.float64)
        at, goal, platen = seen[:2], seen[3:5], seen[5:7]
        lack = goal - platen
        if abs(lack[axis]) < 300:
            axis = 1 - axis
        if np.abs(lack).max() < 400:
            return at.astype(np.float32)
        k, m, sign = axis, 1 - axis, math.copysign(1, lack[axis])
        gap, reach, target = at - platen, PlatenPusher.reach, at.copy()
        if gap[k] * sign <= -reach[k] + 5:  # behind it
            target[m] = platen[m]
            if abs(gap[m]) < 400:
                free = -gap[k] * sign - reach[k]
                target[k] = at[k] + sign * (min(900.0, abs(lack[k])) + max(0.0, free))
            else:
                target[k] = platen[k] - sign * (reach[k] + 300)
        elif abs(gap[m]) >= reach[m] + 50:  # beside it
            target[k] = platen[k] - sign * (reach[k] + 400)
        else:
            side = math.copysign(1, gap[m]) if 3500 < platen[m] + math.copysign(2500, gap[m]) < 20_500 else 0.0
            side = side or math.copysign(1, 12_000 - platen[m])
            target[m] = platen[m] + side * (reach[m] + 400)
            if abs(gap[k]) < reach[k] + 50:
                target[k] = platen[k] + math.copysign(reach[k] + 200, gap[k])
        return np.clip(target, 0, 24_000).astype(np.float32)

    return act


class ForkliftBays(DiscreteTask):
    """A forklift on 7x7 cells carries a pallet before it. It turns, drives forward and back, and moves its fork.

    The state is the truck's cell and heading, whether the fork is up, and the pallet's cell. Racks stand on four cells.
    """

    size, ways, racks = 7, ((0, 1), (1, 0), (0, -1), (-1, 0)), frozenset({(2, 2), (2, 4), (4, 2), (4, 4)})

    def __init__(self) -> None:
        places = numbers(6, 2)
        self.observation_space = spaces.Dict(observation=numbers(40, 7), achieved_goal=places, desired_goal=places)
        self.action_space = spaces.Discrete(5)

    def _free(self, cell: tuple[int, int]) -> bool:
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size and cell not in self.racks

    def _cell(self, low: int, high: int) -> tuple[int, int]:
        while True:
            i, j = self.np_random.integers(low, high, 2).tolist()
            if (i, j) not in self.racks:
                return i, j

    def begin(self) -> None:
        self.clock, truck, pallet = 0, self._cell(0, 7), self._cell(1, 6)
        while truck == pallet:
            truck = self._cell(0, 7)
        goal = pallet
        while goal == pallet:
            goal = self._cell(0, 7)
        self.state, self.goal = (*truck, int(self.np_random.integers(4)), 0, *pallet), np.array(goal)

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        self.clock += 1
        return super().step(action)

    def after(self, state: Any) -> list[Any]:
        i, j, heading, is_up, *pallet = state
        load, found = tuple(pallet), []
        for turn, drive in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            new = (heading + turn) % 4
            (di, dj), (fi, fj) = self.ways[heading], self.ways[new]
            truck = (i + drive * di, j + drive * dj)
            front = (truck[0] + fi, truck[1] + fj) if is_up else load
            fits = self._free(truck) and self._free(front) and truck != front
            found.append((*truck, new, is_up, *front) if fits else state)
        di, dj = self.ways[heading]
        found.append((i, j, heading, 1 - is_up, *load) if is_up or (i + di, j + dj) == load else state)
        return found

    def seen(self) -> Seen:
        place = np.array(self.state[4:])
        return {
            "observation": np.array([self.clock, *self.state]),
            "achieved_goal": place,
            "desired_goal": self.goal.copy(),
        }


def forklift_script() -> Any:
    task, path, is_planned = ForkliftBays(), [], False
    follow = lru_cache(maxsize=None)(lambda state: tuple(task.after(state)))

    def act(observation: Observation) -> int:
        nonlocal path, is_planned
        goal = tuple(observation["desired_goal"].tolist())
        if not is_planned:
            path = shortest_path(tuple(observation["observation"][1:].tolist()), lambda state: state[4:] == goal, follow)
            is_planned = True
        return path.pop(0) if path else 4

    return act


TASKS = (
    Task("BoomJar-v0", "push", "closed", BoomJar, 100, boom_script),
    Task("BridgeRovers-v0", "several-bodies", "closed", BridgeRovers, 90, rovers_script),
    Task("PlatenPusher-v0", "units", "closed", PlatenPusher, 100, platen_script),
    Task("ForkliftBays-v0", "discrete", "closed", ForkliftBays, 40, forklift_script),
)
