"""Subgoals: goals to reach before the goal of the task (relay HER, Luo et al. 2023), such as "gripper at the object".

A subgoal has an achieved goal and a desired goal of its own; both are columns of the observation, in the units of the goal
or brought to them, as in achieved=2.5*o0+1,-o1. The agent learns to reach
subgoals with the same networks as the task's goal. While a subgoal is not met, the policy acts for the subgoal.
A subgoal is declared as text: "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15".

A task with several objects has a chain: one subgoal for each object, in the order in which the objects are placed. Each
names the numbers of the task's goal that are the place of its object, and how near to the goal the object counts as placed:
"reach achieved=0,1,2 goal=7,8,9 tolerance=0.03 switch_distance=0.15 numbers=0,1,2 placed=0.05".
- With K objects, number k from 1 to K stands for the subgoal that leads the tool to object k. Number K + k, for k below K,
  stands for a goal that asks for the places of the first k objects only. The task's own goal asks for all K.
- The policy acts for the first object that is not placed: for its subgoal while the tool is farther than switch_distance,
  then for the places of the objects up to it. An object that is knocked off its place is the first again.
- Where a goal is not about an object, its numbers count as reached: achieved and desired goal are equal there.
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
from .affine import AffineColumns

MOST_SUBGOALS = 100  # each is an input of the networks, and is looked at in each step
TASK = 0  # the number that stands for the task's own goal; subgoals count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"
_TEXT = re.compile(
    r"(\w+) achieved=(\S+) goal=(\S+) tolerance=([\d.e-]+) switch_distance=([\d.e-]+)"
    r"(?: numbers=(\d+(?:,\d+)*) placed=([\d.e-]+))?"
)


@dataclass(frozen=True)
class Subgoal:
    """A goal to reach before the task's goal.

    achieved, goal: columns of the observation, as many as the task's goals have, or as `numbers`.
    tolerance: the subgoal is met within this distance.
    switch_distance: within this distance the policy acts for the next goal.
    numbers: of the task's goal, the place of the object that the subgoal leads to; empty: the subgoal is not of a chain.
    placed: the object is placed within this distance of the desired goal, measured in `numbers`.
    """

    name: str
    achieved: AffineColumns
    goal: AffineColumns
    tolerance: float
    switch_distance: float
    numbers: tuple[int, ...] = ()
    placed: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Subgoal:
        """Return the subgoal that a text declares, as the module shows it. Raises OptionError."""
        found = _TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, switch_distance, numbers, placed = found.groups() if found else ()
            columns = AffineColumns.parse(achieved), AffineColumns.parse(goal)
            place = tuple(map(int, numbers.split(",") if numbers else ())), float(placed or 0.0)
            subgoal = cls(name, *columns, float(tolerance), float(switch_distance), *place)
        except ValueError:
            raise OptionError(f"Cannot read the subgoal {text!r}. Write it as in {_EXAMPLE!r}.") from None
        if not 0 < subgoal.tolerance <= subgoal.switch_distance < math.inf:
            raise OptionError(f"Subgoal {text!r}: tolerance must be above 0 and switch_distance at least tolerance.")
        if subgoal.numbers and not 0 < subgoal.placed < math.inf:
            raise OptionError(f"Subgoal {text!r}: placed must be above 0.")
        return subgoal

    def distance(self, observation: Any, xp: Any = np) -> Any:
        """Return the Euclidean distance from being met, (...), of observations (..., n). xp: as in `acting_goals`."""
        return xp.sqrt(xp.square(self.achieved.of(observation, xp) - self.goal.of(observation, xp)).sum(-1))

    def is_placed(self, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
        """Return whether the object is where `goal` asks it to be, (...) bool, of goals (..., g)."""
        gap = achieved_goal[..., self._index] - goal[..., self._index]
        return xp.sqrt(xp.square(gap).sum(-1)) <= self.placed

    def fill(self, values: Any, others: Any, xp: Any = np) -> Any:
        """Return goals (..., g) with the object's numbers from `values` (..., k) and the rest from `others` (..., g).

        Without `numbers`, `values` are the whole goal.
        """
        if not self.numbers:
            return values
        is_own, source = self._spread(others.shape[-1])
        return xp.where(xp.asarray(is_own), values[..., source], others)

    @cached_property
    def _index(self) -> Array:
        return np.array(self.numbers, np.int64)

    def _spread(self, size: int) -> tuple[Array, Array]:
        """Return which numbers of a goal are the object's, and at which place of `numbers` each is, (size,) each."""
        is_own, source = np.zeros(size, np.bool_), np.zeros(size, np.int64)
        is_own[self._index], source[self._index] = True, np.arange(len(self.numbers))
        return is_own, source


def parse_subgoals(texts: Sequence[str], spec: GoalSpec) -> tuple[Subgoal, ...]:
    """Return the subgoals of a task. Raises OptionError if the task lacks the columns or its goals have another size."""
    if len(texts) > MOST_SUBGOALS:
        raise OptionError(f"Expected at most {MOST_SUBGOALS} subgoals, got {len(texts)}. Leave some out.")
    subgoals = tuple(Subgoal.parse(text) for text in texts)
    if subgoals and (len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1):
        shapes = f"{spec.observation.shape} and {spec.goal.shape}"
        raise OptionError(f"Subgoals need a flat observation and flat goals, got the shapes {shapes}. Set subgoals=().")
    for subgoal in subgoals:
        size = len(subgoal.numbers) or spec.goal.size
        for name, columns in (("achieved", subgoal.achieved.columns), ("goal", subgoal.goal.columns)):
            if len(columns) != size or max(columns) >= spec.observation.size:
                expected = f"{size} columns of the observation, below {spec.observation.size}"
                raise OptionError(f"`{name}` of the subgoal {subgoal.name} is {columns}. Expected {expected}.")
    _check_chain(subgoals, spec.goal.size)
    return subgoals


def is_chain(subgoals: Sequence[Subgoal]) -> bool:
    """Return whether the subgoals are those of several objects, one after another."""
    return bool(subgoals and subgoals[0].numbers)


def count_subgoals(subgoals: Sequence[Subgoal]) -> int:
    """Return how many numbers besides TASK rows can have: of a chain also those of the first objects being placed."""
    return 2 * len(subgoals) - 1 if is_chain(subgoals) else len(subgoals)


def _check_chain(subgoals: Sequence[Subgoal], goal_size: int) -> None:
    numbers = [number for subgoal in subgoals for number in subgoal.numbers]
    if numbers and not all(subgoal.numbers for subgoal in subgoals):
        raise OptionError("Either all subgoals name the `numbers` of their object, or none does.")
    if numbers and (len(set(numbers)) < len(numbers) or max(numbers) >= goal_size):
        raise OptionError(f"`numbers` of the subgoals are {numbers}. Each must occur once, and be below {goal_size}.")


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
    that belongs to a subgoal considers only the subgoals before it. `_goals_of_chain` is the rule for a chain.

    observation: (..., n). achieved_goal, goal: (..., g).
    subgoal: (...), TASK for rows of the task's own goal.
    xp: the namespace of the array functions, `numpy` by default.
    """
    if is_chain(subgoals):
        return _goals_of_chain(subgoals, observation, achieved_goal, goal, subgoal, is_guided, xp)
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
    if is_chain(subgoals):
        return _goal_of_chain(subgoals, observation, achieved_goal, goal, is_guided)
    for number, each in enumerate(subgoals, 1):
        achieved, desired = each.achieved.of(observation), each.goal.of(observation)
        distance = np.sqrt(np.add.reduce(np.square(achieved - desired)))
        if distance > (each.tolerance if is_guided else each.switch_distance):
            return number, achieved, desired
    return TASK, achieved_goal, goal


def _goals_of_chain(
    subgoals: Sequence[Subgoal], observation: Any, achieved_goal: Any, goal: Any, subgoal: Any, is_guided: bool, xp: Any
) -> tuple[Any, Any, Any]:
    """Return what `acting_goals` returns.

    A row whose goal asks for the places of the first objects considers only these. A row of "reach" acts for its object.
    """
    size, n_asked = len(subgoals), xp.where(subgoal == TASK, len(subgoals), subgoal - len(subgoals))
    acting, acting_achieved, acting_goal = subgoal, achieved_goal, goal
    is_open = n_asked > 0  # all objects so far are placed
    for k, each in enumerate(subgoals, 1):
        is_next = is_open & (n_asked >= k) & ~each.is_placed(achieved_goal, goal, xp)
        is_far = is_next & (each.distance(observation, xp) > (each.tolerance if is_guided else each.switch_distance))
        is_near = is_next & ~is_far & (n_asked > k)
        reached, wanted = (each.fill(part.of(observation, xp), goal, xp) for part in (each.achieved, each.goal))
        acting = xp.where(is_far, k, xp.where(is_near, size + k, acting))
        acting_achieved = xp.where(is_far[..., None], reached, acting_achieved)
        acting_achieved = xp.where(is_near[..., None], of_first(subgoals, k, achieved_goal, goal, xp), acting_achieved)
        acting_goal = xp.where(is_far[..., None], wanted, acting_goal)
        is_open = is_open & ~is_next
    return acting, acting_achieved, acting_goal


def _goal_of_chain(
    subgoals: Sequence[Subgoal], observation: Array, achieved_goal: Array, goal: Array, is_guided: bool
) -> tuple[int, Array, Array]:
    """Return what `_goals_of_chain` returns, for one observation of the task's own goal."""
    for k, each in enumerate(subgoals, 1):
        if each.is_placed(achieved_goal, goal):
            continue
        if each.distance(observation) > (each.tolerance if is_guided else each.switch_distance):
            return k, each.fill(each.achieved.of(observation), goal), each.fill(each.goal.of(observation), goal)
        if k < len(subgoals):
            return len(subgoals) + k, of_first(subgoals, k, achieved_goal, goal), goal
    return TASK, achieved_goal, goal


def of_first(subgoals: Sequence[Subgoal], k: int, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
    """Return achieved goals (..., g) in which only the first k objects are where they are; the others count as placed."""
    is_asked = np.zeros(goal.shape[-1], np.bool_)
    is_asked[[number for each in subgoals[:k] for number in each.numbers]] = True
    return xp.where(xp.asarray(is_asked), achieved_goal, goal)
