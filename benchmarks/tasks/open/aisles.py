"""Vehicles in narrow aisles, a canal with locks, a raw egg, and a gate with a latch."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, GoalTask, Seen, shortest_path, unit

State = tuple[int, ...]


class Plan(gymnasium.Env[Seen, int]):
    """A task of whole numbers. The reward is 0 at the goal, else -1."""

    n_actions: int

    def __init__(self, n_observed: int, n_goal: int) -> None:
        observed, goal = spaces.Box(0, 999, (n_observed,), np.int64), spaces.Box(0, 9, (n_goal,), np.int64)
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Discrete(self.n_actions)

    def begin(self) -> tuple[State, State]:
        """Draw the state and the goal."""
        raise NotImplementedError

    @staticmethod
    def after(state: State, action: int) -> State:
        """Return the state after an action."""
        raise NotImplementedError

    @staticmethod
    def achieved(state: State) -> State:
        """Return the goal that a state achieves."""
        raise NotImplementedError

    def observe(self) -> list[int]:
        """Return the columns of the observation."""
        raise NotImplementedError

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        (self.state, self.goal), self.changes = self.begin(), 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Change the state, and count the changes."""
        before, self.state = self.state, self.after(self.state, int(action))
        self.changes += int(self.state != before)
        seen = self.seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, False, {"is_success": reward == 0}

    def seen(self) -> Seen:
        """Return the three parts of the observation."""
        return {
            "observation": np.array(self.observe()),
            "achieved_goal": np.array(self.achieved(self.state)),
            "desired_goal": np.array(self.goal),
        }

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 at the goal, else -1."""
        return np.all(achieved_goal == desired_goal, axis=-1).astype(np.float64) - 1


class Planner:
    """The actions of a shortest path from the first observation to its goal, then one that changes nothing."""

    path: list[int] | None = None

    def __init__(self, task: type[Plan], state: Any, idle: int) -> None:
        self.task, self.state, self.idle = task, state, idle

    def __call__(self, observation: Observation) -> int:
        """Return the next action."""
        if self.path is None:
            task, goal = self.task, tuple(observation["desired_goal"].tolist())
            self.path = shortest_path(
                self.state(observation["observation"].tolist()),
                lambda state: task.achieved(state) == goal,
                lambda state: [task.after(state, k) for k in range(task.n_actions)],
            )
        return self.path.pop(0) if self.path else self.idle


class AisleCarts(Plan):
    """Three vehicles in the aisles of a store, too narrow to pass each other except by its bays, each go to a position.

    A goal is row and column of each vehicle. In each step one vehicle drives one cell, or all wait (12). "#" are racks.
    """

    store = ("#.###.#.", "........", "#.#.####")
    n_actions = 13
    moves = ((0, 1), (-1, 0), (0, -1), (1, 0))
    free = frozenset((i, j) for i, row in enumerate(store) for j, place in enumerate(row) if place == ".")

    def __init__(self) -> None:
        super().__init__(8, 6)

    def begin(self) -> tuple[State, State]:
        cells = sorted(self.free)
        starts = goals = [cells[k] for k in self.np_random.choice(len(cells), 3, replace=False)]
        while any(start == goal for start, goal in zip(starts, goals, strict=True)):
            goals = [cells[k] for k in self.np_random.choice(len(cells), 3, replace=False)]
        self.last = 0
        return tuple(x for cell in starts for x in cell), tuple(x for cell in goals for x in cell)

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Drive a vehicle, and note which one."""
        self.last = 0 if action == 12 else 1 + int(action) % 3
        return super().step(action)

    @staticmethod
    def after(state: State, action: int) -> State:
        if action == 12:
            return state
        (down, right), vehicle = AisleCarts.moves[action // 3], action % 3
        cells = [state[:2], state[2:4], state[4:]]
        to = (cells[vehicle][0] + down, cells[vehicle][1] + right)
        if to not in AisleCarts.free or to in cells:
            return state
        return state[: 2 * vehicle] + to + state[2 * vehicle + 2 :]

    @staticmethod
    def achieved(state: State) -> State:
        return state

    def observe(self) -> list[int]:
        return [*self.state[1::2], self.changes, *self.state[::2], self.last]


def aisle_script() -> Planner:
    """Drive on a shortest path, then wait."""
    return Planner(AisleCarts, lambda seen: tuple(x for k in range(3) for x in (seen[4 + k], seen[k])), 12)


class CanalLocks(Plan):
    """A barge goes to another one of four pools of a canal, through locks. In the end all gates must be shut.

    The state is the position, even in a pool and odd in a lock, and of each lock the water, 0 to 2, and whether its lower
    and its upper gate are open. Actions: go up or down the canal, and for each lock fill, drain, and move either gate. A
    gate opens where the water is the same on both sides. Water runs while both gates are shut.
    """

    n_actions = 14

    def __init__(self) -> None:
        super().__init__(12, 2)

    def begin(self) -> tuple[State, State]:
        start, goal = self.np_random.choice(4, 2, replace=False).tolist()
        locks = [x for water in self.np_random.integers(0, 3, 3).tolist() for x in (water, 0, 0)]
        return (2 * start, *locks), (2 * goal, 0)

    @staticmethod
    def after(state: State, action: int) -> State:
        at, locks = state[0], [list(state[k : k + 3]) for k in (1, 4, 7)]
        if action < 2:
            door = at if action == 0 else at - 1  # of the gates in their order, two for each lock
            is_open = 0 <= door < 6 and locks[door // 2][1 + door % 2]
            return (at + 1 - 2 * action, *state[1:]) if is_open else state
        water, lower, upper = lock = locks[(action - 2) // 4]
        kind = (action - 2) % 4
        if kind < 2 and not lower and not upper:
            lock[0] = min(water + 1, 2) if kind == 0 else max(water - 1, 0)
        elif kind == 2 and water == 0:
            lock[1] = 1 - lower
        elif kind == 3 and water == 2:
            lock[2] = 1 - upper
        return (at, *locks[0], *locks[1], *locks[2])

    @staticmethod
    def achieved(state: State) -> State:
        return state[0], sum(state[2::3]) + sum(state[3::3])

    def observe(self) -> list[int]:
        at, *locks = self.state
        return [*locks[2::3], self.changes, *(140 * water for water in locks[::3]), at, 280, *locks[1::3]]


def canal_script() -> Planner:
    """Go on a shortest path, and then try to go on, which shut gates prevent."""
    return Planner(CanalLocks, lambda s: (s[7], *(x for k in range(3) for x in (s[4 + k] // 140, s[9 + k], s[k]))), 0)


class EggCarry(GoalTask):
    """Two fingers carry a raw egg to a position, often above the table. Millimetres. Heights are those of a whole egg.

    The egg breaks if it is squeezed, dropped or set down too hard, or hit by a finger from above. This ends the episode.
    The reward is 1 at the goal, else 0. Actions: speeds along x, y and z, and that of the fingers, which close along y.
    """

    near, long, hold, too_tight, too_fast = 20.0, 25.0, 1.0, 10.0, 14.0
    most = np.array([25.0, 25.0, 20.0, 4.0])

    def __init__(self) -> None:
        super().__init__(13, 3, 4)

    def begin(self) -> None:
        draw = self.np_random.uniform
        self.egg, self.width, self.opening = np.array([*self.place(-100, 100), 0.0]), draw(41, 47), draw(54, 70)
        self.hand = self.egg + self.place([-50, -50, 30], [50, 50, 80], 3)
        self.offset, self.fall, self.is_held, self.is_broken, self.goal = np.zeros(3), 0.0, False, False, self.egg
        while not 60 < np.linalg.norm(self.goal - self.egg) < 180:
            self.goal = np.array([*self.place(-140, 140), draw(30, 120) * (draw() < 0.6)])

    def move(self, action: Array) -> None:
        *speed, spread = self.most * action
        was_above = self.hand[2] - self.egg[2] >= self.long - 1e-9
        self.hand = np.clip(self.hand + speed, [-200, -200, 0], [200, 200, 200])
        self.opening = float(np.clip(self.opening + spread, 20, 80))
        is_hard = speed[2] < -self.too_fast
        is_between = self.is_held
        if self.is_held:
            self.egg = self.hand + self.offset
            if self.egg[2] < 0:
                self.is_broken, self.egg[2], self.hand[2] = is_hard, 0.0, -self.offset[2]
        else:
            is_between = self._touch(was_above, is_hard)
        squeeze = (self.width - self.opening) * is_between
        self.is_broken |= squeeze > self.too_tight
        self.is_held = squeeze >= self.hold
        self.offset = self.egg - self.hand
        if self.egg[2] > 0 and not self.is_held:
            self.fall += 8.0
            self.egg[2] = max(0.0, self.egg[2] - self.fall)
            self.is_broken |= self.egg[2] == 0 and self.fall > 16
        else:
            self.fall = 0.0
        self.egg[2] = -25.0 if self.is_broken else self.egg[2]

    def _touch(self, was_above: bool, is_hard: bool) -> bool:
        """Let the fingers rest on the egg, or shift it. Return whether it is between them."""
        gap, room = self.egg - self.hand, max(0.0, (self.opening - self.width) / 2)
        if abs(gap[2]) >= self.long or abs(gap[0]) > 15 or abs(gap[1]) > (self.opening + self.width) / 2 + 8:
            return False
        if was_above and abs(gap[1]) > room:
            self.hand[2], self.is_broken = self.egg[2] + self.long, is_hard
            return False
        is_between = bool(abs(gap[1]) <= self.opening / 2)
        outside = (self.opening + self.width) / 2 + 8
        self.egg[1] = self.hand[1] + (np.clip(gap[1], -room, room) if is_between else np.copysign(outside, gap[1]))
        return is_between

    def is_over(self) -> bool:
        return bool(self.is_broken)

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 1 at the goal, else 0."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64)

    def observe(self) -> Array:
        (x, y, z), (egg_x, egg_y, egg_z), (gap_x, gap_y, gap_z) = self.hand, self.egg, self.egg - self.hand
        force = 0.4 * max(0.0, self.width - self.opening) * self.is_held + 0.02 * self.np_random.normal()  # newtons
        return np.array([gap_z, self.width, x, egg_y, force, z, gap_x, egg_z, self.opening, y, self.fall, egg_x, gap_y])

    def achieved(self) -> Array:
        return self.egg.copy()


def carry_egg(observation: Observation) -> Array:
    """Lower the open fingers around the egg, close them gently, and carry it. Set it down slowly."""
    seen = observation["observation"]
    gap, opening, width, force = seen[[6, 12, 0]], seen[8], seen[1], seen[4]
    if force > 0.9:
        way = [*(observation["desired_goal"] - observation["achieved_goal"]), width - 5 - opening]
        way[2] = max(way[2], -10)
    elif np.all(np.abs(gap) < [8, 12, 10]):
        way = [0, 0, 0, width - 5 - opening]
    else:
        is_ready = np.abs(gap[:2]).max() < 5 and opening > width + 12
        way = [gap[0], gap[1], max(gap[2], -10) if is_ready else max(gap[2] + 45, 0), 72 - opening]
    return np.clip(np.array(way) / EggCarry.most, -1, 1).astype(np.float32)


class LatchGate(GoalTask):
    """A hand takes the knob of a gate, slides it towards the hinge against a spring, and pulls the gate to an opening.

    Lengths are in centimetres, and the goal in degrees. The latch keeps the gate shut until the knob is 5 of 8 centimetres
    from its rest. An open gate slowly falls shut. Actions: speed along x and y, and the grip, which closes above 0.
    """

    near, hinge, knob, travel, unlocked, pace = 4.0, np.array([-40.0, 30.0]), 75.0, 8.0, 5.0, 5.0

    def __init__(self) -> None:
        super().__init__(11, 1, 3)

    def begin(self) -> None:
        self.angle, self.slide, self.grip, self.is_held, self.speed = 0.0, 0.0, 0.0, False, np.zeros(2)
        self.hand = self.handle() + self.place([-15, -15], [15, -2])
        self.goal = self.place(15, 85, 1)

    def axes(self) -> tuple[Array, Array]:
        """Return the directions along the gate, from its hinge, and out of it, in which it opens."""
        along = unit(-self.angle)
        return along, np.array([along[1], -along[0]])

    def handle(self) -> Array:
        along, out = self.axes()
        return self.hinge + (self.knob - self.slide) * along + 4 * out

    def move(self, action: Array) -> None:
        self.grip = 0.5 * self.grip + 0.5 * float(action[2] > 0)
        self.speed = 0.4 * self.speed + 0.6 * self.pace * action[:2]
        is_near = self.is_held or float(np.linalg.norm(self.hand - self.handle())) < 5
        self.is_held = is_near and self.grip > (0.3 if self.is_held else 0.6)
        along, out = self.axes()
        turn, spring = -0.02, -4.0
        if self.is_held:
            turn, spring = float(self.speed @ out) / self.knob - 0.005, -float(self.speed @ along) - 0.5
        self.slide = float(np.clip(self.slide + spring, 0, self.travel))
        if self.angle > 0.03 or self.slide >= self.unlocked:
            self.angle = float(np.clip(self.angle + turn, 0, 1.75))
        if self.is_held:
            self.hand = self.handle()
            return
        self.hand = np.clip(self.hand + self.speed, [-60, -80], [60, 60])
        (along, out), arm = self.axes(), self.hand - self.hinge
        if -5 < arm @ along < 90 and arm @ out < 2:  # the hand stays in front of the gate
            self.hand = self.hand + (2 - arm @ out) * out

    def observe(self) -> Array:
        (gap_x, gap_y), (x, y), (speed_x, speed_y) = self.handle() - self.hand, self.hand, self.speed
        touch = float(self.is_held) + 0.03 * self.np_random.normal()
        gate = [gap_y, cos(self.angle), self.slide, speed_x, gap_x, touch]
        return np.array([y, self.grip, *gate, sin(self.angle), x, speed_y])

    def achieved(self) -> Array:
        return np.degrees([self.angle])


def open_gate(observation: Observation) -> Array:
    """Take the knob, slide it, pull the gate, and hold it at its opening."""
    seen, task = observation["observation"], LatchGate
    gap, speed = seen[[6, 2]], seen[[5, 10]]
    angle, goal = (float(np.radians(observation[key][0])) for key in ("achieved_goal", "desired_goal"))
    along = unit(-angle)
    to, grip = gap, 1.0 if np.linalg.norm(gap) < 3 else -1.0
    if seen[7] > 0.5:
        grip, out = 1.0, np.array([along[1], -along[0]])
        to = -6 * along if angle < 0.05 and seen[4] < 7 else (0.8 * (goal - angle) + 0.005) * task.knob * out - 0.5 * along
    return np.clip([*((to - 0.4 * speed) / (0.6 * task.pace)), grip], -1, 1).astype(np.float32)


TASKS = (
    Task("AisleCarts-v0", "several-bodies", "open", AisleCarts, 60, aisle_script),
    Task("CanalLocks-v0", "discrete", "open", CanalLocks, 70, canal_script),
    Task("EggCarry-v0", "fragile", "open", EggCarry, 60, lambda: carry_egg),
    Task("LatchGate-v0", "pull", "open", LatchGate, 60, lambda: open_gate),
)
