"""Closed tasks: two climbers, a puzzle of rings, a handbrake, a hammer, and two rails that cross."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..open.base import Array, GoalTask, Seen, SinglePrecision, SizedTask, clipped, shortest_path, unit
from ..open.grids import DiscreteTask, numbers
from ..task import Observation, Task


class RopedClimbers(SizedTask):
    """Two climbers on a wall of 10 by 12 metres climb to a place each. A rope of 3.5 metres joins them.

    If both climb fast at once, nobody holds the rope and both slip. Goals and actions: those of the first climber,
    then those of the second one. An action is a speed to the right and upwards.
    """

    numbers, near = (6, 4, 4), 0.5
    pace, rope, fast, slip = 0.4, 3.5, 0.5, 0.2
    low, high = np.zeros(2), np.array([10.0, 12.0])

    def begin(self) -> None:
        self.climbers = self.pair()
        self.goal = self.climbers.ravel()
        while not 1.5 < np.abs(self.goal - self.climbers.ravel()).max() < 6:
            self.goal = self.pair().ravel()

    def pair(self) -> Array:
        """Return two random places that the rope allows."""
        first = self.place([1, 1], [9, 11])
        gap = self.np_random.uniform(1, 3) * unit(self.np_random.uniform(-math.pi, math.pi))
        return np.clip(np.array([first, first + gap]), self.low + 0.5, self.high - 0.5)

    def achieved(self) -> Array:
        return self.climbers.ravel().copy()

    def move(self, action: Array) -> None:
        speeds = action.reshape(2, 2)
        lengths = np.linalg.norm(speeds, axis=1)
        speeds = speeds / np.maximum(1, lengths)[:, None]
        if (lengths > self.fast).all():
            speeds = np.array([[0, -self.slip / self.pace]] * 2)
        for i in range(2):
            to = np.clip(self.climbers[i] + self.pace * speeds[i], self.low, self.high)
            gap = to - self.climbers[1 - i]
            to = self.climbers[1 - i] + gap * min(1.0, self.rope / max(1e-9, float(np.linalg.norm(gap))))
            self.climbers = np.array([to, self.climbers[1]]) if i == 0 else np.array([self.climbers[0], to])

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        gaps = (achieved_goal - desired_goal).reshape(*np.shape(achieved_goal)[:-1], 2, 2)
        return (np.linalg.norm(gaps, axis=-1) <= self.near).all(-1)

    def observe(self) -> Array:
        gap = self.climbers[0] - self.climbers[1]
        slack = self.rope - float(np.linalg.norm(gap))
        return np.array([slack, self.climbers[1][1], self.climbers[1][0], *gap, self.np_random.normal(0, 0.1)])


def climb() -> Any:
    """Let the climbers take turns; each goes as far as the rope allows."""
    turn = 0

    def act(observation: Observation) -> Array:
        nonlocal turn
        turn, task = 1 - turn, RopedClimbers
        ways = (observation["desired_goal"] - observation["achieved_goal"]).reshape(2, 2)
        lengths = np.linalg.norm(ways, axis=1)
        if lengths[turn] < 0.1:
            turn = 1 - turn
        speeds = np.zeros((2, 2))
        speeds[turn] = ways[turn] / max(task.pace, float(lengths[turn]))
        other = 1 - turn
        speeds[other] = 0.95 * task.fast * ways[other] / max(0.95 * task.fast * task.pace, float(lengths[other]))
        return speeds.ravel().astype(np.float32)

    return act


class ChineseRings(DiscreteTask):
    """Six rings hang on a bar or off it, and go over its end in an order of their own, until the wished ones are on it.

    The first ring always goes on or off. Another one does if, of those before it, only the last is on the bar. The
    observation adds the number of rings that hang on the bar. The episode ends at the goal.
    """

    rings, least, most = 6, 4, 24

    def __init__(self) -> None:
        goal, observed = spaces.MultiBinary(self.rings), numbers(self.rings, self.rings + 1)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(self.rings)

    def begin(self) -> None:
        self.state = tuple(self.np_random.integers(0, 2, self.rings).tolist())
        length = 0
        while not self.least <= length <= self.most:
            wish = tuple(self.np_random.integers(0, 2, self.rings).tolist())
            length = len(shortest_path(self.state, wish.__eq__, self.after))
        self.goal = np.array(wish, np.int8)

    @classmethod
    def after(cls, state: Any) -> list[Any]:
        found = []
        for ring in range(cls.rings):
            may = ring == 0 or (state[ring - 1] == 1 and not any(state[: ring - 1]))
            found.append((*state[:ring], 1 - state[ring], *state[ring + 1 :]) if may else state)
        return found

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, info["is_success"], truncated, info

    def seen(self) -> Seen:
        state = np.array(self.state)
        return {
            "observation": np.append(state.sum(), state[::-1]),
            "achieved_goal": state.astype(np.int8),
            "desired_goal": self.goal.copy(),
        }


def solve_rings() -> Any:
    """Follow a shortest sequence of rings."""
    plan: list[int] = []

    def act(observation: Observation) -> int:
        start, end = (tuple(observation[key].tolist()) for key in ("achieved_goal", "desired_goal"))
        if not plan:
            plan.extend(shortest_path(start, end.__eq__, ChineseRings.after))
        return plan.pop(0) if plan else 0

    return act


class HandBrake(SinglePrecision):
    """A hand pulls the lever of a handbrake, seen from the side, to a wished angle, in tens of degrees.

    A ratchet stops the lever on its way down, unless the thumb presses the button. Lengths are in decimetres.
    Actions: the thumb (above 0 presses), speeds upwards and backwards, and the grip (above 0 holds).
    """

    numbers, near = (8, 1, 4), 0.25
    pace, length, grab, most = 0.3, 2.5, 0.4, 6.0

    def begin(self) -> None:
        self.angle, self.is_held, self.is_pressed = float(self.np_random.uniform(0.2, 5.8)), False, False
        self.hand = self.end() + self.np_random.uniform(0.8, 1.8) * unit(self.np_random.uniform(0.2, math.pi - 0.2))
        self.goal = self.achieved()
        while abs(self.goal[0] - self.angle) < 1.2:
            self.goal = self.place(0.4, 5.6, 1)

    def end(self) -> Array:
        """Return where the end of the lever is: backwards and upwards of its pivot."""
        return self.length * unit(math.radians(10 * self.angle))

    def achieved(self) -> Array:
        return np.array([self.angle])

    def move(self, action: Array) -> None:
        thumb, up, back, grip = action
        displacement, end = self.pace * np.array([back, up]), self.end()
        self.is_held = bool(grip > 0 and (self.is_held or np.linalg.norm(self.hand - end) < self.grab))
        self.is_pressed = bool(self.is_held and thumb > 0)
        if not self.is_held:
            self.hand = np.clip(self.hand + displacement, [-1.5, -1.0], [4.5, 4.5])
            return
        swing = float(unit(math.radians(10 * self.angle) + math.pi / 2) @ displacement) / self.length
        if swing > 0 or self.is_pressed:
            self.angle = float(np.clip(self.angle + math.degrees(swing) / 10, 0, self.most))
        self.hand = self.end()

    def observe(self) -> Array:
        (back, up), lever = self.hand, math.radians(10 * self.angle)
        return np.array(
            [math.sin(lever), math.cos(lever), up, back, self.is_held, *(self.end() - self.hand), self.is_pressed]
        )


def pull_brake() -> Any:
    """Go to the end of the lever, hold it, and move along its arc; press the button on the way down."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"].astype(float), HandBrake
        lack = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        if not seen[4]:
            back, up = seen[5:7] / task.pace
            return clipped(-1, up, back, 1 if np.linalg.norm(seen[5:7]) < 0.9 * task.grab else -1)
        swing = task.length * math.radians(10 * lack) / task.pace
        if abs(lack) < 0.1:
            return clipped(-1, 0, 0, 1)
        swing = min(1.0, max(-1.0, swing))
        return clipped(1 if lack < 0 else -1, swing * seen[1], -swing * seen[0], 1)

    return act


class NailHammer(SizedTask):
    """An arm with two joints, seen from the side, drives a nail into a bench to a wished depth, in millimetres.

    The faster the hammer at the end of the arm comes down on the nail, the deeper that goes, and it never comes out.
    Actions: speeds of shoulder and elbow. Lengths of the observation are in metres.
    """

    numbers, near = (7, 1, 2), 3.0
    links, shoulder, pace, face = (0.45, 0.4), np.array([0.0, 0.45]), 0.15, 0.04
    gain, least, size = 200.0, 0.02, 60.0
    low, high = np.array([-1.0, -2.6]), np.array([1.2, -0.2])

    @classmethod
    def tip(cls, joints: Array) -> Array:
        """Return the place of the hammer."""
        return cls.shoulder + cls.links[0] * unit(joints[0]) + cls.links[1] * unit(joints.sum())

    def begin(self) -> None:
        self.nail, self.depth = float(self.np_random.uniform(0.35, 0.6)), float(self.np_random.uniform(0, 20))
        self.joints = self.place(self.low, self.high)
        while not 0.2 < self.tip(self.joints)[1] < 0.6 or self.tip(self.joints)[0] < 0.25:
            self.joints = self.place(self.low, self.high)
        self.goal = np.array([self.depth + self.np_random.uniform(9, 35)])

    def achieved(self) -> Array:
        return np.array([self.depth])

    def move(self, action: Array) -> None:
        joints = np.clip(self.joints + self.pace * action, self.low, self.high)
        before, after = self.tip(self.joints), self.tip(joints)
        is_above = abs(after[0] - self.nail) < self.face
        floor = 0.001 * (self.size - self.depth) if is_above else 0.0
        if after[1] < floor:
            if is_above:
                blow = max(0.0, float(before[1] - after[1]) - self.least)
                self.depth = min(self.size, self.depth + self.gain * blow)
            part = max(0.0, float(before[1]) - floor) / max(1e-9, float(before[1] - after[1]))
            joints = self.joints + min(1.0, part) * (joints - self.joints)
        self.joints = joints

    def observe(self) -> Array:
        hammer = self.tip(self.joints)
        to_head = np.array([self.nail, 0.001 * (self.size - self.depth)]) - hammer
        return np.array([self.joints[1], *to_head, self.joints[0], hammer[1], hammer[0], self.depth])


def hammer() -> Any:
    """Lift the hammer above the nail, and strike as hard as the missing depth needs."""

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], NailHammer
        shoulder, elbow, gap = seen[3], seen[0], seen[1:3]
        missing = float(observation["desired_goal"][0] - observation["achieved_goal"][0])
        both = shoulder + elbow
        (c1, s1), (c2, s2) = task.links[0] * unit(shoulder), task.links[1] * unit(both)
        jacobian = np.array([[-s1 - s2, -s2], [c1 + c2, c2]])
        if missing < 1.5:
            way = np.array([0.0, 0.05])
        elif abs(gap[0]) < 0.012 and -0.035 < gap[1] < -0.005:
            way = np.array([gap[0], -min(0.1, task.least + missing / task.gain)])
        else:
            way = gap + np.array([0, 0.02 if abs(gap[0]) < 0.03 else 0.1])
            way = way * min(1.0, 0.08 / max(1e-9, float(np.linalg.norm(way))))
        rates = np.linalg.solve(jacobian + 1e-6 * np.eye(2), way) / task.pace
        return (rates / max(1.0, float(np.abs(rates).max()))).astype(np.float32)

    return act


class CrossRails(GoalTask):
    """A hand brings two sliders to their marks on two rails that cross in the middle of a plate of 100 by 100.

    Only one slider at a time can be where the rails cross. The reward is minus the number of sliders that are not at
    their marks. The first slider runs from left to right, the second one upwards. Actions: speeds, and the magnet.
    """

    near, pace, grab, half_size = 5.0, 7.0, 7.0, 10.0

    def __init__(self) -> None:
        super().__init__(7, 2, 3)
        observed, goal = (spaces.Box(-100.0, 200.0, (n,), np.float64) for n in (7, 2))
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)

    @classmethod
    def is_crossing(cls, place: float) -> bool:
        """Return whether a slider is where the rails cross."""
        return abs(place - 50) < cls.half_size

    @classmethod
    def blocks(cls, other: float, start: float, end: float) -> bool:
        """Return whether a slider at `other` stops the other one between two places."""
        return cls.is_crossing(other) and min(start, end) < 50 + cls.half_size and max(start, end) > 50 - cls.half_size

    @classmethod
    def order(cls, start: Array, end: Array) -> int | None:
        """Return which slider can go to its mark first, or None if none can."""
        for first in (0, 1):
            second = 1 - first
            is_blocked = cls.blocks(start[second], start[first], end[first])
            if not is_blocked and not cls.blocks(end[first], start[second], end[second]):
                return first
        return None

    def begin(self) -> None:
        self.hand, self.held, self.sliders = self.place(10, 90), -1, self.place(5, 95)
        while self.is_crossing(self.sliders[0]) and self.is_crossing(self.sliders[1]):
            self.sliders = self.place(5, 95)
        self.goal = self.sliders
        while np.abs(self.goal - self.sliders).min() < 12 or self.order(self.sliders, self.goal) is None:
            self.goal = self.place(8, 92)

    def spots(self) -> Array:
        """Return where the two sliders are on the plate."""
        return np.array([[self.sliders[0], 50.0], [50.0, self.sliders[1]]])

    def achieved(self) -> Array:
        return self.sliders.copy()

    def move(self, action: Array) -> None:
        displacement = self.pace * action[:2]
        distances = np.linalg.norm(self.spots() - self.hand, axis=1)
        if action[2] <= 0:
            self.held = -1
        elif self.held < 0 and distances.min() < self.grab:
            self.held = int(np.argmin(distances))
        if self.held < 0:
            self.hand = np.clip(self.hand + displacement, 0, 100)
            return
        to, other = float(self.sliders[self.held] + displacement[self.held]), float(self.sliders[1 - self.held])
        to = min(97.0, max(3.0, to))
        if not self.blocks(other, float(self.sliders[self.held]), to):
            self.sliders = np.where(np.arange(2) == self.held, to, self.sliders)
        self.hand = self.spots()[self.held]

    def observe(self) -> Array:
        first, second = self.spots() - self.hand
        return np.array([*self.hand, self.held + 1.0, *second, *first])

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return minus the number of sliders that are farther than 5 from their marks."""
        return -(np.abs(achieved_goal - desired_goal) > self.near).sum(-1).astype(np.float64)

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return (np.abs(achieved_goal - desired_goal) <= self.near).all(-1)


def slide_both() -> Any:
    """Bring the slider whose path is free to its mark, then the other one."""
    order: list[int] = []

    def act(observation: Observation) -> Array:
        seen, task = observation["observation"], CrossRails
        sliders, goal = observation["achieved_goal"], observation["desired_goal"]
        if not order:
            first = task.order(sliders, goal) or 0
            order.extend((first, 1 - first))
        lacks = goal - sliders
        now = next((i for i in order if abs(lacks[i]) > 0.1 * task.near), None)
        if now is None:
            return clipped(0, 0, -1)
        if int(seen[2]) == now + 1:
            speeds = np.where(np.arange(2) == now, lacks, 0) / task.pace
            return clipped(*speeds, 1)
        gap = seen[[5, 6]] if now == 0 else seen[[3, 4]]
        is_near = int(seen[2]) == 0 and np.linalg.norm(gap) < 0.5
        return clipped(*(gap / task.pace), 1 if is_near else -1)

    return act


TASKS: tuple[Task, ...] = (
    Task("RopedClimbers-v0", "several-bodies", "closed", RopedClimbers, 60, climb),
    Task("ChineseRings-v0", "discrete", "closed", ChineseRings, 40, solve_rings),
    Task("HandBrake-v0", "pull", "closed", HandBrake, 45, pull_brake),
    Task("NailHammer-v0", "hit", "closed", NailHammer, 50, hammer),
    Task("CrossRails-v0", "several-objects", "closed", CrossRails, 75, slide_both),
)
