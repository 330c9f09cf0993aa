"""Closed tasks: a hovercraft, a cable camera, a vat, and parked cars."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, Seen, SizedTask, clipped, shortest_path, unit, wrapped
from ..task import Observation, Task
from .fifteenth import Puzzle, State


class RingHovercraft(SizedTask):
    """A hovercraft drifts over a lake to the middle of a target of rings, which pay 1, 2, 5 and 10 points in each step. It
    pays for fuel, as told in info. Actions: fan, feebler backwards, and rudder. Metres.
    """

    numbers, thing, near, rings = (8, 2, 2), "place", 1.0, ((4.0, 1.0), (2.5, 1.0), (1.6, 3.0), (1.0, 5.0))

    def begin(self) -> None:
        draw, self.speed, self.spin, self.fuel = self.np_random.uniform, np.zeros(2), 0.0, 0.0
        self.heading, self.place = draw(-math.pi, math.pi), draw(-9, 9, 2)
        self.goal = self.place
        while np.linalg.norm(self.goal - self.place) < 5:
            self.goal = draw(-9, 9, 2)

    def move(self, action: Array) -> None:
        thrust = float(action[0]) * (1.0 if action[0] > 0 else 0.5)
        self.fuel, self.spin = abs(float(action[0])), 0.6 * self.spin + 0.12 * float(action[1])
        self.heading = wrapped(self.heading + self.spin)
        self.speed = 0.93 * self.speed + 0.06 * thrust * unit(self.heading)
        self.place = self.place + self.speed

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Add the fuel to info."""
        seen, _, _, _, info = super().step(action)
        info["fuel"] = self.fuel
        return seen, float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info)), False, False, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the points, less the fuel."""
        far = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        points = sum(more * (far <= within) for within, more in self.rings)
        return points - np.resize([0.2 * one.get("fuel", 0.0) for one in np.ravel(info)], np.shape(far))

    def observe(self) -> Array:
        ahead, aside = unit(self.heading)
        return np.array([self.spin, *self.place, aside, *self.speed, ahead, self.fuel])


def hover(observation: Observation) -> Array:
    """Turn to where a thrust is needed, and give it; backwards if that needs less of a turn."""
    spin, _, _, aside, *speed, ahead, _ = observation["observation"]
    gap = observation["desired_goal"] - observation["achieved_goal"]
    need = 0.02 * gap * min(1.0, 6 / max(1e-9, float(np.linalg.norm(gap)))) - 0.32 * np.array(speed)
    heading, size = math.atan2(aside, ahead), float(np.linalg.norm(need))
    turn = wrapped(math.atan2(need[1], need[0]) - heading)
    is_back = abs(turn) > 2.2
    turn = wrapped(turn + math.pi) if is_back else turn
    thrust = size / 0.06 * max(0.0, math.cos(turn)) * (-2 if is_back else 1)
    return clipped(thrust, (0.5 * turn - 0.9 * spin) / 0.12 if size > 0.008 else -5 * spin)


class CableCamera(SizedTask):
    """A camera hangs over a field from the cables of three masts. The goal is a position in feet on a map, around 1000, and
    a height. Actions: speeds of the winches in centimetres a second, up to 200. Cables are seen in metres. The observation
    contains the goal. The reward of a batch of one is a number.
    """

    numbers, near, tall, foot = (9, 3, 3), 5.0, 22.0, 0.3048
    masts = np.array([[0.0, 0.0], [60.0, 5.0], [25.0, 50.0]])

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-200.0, 200.0, (3,), np.float32)

    def begin(self) -> None:
        draw, self.rates, ends = self.np_random, np.zeros(3), np.zeros((2, 3))
        while np.linalg.norm(ends[0] - ends[1]) < 10:
            ends = np.column_stack([draw.dirichlet([2, 2, 2], 2) @ self.masts, draw.uniform(3, 16, 2)])
        self.camera, self.goal = ends[0], self.on_map(ends[1])

    @classmethod
    def on_map(cls, camera: Array) -> Array:
        return camera / cls.foot + np.array([1000.0, 1000.0, 0.0])

    @classmethod
    def cables(cls, camera: Array) -> Array:
        return np.sqrt(((cls.masts - camera[:2]) ** 2).sum(1) + (cls.tall - camera[2]) ** 2)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take centimetres a second."""
        return super().step(np.asarray(action, np.float64) / 200)

    def move(self, action: Array) -> None:
        """Wind the cables, and find where they meet. A camera that would hang too high or low stays."""
        self.rates = 0.4 * self.rates + 0.6 * 2 * action
        square = (self.cables(self.camera) + self.rates) ** 2
        place = np.linalg.solve(2 * self.masts[1:], square[0] - square[1:] + (self.masts[1:] ** 2).sum(1))
        below = float(square[0] - place @ place)
        if 4**2 < below < (self.tall - 1) ** 2:
            self.camera = np.append(place, self.tall - math.sqrt(below))
        else:
            self.rates = np.zeros(3)

    def achieved(self) -> Array:
        return self.on_map(self.camera)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 or -1."""
        reward = np.asarray(super().compute_reward(achieved_goal, desired_goal, info))
        return reward.item() if reward.size == 1 else reward

    def observe(self) -> Array:
        return np.array([*self.goal, *self.cables(self.camera), *self.rates])


def wind(observation: Observation) -> Array:
    """Move the camera straight to its goal."""
    here, there = ((observation[key] - [1000, 1000, 0]) * CableCamera.foot for key in ("achieved_goal", "desired_goal"))
    aim = here + (there - here) * min(1.0, 1.6 / max(1e-9, float(np.linalg.norm(there - here))))
    rates = CableCamera.cables(aim) - CableCamera.cables(here) - 0.4 * observation["observation"][6:9]
    return np.clip(rates / 0.6 * 100, -200, 200).astype(np.float32)


class NeutralVat(SizedTask):
    """Waste water, sour or alkaline, flows into a vat. Acid, lye and a drain bring it to a pH and a volume in litres.
    Each action sets one of the three between off (-1) and full (1). The inflow varies.
    """

    numbers, near = (6, 2, 3), np.array([0.4, 4.0])

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.inflow, self.sour, self.warmth = draw(0.5, 2), draw(-5, 5), draw(10, 30)
        self.litres, self.charge = draw(30, 110), draw(-6, 6)
        self.goal = self.achieved()
        while (np.abs(self.goal - self.achieved()) / self.near).max() < 4:
            self.goal = draw([5, 30], [9, 110])

    def move(self, action: Array) -> None:
        """Mix. The charge is lye less acid in millimoles a litre."""
        acid, lye, drain = (action + 1) / 2
        self.inflow = float(np.clip(self.inflow + 0.1 * self.np_random.normal(), 0.3, 2.2))
        mixed, litres = self.litres * self.charge + 40 * (lye - acid) + self.inflow * self.sour, self.litres + self.inflow
        self.charge = mixed / (litres + lye + acid)
        self.litres = min(120.0, max(20.0, litres + lye + acid - 6 * drain))

    def achieved(self) -> Array:
        return np.array([7 + math.asinh(self.charge / 0.2) / math.log(10), self.litres])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether pH and volume are right."""
        return (np.abs(achieved_goal - desired_goal) / self.near).max(-1) <= 1

    def observe(self) -> Array:
        return np.array([self.litres, self.sour, *self.achieved()[:1], self.inflow, self.warmth, 120 - self.litres])


def neutralise(observation: Observation) -> Array:
    """Dose what is missing, and drain what is too much."""
    litres, sour, acidity, inflow = observation["observation"][:4]
    wish, level = observation["desired_goal"]
    have, want = (0.2 * math.sinh((one - 7) * math.log(10)) for one in (acidity, wish))
    dose = (want * (litres + inflow) - have * litres - inflow * sour) / 40
    lye, acid = min(1.0, max(0.0, dose)), min(1.0, max(0.0, -dose))
    missing = level - litres - inflow - lye - acid
    both = min(1 - max(lye, acid), max(0.0, missing) / 2)
    return clipped(2 * (acid + both) - 1, 2 * (lye + both) - 1, -missing / 3 - 1)


class ParkedCars(Puzzle):
    """Six cars and trucks on a full car park of six by six. Each rolls forward and back by a cell, if that is free. The
    goal: how far the first three have gone. The observation is the car park, row by row, 0 for free. Success ends it.
    """

    # of each: whether it stands upright, its row or column, and its length
    cars = ((False, 2, 2), (True, 4, 3), (True, 2, 2), (False, 5, 3), (True, 0, 3), (False, 0, 3))

    def __init__(self) -> None:
        super().__init__(spaces.Box(0, 6, (36,), np.int64), 4, 3, 12)

    @classmethod
    def board(cls, state: State) -> Array | None:
        """Return what stands in each cell, None if two cars would stand in one."""
        board = np.zeros((6, 6), np.int64)
        for k, ((is_upright, lane, length), at) in enumerate(zip(cls.cars, state, strict=True)):
            cells = (board.T if is_upright else board)[lane, at : at + length]
            if at < 0 or at + length > 6 or cells.any():
                return None
            cells[:] = k + 1
        return board

    @staticmethod
    @cache
    def after(state: State) -> list[State]:
        """Return the places after each action."""
        moves = [(*state[:k], state[k] + way, *state[k + 1 :]) for k in range(6) for way in (-1, 1)]
        return [state if ParkedCars.board(new) is None else new for new in moves]

    @classmethod
    @cache
    def states(cls) -> list[State]:
        """Return all that can be reached."""
        found = [(0, 0, 4, 3, 3, 0)]
        for state in found:  # the list grows during the loop
            found += dict.fromkeys(new for new in cls.after(state) if new not in found)
        return found

    def begin(self) -> None:
        pair = np.zeros((2, 6))
        while np.sum(pair[0, :3] != pair[1, :3]) < 2:
            pair = self.np_random.choice(self.states(), 2)
        self.state, self.goal = tuple(pair[0].tolist()), pair[1, :3]

    def is_over(self) -> bool:
        return self.state[:3] == tuple(self.goal)

    def achieved(self) -> Array:
        return np.array(self.state[:3])

    def observe(self) -> Array:
        return np.ravel(self.board(self.state))


def valet() -> Any:
    """Follow a shortest path."""
    plan: list[int] = []

    def act(observation: Observation) -> int:
        board, goal = observation["observation"].reshape(6, 6), tuple(observation["desired_goal"].tolist())
        if not plan:
            state = tuple(int(np.argwhere(board == k + 1)[0][0 if ParkedCars.cars[k][0] else 1]) for k in range(6))
            plan.extend(shortest_path(state, lambda one: one[:3] == goal, ParkedCars.after))
        return plan.pop(0)

    return act


TASKS: tuple[Task, ...] = (
    Task("RingHovercraft-v0", "rewards", "closed", RingHovercraft, 80, lambda: hover),
    Task("CableCamera-v0", "units", "closed", CableCamera, 50, lambda: wind),
    Task("NeutralVat-v0", "not-a-robot", "closed", NeutralVat, 60, lambda: neutralise),
    Task("ParkedCars-v0", "discrete", "closed", ParkedCars, 40, valet),
)
