"""Open tasks: a thimble with a pea, a block on ice, and weights on a seesaw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, EachNear, Seen, SizedTask, clipped, shortest_path

ROCKS = frozenset({(1, 4), (2, 1), (3, 3), (4, 6), (5, 2), (6, 5)})
WAYS = ((-1, 0), (0, 1), (1, 0), (0, -1))
Cell = tuple[int, int]


class ThimblePea(EachNear):
    """A hand puts a thimble over a pea, seen from the side, drags the pea to its place, and takes the thimble to its own.

    Outside, the thimble pushes the pea before it. The goal has the places of both. Actions: right, up, and the grip.
    """

    numbers, near = (8, 2, 3), 0.05
    pace, inner, outer, tall, low, most = 0.06, 0.05, 0.07, 0.12, 0.03, 0.4

    def begin(self) -> None:
        self.pea, self.cup = self.place(-0.5, 0.5)
        while abs(self.pea - self.cup) < 0.1:
            self.pea = float(self.np_random.uniform(-0.5, 0.5))
        self.goal = np.array([self.pea, self.cup])
        while abs(self.goal[0] - self.pea) < 0.12:
            self.goal = self.place(-0.45, 0.45)
        self.hand = np.array([np.clip(self.cup + self.np_random.uniform(-0.25, 0.25), -0.6, 0.6), 0.25])
        self.lift, self.is_held = 0.0, False

    def move(self, action: Array) -> None:
        was_low, before = self.lift < self.low, self.pea - self.cup
        top = np.array([self.cup, self.lift + self.tall])
        near = bool(np.abs(self.hand - top).max() < 0.05)
        if not self.is_held and near and action[2] > 0:
            self.hand = top
        self.is_held = bool(near and action[2] > 0)
        self.hand = np.clip(self.hand + self.pace * action[:2], [-0.6, self.tall], [0.6, self.most])
        if self.is_held:
            self.cup, self.lift = float(self.hand[0]), float(self.hand[1] - self.tall)
        else:
            self.lift = max(0.0, self.lift - 0.1)
        if self.lift >= self.low:
            return
        gap = before if was_low else self.pea - self.cup
        if abs(gap) < 0.5 * (self.inner + self.outer):
            self.pea = float(self.cup + np.clip(self.pea - self.cup, -self.inner, self.inner))
        else:
            side = math.copysign(1.0, gap)
            self.pea = float(self.cup + side * max(self.outer, side * (self.pea - self.cup)))

    def achieved(self) -> Array:
        return np.array([self.pea, self.cup])

    def observe(self) -> Array:
        x, z = self.hand
        return np.array([self.lift, x - self.cup, z, self.pea, self.is_held, self.cup, self.pea - self.cup, x])


def cover_and_drag() -> Any:
    """Fetch the thimble, cover the pea, drag it, lift the thimble, and put it down at its own place."""

    def act(observation: Observation) -> Array:
        lift, aside, height, pea, is_held, cup, gap, _ = observation["observation"]
        goal_pea, goal_cup = observation["desired_goal"]
        missing, pace = goal_pea - pea, ThimblePea.pace
        if not is_held:
            return clipped(-aside / pace, (ThimblePea.tall + lift - height) / pace, 1 if abs(aside) < 0.04 else -1)
        is_placed = abs(missing) < 0.04
        if is_placed and abs(goal_cup - cup) < 0.02:
            return clipped(0, -lift / pace, 1)
        target = goal_cup if is_placed else pea
        if not is_placed and lift < ThimblePea.low and abs(gap) < 0.06:  # the pea is inside
            wall = math.copysign(ThimblePea.inner, missing)
            return clipped((missing + gap + wall - 0.01 * np.sign(missing)) / pace, -lift / pace, 1)
        if abs(target - cup) < 0.02:
            return clipped((target - cup) / pace, -lift / pace, 1)
        return clipped((target - cup) / pace if lift > 0.05 else 0, (0.09 - lift) / pace, 1)

    return act


class IceBlock(SizedTask):
    """A penguin walks on a pond with rocks, one cell a step, and shoves a block of ice to a cell.

    A shoved block slides on until a rock or the shore stops it. Actions: north, east, south, west.
    """

    numbers, thing, near, size = (8, 2, 1), "block", 0.5, 8

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(4)

    @classmethod
    def is_free(cls, cell: Cell) -> bool:
        return 0 <= cell[0] < cls.size and 0 <= cell[1] < cls.size and cell not in ROCKS

    @classmethod
    def slid(cls, block: Cell, way: Cell) -> Cell:
        """Return where a shoved block stops."""
        while cls.is_free((block[0] + way[0], block[1] + way[1])):
            block = block[0] + way[0], block[1] + way[1]
        return block

    @classmethod
    def after(cls, state: tuple[Cell, Cell], action: int) -> tuple[Cell, Cell]:
        """Return the cells of penguin and block after an action."""
        (penguin, block), way = state, WAYS[action]
        ahead = penguin[0] + way[0], penguin[1] + way[1]
        if ahead == block:
            return penguin, cls.slid(block, way)
        return (ahead if cls.is_free(ahead) else penguin), block

    def begin(self) -> None:
        self.goal = np.zeros(2)
        while True:  # until the block has been shoved to another cell
            cells = self.np_random.integers(1, self.size - 1, (2, 2)).tolist()
            self.penguin, self.block = tuple(cells[0]), tuple(cells[1])
            if self.penguin == self.block or not (self.is_free(self.penguin) and self.is_free(self.block)):
                continue
            penguin, block = self.penguin, self.block
            for _ in range(int(self.np_random.integers(1, 4))):
                penguin, block = self._shoved(penguin, block)
            if block != self.block:
                self.goal = np.array(block, np.float64)
                return

    def _shoved(self, penguin: Cell, block: Cell) -> tuple[Cell, Cell]:
        """Return the cells after a shove in a random direction, of those that the penguin can walk to."""
        near = [penguin]
        for at in near:  # the list grows during the loop
            cells = [(at[0] + way[0], at[1] + way[1]) for way in WAYS]
            near += [cell for cell in cells if self.is_free(cell) and cell != block and cell not in near]
        way = WAYS[int(self.np_random.integers(4))]
        behind = block[0] - way[0], block[1] - way[1]
        return (behind, self.slid(block, way)) if behind in near else (penguin, block)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step(np.eye(4)[int(action)])

    def move(self, action: Array) -> None:
        self.penguin, self.block = self.after((self.penguin, self.block), int(action.argmax()))

    def observe(self) -> Array:
        runs = [sum(self.slid(self.block, way)) - sum(self.block) for way in WAYS]
        return np.array([*self.penguin, *runs, *self.block], np.float64)


def shove() -> Any:
    """Search a shortest sequence of steps once, and follow it."""
    plan: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal plan
        seen = observation["observation"].astype(int).tolist()
        if plan is None:
            start, goal = (tuple(seen[:2]), tuple(seen[6:])), tuple(observation["desired_goal"].astype(int).tolist())
            plan = shortest_path(start, lambda s: s[1] == goal, lambda s: [IceBlock.after(s, a) for a in range(4)])
        if plan:
            return plan.pop(0)
        state = tuple(seen[:2]), tuple(seen[6:])
        return next(action for action in range(4) if IceBlock.after(state, action)[1] == state[1])

    return act


class SeesawWeights(EachNear):
    """A hand shifts two weights, of two kilograms and one, on a seesaw, each on its own track, in decimetres.

    The goal is the tilt of the seesaw, in degrees, and the place of the smaller weight. The tilt settles slowly. Actions:
    the hand's velocity along and across the seesaw, and the grip.
    """

    numbers, near, tracks = (8, 2, 3), 1.2, np.array([-1.0, 1.0])
    pace, slow, grab, mass, gain = np.array([1.0, 0.6]), np.array([0.7, 1.0]), 0.8, np.array([2.0, 1.0]), 0.6

    def begin(self) -> None:
        self.at, self.hand = self.place(-7, 7), self.place([-8, -1], [8, 1])
        wish = self.place(-7, 7)
        while np.abs(wish - self.at).max() < 2 or np.abs(wish - self.at).max() > 9:
            wish = self.place(-7, 7)
        self.tilt, self.held = self.balance(self.at), -1
        self.goal = np.array([self.balance(wish), wish[1]])

    @classmethod
    def balance(cls, at: Array) -> float:
        """Return the tilt at which the seesaw comes to rest."""
        return float(cls.gain * cls.mass @ at)

    def move(self, action: Array) -> None:
        across = np.abs(self.hand[1] - self.tracks)
        near = (across < 0.4) & (np.abs(self.hand[0] - self.at) < self.grab)
        self.held = int(near.argmax()) if near.any() and action[2] > 0 else -1
        move = self.pace * action[:2]
        if self.held >= 0:
            move = np.array([move[0] * self.slow[self.held], 0.0])
        before = self.hand[0]
        self.hand = np.clip(self.hand + move, [-9, -1], [9, 1])
        if self.held >= 0:
            self.at[self.held] += self.hand[0] - before
        self.tilt += 0.5 * (self.balance(self.at) - self.tilt)

    def achieved(self) -> Array:
        return np.array([self.tilt, self.at[1]])

    def observe(self) -> Array:
        (x, y), (heavy, small) = self.hand, self.at
        tilt = math.radians(self.tilt)
        return np.array([y, heavy, math.sin(tilt), small - x, self.held == 0, heavy - x, self.held == 1, x])


def shift() -> Any:
    """Shift the small weight to its place, then the big one to where it gives the tilt."""

    def act(observation: Observation) -> Array:
        y, heavy, _, to_small, is_big, to_big, is_small, x = observation["observation"]
        (tilt, small), task = observation["desired_goal"], SeesawWeights
        lack_small = small - (x + to_small)
        lack_big = (tilt / task.gain - small) / task.mass[0] - heavy
        wanted = 1 if abs(lack_small) > 0.4 else 0
        if wanted == 0 and abs(lack_big) < 0.3:
            return clipped(0, 0, -1)
        gap, lack = (to_small, lack_small) if wanted else (to_big, lack_big)
        if is_small if wanted else is_big:
            return clipped(lack / (task.pace[0] * task.slow[wanted]), 0, 1)
        across = task.tracks[wanted] - y
        is_there = abs(gap) < 0.5 and abs(across) < 0.3
        return clipped(gap / task.pace[0], across / task.pace[1], 1 if is_there else -1)

    return act


TASKS: tuple[Task, ...] = (
    Task("ThimblePea-v0", "several-objects", "open", ThimblePea, 75, cover_and_drag),
    Task("IceBlock-v0", "discrete", "open", IceBlock, 40, shove),
    Task("SeesawWeights-v0", "several-objects", "open", SeesawWeights, 60, shift),
)
