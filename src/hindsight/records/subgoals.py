"""Subgoals: goals on the way to the goal, such as "the gripper at the object" before "the object at its goal" (relay HER).

A subgoal has an achieved goal and a goal of its own, both columns of the observation. An agent learns to reach them beside
the goals that are asked, with the same networks; while a subgoal is not met, what it learnt of that acts. Declared as text:
"reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15". What is a function of the observation becomes columns of it
first, by `AddColumns`. After RHER (Luo et al. 2023).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from . import Array, GoalSpec

TASK = 0  # the number of the goal that is asked, which comes last; subgoals count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"
_TEXT = re.compile(r"(\w+) achieved=([\d,]+) goal=([\d,]+) tolerance=([\d.e-]+) switch_distance=([\d.e-]+)")


@dataclass(frozen=True)
class Subgoal:
    """A goal on the way. achieved, goal: columns of the observation, as many as the task's goals have.

    tolerance: the distance at which it is met. switch_distance: the distance from which on what comes after it acts, if not led.
    """

    name: str
    achieved: tuple[int, ...]
    goal: tuple[int, ...]
    tolerance: float
    switch_distance: float

    @classmethod
    def parse(cls, text: str) -> Subgoal:
        """The subgoal of such a text as the module shows; raises OptionError."""
        found = _TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, switch_distance = found.groups() if found else ()
            subgoal = cls(name, _columns(achieved), _columns(goal), float(tolerance), float(switch_distance))
        except ValueError:
            raise OptionError(f"the subgoal {text!r} cannot be read: write it as in {_EXAMPLE!r}") from None
        if not 0 < subgoal.tolerance <= subgoal.switch_distance < math.inf:
            raise OptionError(
                f"the subgoal {subgoal.name} has tolerance={subgoal.tolerance:g} and switch_distance={subgoal.switch_distance:g}: both must be "
                f"above 0, and switch_distance at least tolerance"
            )
        return subgoal

    def distance(self, observation: Array) -> Array:
        """How far it is from being met: Euclidean, (...) of observations (..., n)."""
        offset = np.take(observation, self.achieved, -1) - np.take(observation, self.goal, -1)
        return np.asarray(np.sqrt(np.square(offset).sum(-1)))


def parse_subgoals(texts: Sequence[str], spec: GoalSpec) -> tuple[Subgoal, ...]:
    """The subgoals of a task; raises OptionError where it has no such columns, or goals of another size."""
    subgoals = tuple(Subgoal.parse(text) for text in texts)
    for subgoal in subgoals:
        if len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1:
            raise OptionError(
                f"subgoals need a flat observation and flat goals, but these are {spec.observation.shape} and "
                f"{spec.goal.shape}: set subgoals=()"
            )
        for name, columns in (("achieved", subgoal.achieved), ("goal", subgoal.goal)):
            if len(columns) != spec.goal.size or max(columns) >= spec.observation.size:
                raise OptionError(
                    f"{name} of the subgoal {subgoal.name} is {columns}, but {spec.goal.size} columns below "
                    f"{spec.observation.size} are needed: as many as the goals have, of the observation"
                )
    return subgoals


def _columns(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def acting_goals(
    subgoals: Sequence[Subgoal], observation: Array, achieved_goal: Array, goal: Array, subgoal: Array, led: bool = False
) -> tuple[Array, Array, Array]:
    """Whose turn it is: subgoal (...), achieved goal and goal (..., g) by which rows (..., n) act.

    The first subgoal that is farther off than its switch_distance acts, or where it is `led` farther than its tolerance; rows that
    are of a subgoal themselves heed those before it. subgoal: (...), TASK for the goal that is asked.
    """
    turn = subgoal
    for number, each in reversed(list(enumerate(subgoals, 1))):
        is_before = (subgoal == TASK) | (subgoal > number)
        is_off = is_before & (each.distance(observation) > (each.tolerance if led else each.switch_distance))
        turn = np.where(is_off, number, turn)
        achieved_goal = np.where(is_off[..., None], np.take(observation, each.achieved, -1), achieved_goal)
        goal = np.where(is_off[..., None], np.take(observation, each.goal, -1), goal)
    return turn, achieved_goal, goal
