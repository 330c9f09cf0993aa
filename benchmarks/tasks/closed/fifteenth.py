"""Closed tasks: pancakes, skaters, and an aircraft."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, Seen, SizedTask, shortest_path, wrapped
from ..task import Observation, Task

State = tuple[int, ...]


class Puzzle(GoalTask):
    """A puzzle whose state is its goal, too: whole numbers. An episode goes on after success."""

    state: State

    def __init__(self, observed: spaces.Space[Any], high: int, n_goal: int, n_action: int) -> None:
        goal = spaces.Box(0, high, (n_goal,), np.int64)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(n_action)

    @staticmethod
    def after(state: State) -> list[State]:
        """Return the states after each action."""
        raise NotImplementedError

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Change the state."""
        self.state = self.after(self.state)[int(action)]
        return super().step(0)

    def move(self, action: Array) -> None:
        """Do nothing more."""

    def achieved(self) -> Array:
        return np.array(self.state)


class PancakeFlip(Puzzle):
    """Six pancakes of different sizes lie on a stack. A spatula gets below one of them and turns over what is above. The
    goal is an order of the stack. The observation also has the place of each pancake.
    """

    def __init__(self) -> None:
        super().__init__(spaces.Box(0, 5, (12,), np.int64), 5, 6, 6)

    def begin(self) -> None:
        self.state = tuple(self.np_random.permutation(6).tolist())
        self.goal = np.array(self.state)
        while np.sum(self.goal == self.state) > 2:
            self.goal = self.np_random.permutation(6)

    @staticmethod
    def after(state: State) -> list[State]:
        """Return the stack after each turn. That of the topmost pancake alone changes nothing."""
        return [state[k::-1] + state[k + 1 :] for k in range(6)]

    def observe(self) -> Array:
        return np.array([*self.state, *np.argsort(self.state)])


class IceSkaters(Puzzle):
    """Two skaters on a square of ice slide until something stops them: the edge, a rock, or the other one. The observation
    is one whole number. The goal: row and column of both. Actions: four directions for each.
    """

    side, ways = 7, ((-1, 0), (0, 1), (1, 0), (0, -1))
    rocks = frozenset({(0, 4), (1, 1), (2, 5), (3, 3), (5, 0), (5, 4), (6, 2)})

    def __init__(self) -> None:
        super().__init__(spaces.Discrete(self.side**4), self.side - 1, 4, 8)

    @staticmethod
    @cache
    def after(state: State) -> list[State]:
        """Return the places after each action."""
        found, pair = [], (state[:2], state[2:])
        for who in (0, 1):
            for down, right in IceSkaters.ways:
                place, ahead, stops = pair[who], pair[who], (*IceSkaters.rocks, pair[1 - who])
                while min(ahead) >= 0 and max(ahead) < IceSkaters.side and ahead not in stops:
                    place, ahead = ahead, (ahead[0] + down, ahead[1] + right)
                found.append((*pair[0], *place) if who else (*place, *pair[1]))
        return found

    @classmethod
    @cache
    def far(cls, state: State) -> list[State]:
        """Return what takes at least five actions."""
        within, rims = {state}, [[state]]
        while rims[-1]:
            rims.append(sorted({new for old in rims[-1] for new in cls.after(old)} - within))
            within.update(rims[-1])
        return [state for rim in rims[5:] for state in rim]

    def begin(self) -> None:
        self.state = (0, 0, self.side - 1, self.side - 1)
        for action in self.np_random.integers(8, size=20):
            self.state = self.after(self.state)[action]
        self.goal = self.np_random.choice(self.far(self.state))

    def observe(self) -> Any:
        return np.int64(sum(part * self.side**k for k, part in enumerate(self.state)))


def solver(after: Any) -> Any:
    """Return a policy that follows a shortest path, and then does what changes nothing."""
    plan: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal plan
        state, goal = (tuple(observation[key].tolist()) for key in ("achieved_goal", "desired_goal"))
        plan = shortest_path(state, lambda one: one == goal, after) if plan is None else plan
        return plan.pop(0) if plan else after(state).index(state)

    return act


class FixFlight(SizedTask):
    """A small aircraft flies to a fix in the wind, which ends the episode. Goals are miles east and north, around 1000, and
    feet. Actions: a course from -pi to pi, clockwise from north, feet a minute, and knots. A step lasts ten seconds. The
    observation contains the goal. The reward of a batch of one is a number.
    """

    numbers, near = (11, 3, 3), np.array([0.5, 150.0])

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(*np.array([[-np.pi, -1500, 90], [np.pi, 1500, 180]], np.float32))

    def begin(self) -> None:
        draw, bearing = self.np_random.uniform, self.np_random.uniform(-math.pi, math.pi)
        self.state, self.climb = draw([994, 994, 2000], [1006, 1006, 7000]), 0.0
        self.course, self.knots, self.wind = draw(-math.pi, math.pi), draw(100, 150), draw([-math.pi, 0], [math.pi, 25])
        far, rise = draw(3, 8), draw(500, 2500) * self.np_random.choice([-1, 1])
        rise = rise if 1200 < self.state[2] + rise < 8500 else -rise
        self.goal = self.state + np.array([far * math.sin(bearing), far * math.cos(bearing), rise])

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take a course, feet a minute, and knots."""
        return super().step((np.asarray(action, np.float64) - [0, 0, 135]) / [np.pi, 1500, 45])

    def move(self, action: Array) -> None:
        turn = wrapped(math.pi * float(action[0]) - self.course)
        self.course = wrapped(self.course + min(0.5, max(-0.5, turn)))
        self.knots += min(8.0, max(-8.0, 135 + 45 * action[2] - self.knots))
        self.climb = 0.4 * self.climb + 0.6 * 1500 * action[1]
        (way, blows), course = self.wind, self.course  # the wind comes from its direction
        east = self.knots * math.sin(course) - blows * math.sin(way)
        north = self.knots * math.cos(course) - blows * math.cos(way)
        self.state = np.maximum(self.state + np.array([east / 360, north / 360, self.climb / 6]), [-np.inf, -np.inf, 500])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether the aircraft is at the fix and at its height."""
        gaps = np.abs(achieved_goal - desired_goal)
        return (np.hypot(gaps[..., 0], gaps[..., 1]) <= self.near[0]) & (gaps[..., 2] <= self.near[1])

    def is_over(self) -> bool:
        return bool(self.is_met(self.achieved(), self.goal))

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 or -1."""
        reward = np.asarray(super().compute_reward(achieved_goal, desired_goal, info))
        return reward.item() if reward.size == 1 else reward

    def observe(self) -> Array:
        """Return height, heading, knots, place, where the wind is from, its knots, feet a minute, and the goal."""
        heading, source = (math.degrees(angle) % 360 for angle in (self.course, self.wind[0]))
        return np.array([self.state[2], heading, self.knots, *self.state[:2], source, self.wind[1], self.climb, *self.goal])

    def achieved(self) -> Array:
        return self.state.copy()


def navigate(observation: Observation) -> Array:
    """Fly to the fix; aside as long as the height is far off; straight on where the fix is within the circle of a turn."""
    height, heading, knots, east, north, source, blows, climb, *goal = observation["observation"]
    x, y, rise = goal[0] - east, goal[1] - north, goal[2] - height
    source, heading, far = math.radians(source), math.radians(heading), math.hypot(x, y)
    bearing = math.atan2(x, y)
    lean = math.asin(min(0.9, max(-0.9, blows * math.sin(source - bearing) / knots)))
    course = wrapped(bearing + lean)
    if abs(wrapped(bearing - heading)) > 0.9 and far < 1.5:
        course = wrapped(heading)
    elif far / knots * 360 < abs(rise) / 250 - 1:
        course = wrapped(bearing + 1.7)
    rate = min(1500.0, max(-1500.0, (rise * 6 - 0.4 * climb) / 0.6))
    return np.array([course, rate, 100.0 if far < 3 else 140.0], np.float32)


TASKS: tuple[Task, ...] = (
    Task("PancakeFlip-v0", "discrete", "closed", PancakeFlip, 25, lambda: solver(PancakeFlip.after)),
    Task("IceSkaters-v0", "discrete", "closed", IceSkaters, 40, lambda: solver(IceSkaters.after)),
    Task("FixFlight-v0", "units", "closed", FixFlight, 60, lambda: navigate),
)
