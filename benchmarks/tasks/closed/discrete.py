"""Discrete."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..task import Task
from .spaces import goal_space, real

MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])  # row, column


class CrateGrid(gymnasium.Env):
    """A worker on a grid of six by six pushes a crate to a cell. It can push the crate but not pull it."""

    def __init__(self) -> None:
        cells = spaces.Box(0, 5, (2,), np.int64)
        self.observation_space = goal_space(spaces.Box(0, 5, (4,), np.int64), cells)
        self.action_space = spaces.Discrete(4)

    def _observe(self) -> dict[str, Any]:
        state = np.concatenate([self.worker, self.crate])
        return {"observation": state, "achieved_goal": self.crate.copy(), "desired_goal": self.goal.copy()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.crate = self.worker = self.goal = self.np_random.integers(1, 5, 2)
        while np.all(self.worker == self.crate):
            self.worker = self.np_random.integers(0, 6, 2)
        while np.abs(self.goal - self.crate).sum() < 2:
            self.goal = self.np_random.integers(1, 5, 2)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        to, pushed = self.worker + MOVES[action], self.crate + MOVES[action]
        if np.all(to == self.crate):
            if np.all((pushed >= 0) & (pushed < 6)):
                self.worker, self.crate = to, pushed
        elif np.all((to >= 0) & (to < 6)):
            self.worker = to
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return -np.any(achieved_goal != desired_goal, axis=-1).astype(np.float32)


def first_move(start: Any, neighbours: Any, is_end: Any) -> int:
    """Return the first action of a shortest way from a state to an end; neighbours gives (action, state)."""
    seen, queue = {start}, deque([(start, -1)])
    while queue:
        state, first = queue.popleft()
        if is_end(state):
            return max(first, 0)
        for action, new in neighbours(state):
            if new not in seen:
                seen.add(new)
                queue.append((new, action if first < 0 else first))
    return 0


def crate_script() -> Any:
    def neighbours(state: Any) -> Any:
        row, column, crate_row, crate_column = state
        for action, (dr, dc) in enumerate(MOVES.tolist()):
            to, crate = (row + dr, column + dc), (crate_row, crate_column)
            if to == crate:
                crate = (crate_row + dr, crate_column + dc)
            if all(0 <= at < 6 for at in (*to, *crate)):
                yield action, (*to, *crate)

    def act(observation: Any) -> Any:
        goal = tuple(observation["desired_goal"].tolist())
        return first_move(tuple(observation["observation"].tolist()), neighbours, lambda state: state[2:] == goal)

    return act


PAIRS = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))


def hanoi(pegs: Any, action: int) -> Any:
    """Return on which pegs the discs are, the smallest first, after a move; a move against the rules changes nothing."""
    source, target = PAIRS[action]
    for disc, peg in enumerate(pegs):
        if peg == target:
            return pegs
        if peg == source:
            return (*pegs[:disc], target, *pegs[disc + 1 :])
    return pegs


class ThreeDiscs(gymnasium.Env):
    """The Towers of Hanoi with three discs, from any position to any other. A position is three times one of three pegs."""

    def __init__(self) -> None:
        self.observation_space = goal_space(real(9, 0, 1), real(9, 0, 1))
        self.action_space = spaces.Discrete(6)

    def _one_hot(self, pegs: Any) -> Any:
        return np.eye(3, dtype=np.float32)[list(pegs)].ravel()

    def _observe(self) -> dict[str, Any]:
        state = self._one_hot(self.pegs)
        return {"observation": state, "achieved_goal": state.copy(), "desired_goal": self._one_hot(self.goal)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.pegs = self.goal = tuple(self.np_random.integers(0, 3, 3).tolist())
        while self.goal == self.pegs:
            self.goal = tuple(self.np_random.integers(0, 3, 3).tolist())
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.pegs = hanoi(self.pegs, int(action))
        observation = self._observe()
        reward = self.compute_reward(observation["achieved_goal"], observation["desired_goal"], {})
        return observation, float(reward), False, False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return np.where(np.all(achieved_goal == desired_goal, axis=-1), 0.0, -1.0)


def discs_script() -> Any:
    def neighbours(pegs: Any) -> Any:
        return [(action, hanoi(pegs, action)) for action in range(6)]

    def act(observation: Any) -> Any:
        pegs, goal = (tuple(observation[key].reshape(3, 3).argmax(1).tolist()) for key in ("observation", "desired_goal"))
        if pegs == goal:  # a move against the rules keeps the position
            return next(action for action, new in neighbours(pegs) if new == pegs)
        return first_move(pegs, neighbours, lambda state: state == goal)

    return act


ROOM = ("...#...", "...#...", "...D...", "...#...", "K..#...")
COLUMNS = len(ROOM[0])
CELLS = COLUMNS * len(ROOM)
FREE = [(r, c) for r, line in enumerate(ROOM) for c, cell in enumerate(line) if cell == "."]


def enter(cell: int, has_key: bool, action: int) -> tuple[int, bool]:
    """Return the cell and whether the key is there after a move in the two rooms."""
    (row, column), (dr, dc) = divmod(cell, COLUMNS), MOVES[action].tolist()
    row, column = row + dr, column + dc
    if not (0 <= row < len(ROOM) and 0 <= column < COLUMNS):
        return cell, has_key
    kind = ROOM[row][column]
    if kind == "#" or (kind == "D" and not has_key):
        return cell, has_key
    return row * COLUMNS + column, has_key or kind == "K"


class KeyRooms(gymnasium.Env):
    """Two rooms on a grid with a locked door between them and its key in a corner; the floor is slippery.

    The state is one integer, twice the cell and one more with the key, and the goal is a cell.
    """

    def __init__(self) -> None:
        self.observation_space = goal_space(spaces.Discrete(2 * CELLS), spaces.Discrete(CELLS))
        self.action_space = spaces.Discrete(4)

    def _observe(self) -> dict[str, Any]:
        return {
            "observation": np.int64(2 * self.cell + self.has_key),
            "achieved_goal": np.int64(self.cell),
            "desired_goal": np.int64(self.goal),
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        left, right = ([r * COLUMNS + c for r, c in FREE if (c < 3) == is_left] for is_left in (True, False))
        self.cell, self.has_key = int(self.np_random.choice(left)), False
        self.goal = self.cell
        while self.goal == self.cell:
            self.goal = int(self.np_random.choice(right if self.np_random.random() < 0.8 else left))
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        if self.np_random.random() < 0.1:
            action = self.np_random.integers(4)
        self.cell, self.has_key = enter(self.cell, self.has_key, int(action))
        reward = self.compute_reward(self.cell, self.goal, {})
        return self._observe(), float(reward), bool(reward == 0), False, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return (np.asarray(achieved_goal) == np.asarray(desired_goal)).astype(np.float32) - 1


def rooms_script() -> Any:
    def act(observation: Any) -> Any:
        cell, has_key = divmod(int(observation["observation"]), 2)
        goal = int(observation["desired_goal"])

        def neighbours(state: Any) -> Any:
            return [(action, enter(*state, action)) for action in range(4)]

        return first_move((cell, bool(has_key)), neighbours, lambda state: state[0] == goal)

    return act


TASKS = (
    Task("CrateGrid-v0", "discrete", "closed", CrateGrid, 40, crate_script, budget=20_000),
    Task("ThreeDiscs-v0", "discrete", "closed", ThreeDiscs, 30, discs_script, budget=15_000),
    Task("KeyRooms-v0", "discrete", "closed", KeyRooms, 50, rooms_script, budget=15_000),
)
