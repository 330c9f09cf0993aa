"""Closed tasks: pancakes, skaters, a filing cabinet, an airlock, and an aircraft."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, Seen, SizedTask, clipped, shortest_path, wrapped
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


class FilingCabinet(SizedTask):
    """A cabinet, seen from the side, has three drawers, of which only one can be open at a time. A hand takes the handle of
    one and moves it. The goal: how far each is open. Actions: speeds of the hand and its grip. Centimetres.
    """

    numbers, thing, near, heights = (9, 3, 3), "drawers", 2.0, np.array([20.0, 50.0, 80.0])

    def begin(self) -> None:
        draw, self.held = self.np_random.uniform, -1
        self.hand, self.drawers, self.goal = draw([48, 5], [65, 95]), np.zeros(3), np.zeros(3)
        was = self.np_random.integers(3)
        self.drawers[was] = draw(6, 44)
        wish = was if draw() < 0.2 else (was + self.np_random.integers(1, 3)) % 3
        while abs(self.goal[wish] - self.drawers[wish]) < 6:
            self.goal[wish] = draw(6, 44)

    def move(self, action: Array) -> None:
        """Move the hand, and a drawer with it. Open drawers are in the way of the hand, and snap shut at the end."""
        was, place = self.hand, np.clip(self.hand + 5 * action[:2], [0, 0], [70, 100])
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0:
            far = np.hypot(self.drawers + 1 - was[0], self.heights - was[1])
            self.held = int(far.argmin()) if far.min() < 4 else -1
        if self.held >= 0:
            k, others = self.held, np.delete(self.drawers, self.held)
            if others.max() == 0:
                self.drawers[k] = min(45.0, max(0.0, place[0] - 1))
            self.hand = np.array([self.drawers[k] + 1, self.heights[k]])
        else:
            self.drawers[self.drawers < 1.5] = 0.0
            inside = (np.abs(self.heights - place[1]) < 10) & (place[0] < self.drawers)
            if inside.any():
                place = np.array([max(was[0], place[0]), was[1]])
            self.hand = place

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether each drawer is as it should be."""
        return np.abs(achieved_goal - desired_goal).max(-1) <= self.near

    def observe(self) -> Array:
        return np.array([*self.drawers[::-1], *self.hand, *(float(self.held == k) for k in range(3)), self.drawers.max()])


def file_away(observation: Observation) -> Array:
    """Shut what is open and should not be; then open the right drawer."""
    seen, drawers, goal = observation["observation"], observation["achieved_goal"], observation["desired_goal"]
    wrong = [k for k in range(3) if drawers[k] > 0 and goal[k] == 0]
    k = wrong[0] if wrong else int(goal.argmax())
    missing, (x, z) = goal[k] - drawers[k], seen[3:5]
    held, height = bool(seen[5 + k]), FilingCabinet.heights[k]
    if not held and seen[5:8].any():
        return clipped(0, 0, -1)
    if held:
        is_done = abs(missing) < 0.7
        return clipped(0 if is_done else missing / 5, 0, -1 if is_done else 1)
    if abs(missing) < 1:
        return clipped(0, 0, -1)
    if abs(z - height) > 3:
        clear = drawers.max() + 2
        return clipped((clear + 2 - x) / 5, (height - z) / 5 if x > clear else 0, -1)
    return clipped((drawers[k] + 1 - x) / 5, (height - z) / 5, 1 if abs(drawers[k] + 1 - x) < 3 else -1)


class Airlock(SizedTask):
    """An astronaut floats between the outside and the inside of a station, through a lock with two doors. The outer door is
    open while the lock is empty of air, the inner one while it is full. The pump works only near the lock. Actions: thrust
    in two directions, and the pump. The oxygen counts down, and does not matter.
    """

    numbers, thing, near, sill, door = (8, 2, 3), "place", 0.08, 0.25, 0.15

    def begin(self) -> None:
        draw, side, self.speed, self.oxygen = self.np_random.uniform, self.np_random.choice([-1, 1]), np.zeros(2), 300.0
        self.air, self.temperature = draw(0, 1), draw(18, 24)
        self.place = np.array([side * draw(0.45, 1.2), draw(-0.5, 0.5)])
        other = -side if draw() < 0.85 else draw(-0.15, 0.15)
        self.goal = np.array([other * draw(0.4, 1.2), draw(-0.5, 0.5)])

    def move(self, action: Array) -> None:
        if abs(self.place[0]) < self.sill + 0.2:
            self.air = min(1.0, max(0.0, self.air + 0.07 * action[2]))
        self.oxygen -= 1
        self.speed = 0.6 * self.speed + 0.035 * action[:2]
        was, (x, y) = self.place, np.clip(self.place + self.speed, [-1.3, -0.6], [1.3, 0.6])
        for wall, is_open in ((-self.sill, self.air < 0.1), (self.sill, self.air > 0.9)):
            if (was[0] < wall) != (x < wall) and not (is_open and abs(y) < self.door):
                x = wall - 0.01 if was[0] < wall else wall + 0.01
        self.place = np.array([x, y])
        self.speed = self.place - was

    def observe(self) -> Array:
        return np.array([self.oxygen, *self.place, self.temperature, *(10 * self.speed), self.air, float(self.air > 0.9)])


def lock_through() -> Any:
    """Go before a shut door, pump until it opens, pass it, and pump for the other one."""

    def act(observation: Observation) -> Array:
        (x, y), goal, seen = (observation[key] for key in ("achieved_goal", "desired_goal", "observation"))
        air, speed, sill = seen[6], seen[4:6] / 10, Airlock.sill
        room, wish = (int(place > -sill) + int(place > sill) for place in (x, goal[0]))
        aim, pump = goal, 0.0
        if room != wish:
            side = sill if room + wish >= 3 else -sill if room + wish <= 1 else (sill if room == 2 else -sill)
            pump = 1.0 if side > 0 else -1.0
            is_open = air * pump > (0.92 if side > 0 else -0.08)
            ahead = math.copysign(0.1, wish - room) * (1 if is_open and abs(y) < 0.1 else -1)
            aim = np.array([side + ahead, 0.0])
        return clipped(*((aim - [x, y] - 0.6 * speed) / 0.035), pump)

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
    Task("FilingCabinet-v0", "pull", "closed", FilingCabinet, 70, lambda: file_away),
    Task("Airlock-v0", "later", "closed", Airlock, 100, lock_through),
    Task("FixFlight-v0", "units", "closed", FixFlight, 60, lambda: navigate),
)
