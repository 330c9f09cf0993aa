"""Subgoals: goals to reach before the goal of the task (relay HER, Luo et al. 2023), such as "gripper at the object".

A subgoal has an achieved goal and a desired goal of its own; both are columns of the observation. The agent learns to reach
subgoals with the same networks as the task's goal. While a subgoal is not met, the policy acts for the subgoal.
A subgoal is declared as text: "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import OptionError
from . import Array, GoalSpec

TASK = 0  # the number that stands for the task's own goal; subgoals count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"
_TEXT = re.compile(r"(\w+) achieved=([\d,]+) goal=([\d,]+) tolerance=([\d.e-]+) switch_distance=([\d.e-]+)")


@dataclass(frozen=True)
class Subgoal:
    """A goal to reach before the task's goal.

    achieved, goal: columns of the observation, as many as the task's goals have.
    tolerance: the subgoal is met within this distance.
    switch_distance: within this distance the policy acts for the next goal.
    """

    name: str
    achieved: tuple[int, ...]
    goal: tuple[int, ...]
    tolerance: float
    switch_distance: float

    @classmethod
    def parse(cls, text: str) -> Subgoal:
        """Return the subgoal that a text declares, as the module shows it. Raises OptionError."""
        found = _TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, switch_distance = found.groups() if found else ()
            subgoal = cls(name, _columns(achieved), _columns(goal), float(tolerance), float(switch_distance))
        except ValueError:
            raise OptionError(f"Cannot read the subgoal {text!r}. Write it as in {_EXAMPLE!r}.") from None
        if not 0 < subgoal.tolerance <= subgoal.switch_distance < math.inf:
            raise OptionError(f"Subgoal {text!r}: tolerance must be above 0 and switch_distance at least tolerance.")
        return subgoal

    def distance(self, observation: Any, xp: Any = np) -> Any:
        """Return the Euclidean distance from being met, (...), of observations (..., n). xp: as in `acting_goals`."""
        offset = xp.take(observation, self.columns[0], -1) - xp.take(observation, self.columns[1], -1)
        return xp.sqrt(xp.square(offset).sum(-1))

    @cached_property
    def columns(self) -> tuple[Array, Array]:
        """Return `achieved` and `goal` as arrays, with which NumPy selects columns faster."""
        return np.array(self.achieved, np.int64), np.array(self.goal, np.int64)


def parse_subgoals(texts: Sequence[str], spec: GoalSpec) -> tuple[Subgoal, ...]:
    """Return the subgoals of a task. Raises OptionError if the task lacks the columns or its goals have another size."""
    subgoals = tuple(Subgoal.parse(text) for text in texts)
    if subgoals and (len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1):
        shapes = f"{spec.observation.shape} and {spec.goal.shape}"
        raise OptionError(f"Subgoals need a flat observation and flat goals, got the shapes {shapes}. Set subgoals=().")
    for subgoal in subgoals:
        for name, columns in (("achieved", subgoal.achieved), ("goal", subgoal.goal)):
            if len(columns) != spec.goal.size or max(columns) >= spec.observation.size:
                expected = f"{spec.goal.size} columns of the observation, below {spec.observation.size}"
                raise OptionError(f"`{name}` of the subgoal {subgoal.name} is {columns}. Expected {expected}.")
    return subgoals


def acting_goals(
    subgoals: Sequence[Subgoal],
    observation: Any,
    achieved_goal: Any,
    goal: Any,
    subgoal: Any,
    is_guided: bool = False,
    xp: Any = np,
) -> tuple[Any, Any, Any]:
    """Return the subgoal number (...), achieved goal and goal (..., g) that the policy acts for.

    The policy acts for the first subgoal that is farther than its switch_distance (its tolerance if `is_guided`). A row
    that belongs to a subgoal considers only the subgoals before it.

    observation: (..., n). achieved_goal, goal: (..., g).
    subgoal: (...), TASK for rows of the task's own goal.
    xp: the namespace of the array functions, `numpy` by default.
    """
    acting = subgoal
    for number, each in reversed(list(enumerate(subgoals, 1))):
        is_before = (subgoal == TASK) | (subgoal > number)
        is_far = is_before & (each.distance(observation, xp) > (each.tolerance if is_guided else each.switch_distance))
        acting = xp.where(is_far, number, acting)
        achieved_goal = xp.where(is_far[..., None], xp.take(observation, each.columns[0], -1), achieved_goal)
        goal = xp.where(is_far[..., None], xp.take(observation, each.columns[1], -1), goal)
    return acting, achieved_goal, goal


def acting_goal(
    subgoals: Sequence[Subgoal], observation: Array, achieved_goal: Array, goal: Array, is_guided: bool
) -> tuple[int, Array, Array]:
    """Return what `acting_goals` returns for one observation of the task's own goal, in less time."""
    for number, each in enumerate(subgoals, 1):
        if each.distance(observation) > (each.tolerance if is_guided else each.switch_distance):
            return number, observation.take(each.columns[0]), observation.take(each.columns[1])
    return TASK, achieved_goal, goal


def _columns(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))
