"""Discrete tasks: grids with boxes, keys and rooms. A policy follows a shortest path."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ..task import Observation, Task
from .base import Array, Seen, shortest_path

MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))
Cell = tuple[int, int]


class DiscreteTask(gymnasium.Env[Seen, int]):
    """A task with Discrete actions. Its goals are met if they are equal."""

    state: Any
    goal: Array

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self.begin()
        return self.seen(), {}

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take an action, and compare the goals."""
        self.state = self.after(self.state)[int(action)]
        seen = self.seen()
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {}))
        return seen, reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return 0 where goals are equal, else -1."""
        return (np.asarray(achieved_goal) == desired_goal).all(-1).astype(np.float64) - 1

    def begin(self) -> None:
        """Draw the start and the goal."""
        raise NotImplementedError

    def after(self, state: Any) -> list[Any]:
        """Return the state after each action."""
        raise NotImplementedError

    def seen(self) -> Seen:
        """Return the three parts of the observation."""
        raise NotImplementedError


def numbers(high: int, size: int) -> spaces.Box:
    """Return a space of whole numbers from 0 to `high`."""
    return spaces.Box(0, high, (size,), np.int64)


class BoxGrid(DiscreteTask):
    """An agent pushes a box on a grid of 6x6 cells. Walls stop both."""

    size = 6

    def __init__(self) -> None:
        high = self.size - 1
        self.observation_space = spaces.Dict(
            observation=numbers(high, 4), achieved_goal=numbers(high, 2), desired_goal=numbers(high, 2)
        )
        self.action_space = spaces.Discrete(4)

    def begin(self) -> None:
        """Place agent, box and goal; a box at a wall could not leave it."""
        box, goal = self.np_random.integers(1, self.size - 1, (2, 2))
        agent = self.np_random.integers(0, self.size, 2)
        while (agent == box).all():
            agent = self.np_random.integers(0, self.size, 2)
        self.state, self.goal = (tuple(agent.tolist()), tuple(box.tolist())), goal

    def after(self, state: tuple[Cell, Cell]) -> list[tuple[Cell, Cell]]:
        """Return agent and box after each move."""
        return pushed(state, self.size)

    def seen(self) -> Seen:
        """Return the cells of agent and box."""
        agent, box = self.state
        return {"observation": np.array([*agent, *box]), "achieved_goal": np.array(box), "desired_goal": self.goal.copy()}


def pushed(state: tuple[Cell, Cell], size: int) -> list[tuple[Cell, Cell]]:
    """Return agent and box after each move on a grid without inner walls."""
    (i, j), box = state
    found = []
    for di, dj in MOVES:
        agent, beyond = (i + di, j + dj), (i + 2 * di, j + 2 * dj)
        moves_box = agent == box
        is_inside = all(0 <= x < size for x in (beyond if moves_box else agent))
        found.append((agent, beyond if moves_box else box) if is_inside else state)
    return found


def push_box() -> Callable[[Observation], int]:
    """Return a policy that follows a shortest path."""

    def act(observation: Observation) -> int:
        i, j, k, m = observation["observation"].tolist()
        goal = tuple(observation["desired_goal"].tolist())
        state = (i, j), (k, m)
        path = shortest_path(state, lambda each: each[1] == goal, lambda each: pushed(each, BoxGrid.size))
        return path[0] if path else wait(pushed(state, BoxGrid.size), goal)

    return act


def wait(following: list[Any], goal: Cell) -> int:
    """Return an action after which the box is still at its goal."""
    return next((action for action, state in enumerate(following) if state[1] == goal), 0)


class FourRooms(DiscreteTask):
    """An agent walks through four rooms, 13x13 cells with the walls. A third of its actions are replaced by random ones."""

    slips, size = 1 / 3, 13

    def __init__(self) -> None:
        n = self.size**2
        self.observation_space = spaces.Dict(
            observation=spaces.Discrete(n), achieved_goal=spaces.Discrete(n), desired_goal=spaces.Discrete(n)
        )
        self.action_space = spaces.Discrete(4)

    def begin(self) -> None:
        """Draw two free cells that are at least four cells apart."""
        free = np.flatnonzero(~rooms())
        while True:
            self.state, self.goal = (int(cell) for cell in self.np_random.choice(free, 2, replace=False))
            (i, j), (k, m) = divmod(self.state, self.size), divmod(self.goal, self.size)
            if abs(i - k) + abs(j - m) >= 4:
                return

    def step(self, action: int) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Replace the action with probability `slips`. Success ends the episode."""
        if self.np_random.random() < self.slips:
            action = int(self.np_random.integers(4))
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, bool(reward == 0), truncated, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return 0 where goals are equal, else -1."""
        return (np.asarray(achieved_goal) == desired_goal).astype(np.float64) - 1

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        """Return where goals are equal."""
        return np.asarray(achieved_goal) == desired_goal

    def after(self, state: int) -> list[int]:
        """Return the cell after each move."""
        return walked(state)

    def seen(self) -> Seen:
        """Return the number of the cell."""
        return {"observation": self.state, "achieved_goal": self.state, "desired_goal": self.goal}


@cache
def rooms() -> Array:
    """Return which cells are walls, (169,) bool: the border and a cross with four doors."""
    walls = np.zeros((FourRooms.size, FourRooms.size), bool)
    walls[[0, -1], :] = walls[:, [0, -1]] = walls[6, :] = walls[:, 6] = True
    walls[6, 3] = walls[6, 9] = walls[2, 6] = walls[9, 6] = False
    return walls.ravel()


def walked(cell: int) -> list[int]:
    """Return the cell after each move through the rooms."""
    steps = (1, -1, FourRooms.size, -FourRooms.size)
    return [cell if rooms()[cell + step] else cell + step for step in steps]


def walk() -> Callable[[Observation], int]:
    """Return a policy that follows a shortest path."""

    def act(observation: Observation) -> int:
        goal = int(observation["desired_goal"])
        path = shortest_path(int(observation["observation"]), lambda cell: cell == goal, walked)
        return path[0] if path else 0

    return act


class KeyDoorBox(DiscreteTask):
    """A wall with a locked door divides a grid of 7x7 cells. The goal is where the box must be, on any side."""

    size, wall, door = 7, 3, 3

    def __init__(self) -> None:
        high = self.size - 1
        self.observation_space = spaces.Dict(
            observation=numbers(high, 7), achieved_goal=numbers(high, 2), desired_goal=numbers(high, 2)
        )
        self.action_space = spaces.Discrete(4)

    def begin(self) -> None:
        """Place agent, key and box on the left, and the goal where the box can get to."""
        while True:
            left = [(i, j) for i in range(self.size) for j in range(self.wall)]
            agent, key, box = (left[i] for i in self.np_random.choice(len(left), 3, replace=False))
            column = int(self.np_random.choice([j for j in range(self.size) if j != self.wall]))
            self.goal = np.array([int(self.np_random.integers(self.size)), column])
            self.state = (agent, box, False, key)
            if open_path(self.state, tuple(self.goal.tolist())):
                return

    def after(self, state: Any) -> list[Any]:
        """Return the state after each move."""
        return unlocked(state)

    def seen(self) -> Seen:
        """Return agent, key, whether it was fetched, and box."""
        agent, box, has_key, key = self.state
        seen = np.array([*agent, *key, int(has_key), *box])
        return {"observation": seen, "achieved_goal": np.array(box), "desired_goal": self.goal.copy()}


def unlocked(state: Any) -> list[Any]:
    """Return the state (agent, box, whether the key was fetched, cell of the key) after each move."""
    (i, j), box, has_key, key = state
    size, wall, door = KeyDoorBox.size, KeyDoorBox.wall, KeyDoorBox.door

    def is_free(cell: Cell) -> bool:
        return all(0 <= x < size for x in cell) and (cell[1] != wall or (has_key and cell[0] == door))

    found = []
    for di, dj in MOVES:
        agent, beyond = (i + di, j + dj), (i + 2 * di, j + 2 * dj)
        moves_box = agent == box
        if is_free(agent) and (not moves_box or is_free(beyond)):
            found.append((agent, beyond if moves_box else box, has_key or agent == key, key))
        else:
            found.append(state)
    return found


def open_path(state: Any, goal: Cell) -> list[int]:
    """Return a shortest path of actions."""
    return shortest_path(state, lambda each: each[1] == goal, unlocked)


def open_and_push() -> Callable[[Observation], int]:
    """Return a policy that follows one shortest path."""
    path: list[int] | None = None

    def act(observation: Observation) -> int:
        nonlocal path
        i, j, k, m, has_key, p, q = observation["observation"].tolist()
        state, goal = ((i, j), (p, q), bool(has_key), (k, m)), tuple(observation["desired_goal"].tolist())
        path = open_path(state, goal) if path is None else path
        return path.pop(0) if path else wait(unlocked(state), goal)

    return act


TASKS = (
    Task("BoxGrid-v0", "discrete", "open", BoxGrid, 40, push_box),
    Task("FourRooms-v0", "discrete", "open", FourRooms, 60, walk),
    Task("KeyDoorBox-v0", "discrete", "open", KeyDoorBox, 60, open_and_push, 40_000, "box, key and door must be learned"),
)
