"""Three closed tasks: a clock, a pot of paint, and a knight with a coin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, OwnUnits, Seen, shortest_path
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class ClockHands(OwnUnits):
    """The crown of an alarm clock sets its two hands to a time if it is pulled out; else it winds the spring.

    The goal is the directions of both hands. Actions: the speed of the crown, to which it goes slowly, in minutes per step,
    and pulling it out or pushing it in, in millimetres.
    """

    numbers, near = (7, 4, 2), 0.4
    limits = (-24.0, -1.0), (24.0, 1.0)
    kept, day, out = 0.5, 720.0, 2.0  # half a day of minutes; millimetres

    def begin(self) -> None:
        self.minutes, self.wished = (float(m) for m in self.place(0, self.day))
        while abs(self.away(self.minutes, self.wished)) < 20:
            self.wished = float(self.np_random.uniform(0, self.day))
        self.crown, self.speed, self.wound = float(self.np_random.uniform(0, 3)), 0.0, float(self.np_random.uniform(0, 50))
        self.goal = self.hands(self.wished)

    @classmethod
    def away(cls, minutes: float, other: float) -> float:
        """Return how many minutes the other time is ahead, or, below zero, behind."""
        return (other - minutes + cls.day / 2) % cls.day - cls.day / 2

    @classmethod
    def hands(cls, minutes: float) -> Array:
        """Return the directions of the hour hand and of the minute hand: sines and cosines."""
        hour, minute = 2 * math.pi * minutes / cls.day, 2 * math.pi * minutes / 60
        return np.array([math.sin(hour), math.cos(hour), math.sin(minute), math.cos(minute)])

    def achieved(self) -> Array:
        return self.hands(self.minutes)

    def move(self, action: Array) -> None:
        self.speed = self.kept * self.speed + (1 - self.kept) * 24 * action[0]
        self.crown = float(np.clip(self.crown + action[1], 0, 3))
        if self.crown > self.out:
            self.minutes = (self.minutes + self.speed) % self.day
        else:
            self.wound = float(np.clip(self.wound + 0.5 * max(0.0, self.speed), 0, 100))

    def observe(self) -> Array:
        return np.array([self.crown, *self.hands(self.minutes)[::-1], self.wound, self.speed])


def set_clock() -> Any:
    """Pull the crown, turn it the shorter way, and push it in at the end."""

    def act(observation: Observation) -> Array:
        task, seen = ClockHands, observation["observation"]
        minutes = []
        for hands in (observation["achieved_goal"], observation["desired_goal"]):
            hour, minute = (math.atan2(*hands[i : i + 2]) / (2 * math.pi) % 1 for i in (0, 2))
            minutes.append(60 * (round(12 * hour - minute) + minute))
        lack = task.away(*minutes)
        if abs(lack) < 1:
            return np.array([0, -1], np.float32)
        speed = np.clip(0.5 * lack, -20, 20)
        return np.array([np.clip((speed - task.kept * seen[-1]) / (1 - task.kept), -24, 24), 1], np.float32)

    return act


class PaintPot(OwnUnits):
    """A machine mixes red, yellow, blue and white paint in a pot of half a litre to a wished colour: red, green, blue.

    What is more than the pot holds runs over. Actions: millilitres of each paint, and the share of the pot to drain.
    """

    numbers, thing, near = (6, 3, 5), "colour", 12.0
    limits = (0.0, 0.0, 0.0, 0.0, 0.0), (25.0, 25.0, 25.0, 25.0, 0.3)
    full, least = 500.0, 50.0
    paints = np.array([[215.0, 35, 40], [240, 205, 30], [25, 70, 190], [245, 245, 240]])

    def begin(self) -> None:
        self.paint = self.np_random.uniform(100, 400) * self.some_mix()
        self.goal = self.colour
        while np.linalg.norm(self.goal - self.colour) < 40:
            self.goal = self.some_mix() @ self.paints

    def some_mix(self) -> Array:
        """Return random shares of the paints."""
        return np.asarray(0.7 * self.np_random.dirichlet(np.ones(4)) + 0.075)

    @property
    def colour(self) -> Array:
        return np.asarray(self.paint @ self.paints / self.paint.sum())

    def move(self, action: Array) -> None:
        amounts = self.middle + self.half * action
        drained = min(float(amounts[4]), max(0.0, 1 - self.least / float(self.paint.sum())))
        self.paint = (1 - drained) * self.paint + amounts[:4]
        self.paint *= min(1.0, self.full / float(self.paint.sum()))

    def observe(self) -> Array:
        red, green, blue = self.colour / 255
        return np.array([self.paint.sum() / 1000, blue, green, red, self.np_random.normal(21, 0.5), self.full / 1000])


def mix() -> Any:
    """Find the shares of the paints of both colours, drain the pot, and add what is missing."""

    def act(observation: Observation) -> Array:
        task, volume = PaintPot, 1000 * observation["observation"][0]
        system = np.vstack([task.paints.T, 100 * np.ones(4)])
        have, wish = (np.linalg.solve(system, [*observation[key], 100]) for key in ("achieved_goal", "desired_goal"))
        if np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"]) < 0.5 * task.near:
            return np.zeros(5, np.float32)
        drain = 0.3 if volume > 120 else 0.0
        lack = wish * 200 - have * volume * (1 - drain)
        lack = np.maximum(lack, 0)
        return np.append(lack * min(1.0, 25 / max(1e-9, float(lack.max()))), drain).astype(np.float32)

    return act


class KnightCoin(DiscreteTask):
    """A knight on a board of 6x6 squares, with three holes, takes the coin on whose square it jumps, and carries it.

    The coin shall come to a square. A jump into a hole or off the board is none. Actions: eight jumps, and to put the coin
    down, which it does not take up again before it has left the square.
    """

    size, holes = 6, ((1, 4), (3, 1), (4, 3))
    jumps = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))

    def __init__(self) -> None:
        square, both = numbers(self.size - 1, 2), numbers(self.size - 1, 5)
        self.observation_space = spaces.Dict(observation=both, achieved_goal=square, desired_goal=square)
        self.action_space = spaces.Discrete(9)  # type: ignore[assignment]

    def begin(self) -> None:
        free = [(i, j) for i in range(self.size) for j in range(self.size) if (i, j) not in self.holes]
        knight, coin, goal = (free[i] for i in self.np_random.choice(len(free), 3, replace=False).tolist())
        self.state, self.goal = (*knight, *coin, 0), np.array(goal)

    @classmethod
    def after(cls, state: Any) -> list[Any]:
        row, column, *coin, carries = state
        found = []
        for down, right in cls.jumps:
            to = (row + down, column + right)
            if not (0 <= to[0] < cls.size and 0 <= to[1] < cls.size) or to in cls.holes:
                found.append(tuple(state))
                continue
            takes = bool(carries) or list(to) == coin
            found.append((*to, *(to if takes else coin), int(takes)))
        return [*found, (row, column, *coin, 0)]

    def seen(self) -> Seen:
        row, column, *coin, carries = self.state
        return {
            "observation": np.array([carries, column, row, *coin]),
            "achieved_goal": np.array(coin),
            "desired_goal": self.goal.copy(),
        }


def carry_coin() -> Any:
    """Follow a shortest sequence of jumps, and put the coin down."""
    plan: list[int] = []

    def act(observation: Observation) -> int:
        carries, column, row, *coin = observation["observation"].tolist()
        if coin == observation["desired_goal"].tolist():
            return 8
        if not plan:
            end = (*observation["desired_goal"].tolist(), 0)
            plan.extend(
                shortest_path((row, column, *coin, carries), lambda state: state[2:] == end, KnightCoin.after),
            )
        return plan.pop(0)

    return act


TASKS: tuple[Task, ...] = (
    Task("ClockHands-v0", "angles", "closed", ClockHands, 45, set_clock),
    Task("PaintPot-v0", "not-a-robot", "closed", PaintPot, 30, mix),
    Task("KnightCoin-v0", "discrete", "closed", KnightCoin, 25, carry_coin),
)
