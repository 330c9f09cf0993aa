"""Discrete puzzles: Towers of Hanoi, lights out, and a sliding puzzle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Seen, shortest_path
from .grids import DiscreteTask, numbers

State = tuple[int, ...]
PEG_MOVES = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))


class Puzzle(DiscreteTask):
    """A puzzle whose state is seen and is the goal: whole numbers from 0 to `high`. Success ends the episode."""

    high, length, n_actions, shuffles = 2, 4, 6, 60

    def __init__(self) -> None:
        space = numbers(self.high, self.length)
        self.observation_space = spaces.Dict(observation=space, achieved_goal=space, desired_goal=space)
        self.action_space = spaces.Discrete(self.n_actions)

    def solved(self) -> State:
        """Return a state from which all others are reached."""
        return (0,) * self.length

    def begin(self) -> None:
        """Shuffle the start and the goal."""
        self.state, self.goal = self._shuffled(), np.array(self._shuffled())

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """End the episode at a success."""
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, info["is_success"], truncated, info

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return where goals are equal."""
        return (np.asarray(achieved_goal) == desired_goal).all(-1)

    def _shuffled(self) -> State:
        state = self.solved()
        for _ in range(self.shuffles):
            state = self.after(state)[int(self.np_random.integers(self.n_actions))]
        return state

    def seen(self) -> Seen:
        """Return the state."""
        state = np.array(self.state)
        return {"observation": state, "achieved_goal": state.copy(), "desired_goal": self.goal.copy()}


class Hanoi(Puzzle):
    """Towers of Hanoi with four disks: the peg of each, the smallest first. No disk lies on a smaller one."""

    def after(self, state: State) -> list[State]:
        """Return the pegs after each move of the uppermost disk from one peg to another."""
        found = []
        for start, end in PEG_MOVES:
            disk = next((k for k, peg in enumerate(state) if peg == start), None)
            is_allowed = disk is not None and end not in state[:disk]
            found.append((*state[:disk], end, *state[disk + 1 :]) if disk is not None and is_allowed else state)
        return found

    def begin(self) -> None:
        """Draw every disk's peg."""
        self.state = tuple(self.np_random.integers(0, 3, self.length).tolist())
        self.goal = self.np_random.integers(0, 3, self.length)


class LightsOut(Puzzle):
    """Nine lights on a square. Each action switches a light and its neighbours."""

    high, length, n_actions, shuffles = 1, 9, 9, 30

    def after(self, state: State) -> list[State]:
        """Return the lights after each action."""
        cells = [divmod(k, 3) for k in range(9)]
        return [
            tuple(on ^ (abs(i - k) + abs(j - m) <= 1) for on, (k, m) in zip(state, cells, strict=True)) for i, j in cells
        ]


class Sliding(Puzzle):
    """Five tiles slide on a board of 2x3 cells. The state is the tile in each cell, 0 for the empty one."""

    high, length, n_actions, shuffles = 5, 6, 4, 80

    def solved(self) -> State:
        """Return the tiles in order."""
        return tuple(range(6))

    def after(self, state: State) -> list[State]:
        """Return the tiles after the empty cell moves right, left, down or up."""
        at = state.index(0)
        i, j = divmod(at, 3)
        found = []
        for k, m in ((i, j + 1), (i, j - 1), (i + 1, j), (i - 1, j)):
            tiles = list(state)
            if 0 <= k < 2 and 0 <= m < 3:
                tiles[at], tiles[3 * k + m] = tiles[3 * k + m], 0
            found.append(tuple(tiles))
        return found


def solve(puzzle: type[Puzzle]) -> Callable[[Observation], int]:
    """Return a policy that follows one shortest path."""
    path: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal path
        goal: Any = tuple(observation["desired_goal"].tolist())
        if path is None:
            start = tuple(observation["observation"].tolist())
            path = shortest_path(start, lambda state: state == goal, puzzle().after)
        return path.pop(0) if path else 0

    return act


TASKS = (
    Task("Hanoi-v0", "discrete", "open", Hanoi, 40, partial(solve, Hanoi)),
    Task("LightsOut-v0", "discrete", "open", LightsOut, 20, partial(solve, LightsOut)),
    Task("Sliding-v0", "discrete", "open", Sliding, 50, partial(solve, Sliding)),
)
