"""Stages: goals on the way to the goal, such as "the gripper at the object" before "the object at its goal" (relay HER).

A stage has an achieved goal and a goal of its own, both columns of the observation. An agent learns to reach them beside
the goals that are asked, with the same networks; while a stage is not met, what it learnt of that acts. Declared as text:
"reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 handover=0.15". What is a function of the observation becomes columns of it
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

TASK = 0  # the number of the goal that is asked, which comes last; stages count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 handover=0.15"
_TEXT = re.compile(r"(\w+) achieved=([\d,]+) goal=([\d,]+) tolerance=([\d.e-]+) handover=([\d.e-]+)")


@dataclass(frozen=True)
class Stage:
    """A goal on the way. achieved, goal: columns of the observation, as many as the task's goals have.

    tolerance: the distance at which it is met. handover: the distance from which on what comes after it acts, if not led.
    """

    name: str
    achieved: tuple[int, ...]
    goal: tuple[int, ...]
    tolerance: float
    handover: float

    @classmethod
    def parse(cls, text: str) -> Stage:
        """The stage of such a text as the module shows; raises OptionError."""
        found = _TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, handover = found.groups() if found else ()
            stage = cls(name, _columns(achieved), _columns(goal), float(tolerance), float(handover))
        except ValueError:
            raise OptionError(f"the stage {text!r} cannot be read: write it as in {_EXAMPLE!r}") from None
        if not 0 < stage.tolerance <= stage.handover < math.inf:
            raise OptionError(
                f"the stage {stage.name} has tolerance={stage.tolerance:g} and handover={stage.handover:g}: both must be "
                f"above 0, and handover at least tolerance"
            )
        return stage

    def distance(self, observation: Array) -> Array:
        """How far it is from being met: Euclidean, (...) of observations (..., n)."""
        offset = np.take(observation, self.achieved, -1) - np.take(observation, self.goal, -1)
        return np.asarray(np.sqrt(np.square(offset).sum(-1)))


def parse_stages(texts: Sequence[str], spec: GoalSpec) -> tuple[Stage, ...]:
    """The stages of a task; raises OptionError where it has no such columns, or goals of another size."""
    stages = tuple(Stage.parse(text) for text in texts)
    for stage in stages:
        if len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1:
            raise OptionError(
                f"stages need a flat observation and flat goals, but these are {spec.observation.shape} and "
                f"{spec.goal.shape}: set stages=()"
            )
        for name, columns in (("achieved", stage.achieved), ("goal", stage.goal)):
            if len(columns) != spec.goal.size or max(columns) >= spec.observation.size:
                raise OptionError(
                    f"{name} of the stage {stage.name} is {columns}, but {spec.goal.size} columns below "
                    f"{spec.observation.size} are needed: as many as the goals have, of the observation"
                )
    return stages


def _columns(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def as_they_act(
    stages: Sequence[Stage], observation: Array, achieved_goal: Array, goal: Array, stage: Array, led: bool = False
) -> tuple[Array, Array, Array]:
    """Whose turn it is: stage (...), achieved goal and goal (..., g) by which rows (..., n) act.

    The first stage that is farther off than its handover acts, or where it is `led` farther than its tolerance; rows that
    are of a stage themselves heed those before it. stage: (...), TASK for the goal that is asked.
    """
    turn = stage
    for number, each in reversed(list(enumerate(stages, 1))):
        is_before = (stage == TASK) | (stage > number)
        is_off = is_before & (each.distance(observation) > (each.tolerance if led else each.handover))
        turn = np.where(is_off, number, turn)
        achieved_goal = np.where(is_off[..., None], np.take(observation, each.achieved, -1), achieved_goal)
        goal = np.where(is_off[..., None], np.take(observation, each.goal, -1), goal)
    return turn, achieved_goal, goal
