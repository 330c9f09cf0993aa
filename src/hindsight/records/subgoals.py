"""Subgoals: goals to reach before the goal of the task (relay HER, Luo et al. 2023), such as "gripper at the object".

A subgoal has an achieved goal and a desired goal of its own; both are columns of the observation, in the units of the goal
or brought to them, as in achieved=2.5*o0+1,-o1. The agent learns to reach
subgoals with the same networks as the task's goal. While a subgoal is not met, the policy acts for the subgoal.
A subgoal is declared as text: "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError
from . import Array, GoalSpec
from .affine import AffineColumns

TASK = 0  # the number that stands for the task's own goal; subgoals count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"
_TEXT = re.compile(r"(\w+) achieved=(\S+) goal=(\S+) tolerance=([\d.e-]+) switch_distance=([\d.e-]+)")


@dataclass(frozen=True)
class Subgoal:
    """A goal to reach before the task's goal.

    achieved, goal: columns of the observation, as many as the task's goals have.
    tolerance: the subgoal is met within this distance.
    switch_distance: within this distance the policy acts for the next goal.
    """

    name: str
    achieved: AffineColumns
    goal: AffineColumns
    tolerance: float
    switch_distance: float

    @classmethod
    def parse(cls, text: str) -> Subgoal:
        """Return the subgoal that a text declares, as the module shows it. Raises OptionError."""
        found = _TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, switch_distance = found.groups() if found else ()
            columns = AffineColumns.parse(achieved), AffineColumns.parse(goal)
            subgoal = cls(name, *columns, float(tolerance), float(switch_distance))
        except ValueError:
            raise OptionError(f"Cannot read the subgoal {text!r}. Write it as in {_EXAMPLE!r}.") from None
        if not 0 < subgoal.tolerance <= subgoal.switch_distance < math.inf:
            raise OptionError(f"Subgoal {text!r}: tolerance must be above 0 and switch_distance at least tolerance.")
        return subgoal

    def distance(self, observation: Any, xp: Any = np) -> Any:
        """Return the Euclidean distance from being met, (...), of observations (..., n). xp: as in `acting_goals`."""
        return xp.sqrt(xp.square(self.achieved.of(observation, xp) - self.goal.of(observation, xp)).sum(-1))


def parse_subgoals(texts: Sequence[str], spec: GoalSpec) -> tuple[Subgoal, ...]:
    """Return the subgoals of a task. Raises OptionError if the task lacks the columns or its goals have another size."""
    subgoals = tuple(Subgoal.parse(text) for text in texts)
    if subgoals and (len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1):
        shapes = f"{spec.observation.shape} and {spec.goal.shape}"
        raise OptionError(f"Subgoals need a flat observation and flat goals, got the shapes {shapes}. Set subgoals=().")
    for subgoal in subgoals:
        for name, columns in (("achieved", subgoal.achieved.columns), ("goal", subgoal.goal.columns)):
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
        achieved_goal = xp.where(is_far[..., None], each.achieved.of(observation, xp), achieved_goal)
        goal = xp.where(is_far[..., None], each.goal.of(observation, xp), goal)
    return acting, achieved_goal, goal


def acting_goal(
    subgoals: Sequence[Subgoal], observation: Array, achieved_goal: Array, goal: Array, is_guided: bool
) -> tuple[int, Array, Array]:
    """Return what `acting_goals` returns for one observation of the task's own goal, in less time."""
    for number, each in enumerate(subgoals, 1):
        achieved, desired = each.achieved.of(observation), each.goal.of(observation)
        distance = np.sqrt(np.add.reduce(np.square(achieved - desired)))
        if distance > (each.tolerance if is_guided else each.switch_distance):
            return number, achieved, desired
    return TASK, achieved_goal, goal
