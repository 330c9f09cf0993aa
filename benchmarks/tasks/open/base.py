"""What most open tasks share: spaces, steps and a reward of -1 and 0."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Array = npt.NDArray[Any]
Seen = dict[str, Any]


class GoalTask(gymnasium.Env[Seen, Any]):
    """A task whose actions lie in [-1, 1]. A step has the reward 0 if the goal is met within `near`, else -1."""

    near = 0.05

    def __init__(self, n_observed: int, n_goal: int, n_action: int) -> None:
        observed, goal = (spaces.Box(-np.inf, np.inf, (n,), np.float64) for n in (n_observed, n_goal))
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)
        self.action_space = spaces.Box(-1.0, 1.0, (n_action,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self.begin()
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Move, and compare the achieved goal with the desired one."""
        self.move(np.clip(np.asarray(action, np.float64), -1, 1))
        seen = self.seen()
        info = {"is_success": bool(self.is_met(seen["achieved_goal"], seen["desired_goal"]))}
        reward = float(self.compute_reward(seen["achieved_goal"], seen["desired_goal"], info))
        return seen, reward, self.is_over(), False, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return 0 where the goal is met, else -1."""
        return self.is_met(achieved_goal, desired_goal).astype(np.float64) - 1

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        """Return whether goals (..., g) are met, (...) bool."""
        return np.linalg.norm(achieved_goal - desired_goal, axis=-1) <= self.near

    def seen(self) -> Seen:
        """Return the three parts of the observation."""
        return {"observation": self.observe(), "achieved_goal": self.achieved(), "desired_goal": self.goal.copy()}

    def is_over(self) -> bool:
        """Return whether something other than the time limit ends the episode."""
        return False

    goal: Array

    @abstractmethod
    def begin(self) -> None:
        """Draw the start and the goal."""

    @abstractmethod
    def move(self, action: Array) -> None:
        """Change the state."""

    @abstractmethod
    def observe(self) -> Array:
        """Return the observation."""

    @abstractmethod
    def achieved(self) -> Array:
        """Return the achieved goal."""

    def place(self, low: Any, high: Any, size: int = 2) -> Array:
        """Return a random place. low, high: bounds of all of its numbers, or of each."""
        return self.np_random.uniform(low, high, size)


class SizedTask(GoalTask):
    """A goal task whose class says how many numbers observation, goal and action have, and which attribute is achieved."""

    numbers, thing = (1, 1, 1), ""

    def __init__(self) -> None:
        super().__init__(*self.numbers)

    def achieved(self) -> Array:
        return np.array(getattr(self, self.thing), np.float64).reshape(-1)


class EachNear(SizedTask):
    """A sized task whose goal is met if each of its numbers is within `near`."""

    def is_met(self, achieved_goal: Array, desired_goal: Array) -> Any:
        return np.abs(achieved_goal - desired_goal).max(-1) <= self.near


class SinglePrecision(SizedTask):
    """A sized task whose observations and goals are float32, from -10 to 10."""

    def __init__(self) -> None:
        super().__init__()
        observed, goal = (spaces.Box(-10.0, 10.0, (n,), np.float32) for n in self.numbers[:2])
        self.observation_space = spaces.Dict(observation=observed, achieved_goal=goal, desired_goal=goal)

    def seen(self) -> Seen:
        return {key: value.astype(np.float32) for key, value in super().seen().items()}


class OwnUnits(SizedTask):
    """A task whose actions have their own lower and upper limits; `move` receives them in these units."""

    limits: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    def __init__(self) -> None:
        super().__init__()
        low, high = (np.array(limit) for limit in self.limits)
        self.action_space = spaces.Box(low.astype(np.float32), high.astype(np.float32))
        self.middle, self.half = 0.5 * (low + high), 0.5 * (high - low)

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        return super().step((np.asarray(action, np.float64) - self.middle) / self.half)


def clipped(*numbers: float) -> Array:
    """Return an action between -1 and 1."""
    return np.array([min(1.0, max(-1.0, number)) for number in numbers], np.float32)


def wrapped(angle: float) -> float:
    """Return an angle between -pi and pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def unit(angle: float) -> Array:
    """Return the vector of length 1 in a direction."""
    return np.array([np.cos(angle), np.sin(angle)])


def push_out(thing: Array, tool: Array, radius: float) -> Array:
    """Return by how much a tool displaces what is nearer to it than `radius`."""
    gap = thing - tool
    distance = float(np.linalg.norm(gap))
    return gap / max(distance, 1e-9) * max(0.0, radius - distance)


def toward_push(tool: Array, thing: Array, goal: Array, radius: float, near: float) -> Array:
    """Return how a tool should move to push a thing to a goal: around it, behind it, then forward."""
    way = goal - thing
    distance = float(np.linalg.norm(way))
    if distance < 0.5 * near:
        return np.zeros(2)
    ahead = way / distance
    side = np.array([-ahead[1], ahead[0]])
    gap = tool - thing
    along, across = float(gap @ ahead), float(gap @ side)
    if along < 0 and abs(across) < 0.4 * radius:  # behind it: push, and come back to the middle
        return ahead * (distance + max(0.0, -along - radius)) - 2 * across * side
    sign = 1.0 if across >= 0 else -1.0
    if along > -0.9 * radius and abs(across) < 1.1 * radius:  # before or beside it, and too near to go back
        return thing + 1.4 * radius * sign * side + min(along, 0.5 * radius) * ahead - tool
    if along > -0.9 * radius:
        return thing + 1.3 * radius * sign * side - 1.5 * radius * ahead - tool
    return thing - 1.2 * radius * ahead - tool


def shortest_path(
    start: Hashable, is_goal: Callable[[Any], bool], successors: Callable[[Any], Iterable[Hashable]]
) -> list[int]:
    """Return the actions of a shortest path, by breadth-first search; empty if there is none."""
    came: dict[Hashable, tuple[Hashable, int] | None] = {start: None}
    queue = [start]
    for state in queue:  # the list grows during the loop
        if is_goal(state):
            actions = []
            while (step := came[state]) is not None:
                state, action = step
                actions.append(action)
            return actions[::-1]
        for action, following in enumerate(successors(state)):
            if following not in came:
                came[following] = (state, action)
                queue.append(following)
    return []


def grid_path(start: Array, goal: Array, cell: float, is_free: Callable[[Array], bool]) -> list[Array]:
    """Return the places of a shortest path over a grid with diagonal steps, and the goal.

    cell: from a place to the next one. is_free: whether a place may lie on the path.
    """
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]

    def around(node: tuple[int, int]) -> list[tuple[int, int]]:
        steps = [(node[0] + i, node[1] + j) for i, j in moves]
        return [step if is_free(cell * np.array(step)) else node for step in steps]

    node, last = (tuple(np.rint(place / cell).astype(int).tolist()) for place in (start, goal))
    path: list[Array] = []
    for action in shortest_path(node, lambda node: node == last, around):
        node = (node[0] + moves[action][0], node[1] + moves[action][1])
        path.append(cell * np.array(node, np.float64))
    return [*path, goal]
