"""Subgoals: goals to reach before the goal of the task (relay HER, Luo et al. 2023), such as "gripper at the object".

A subgoal has an achieved goal and a desired goal of its own. Both are columns of the observation, in the units of the goal
or brought to them, as in achieved=2.5*o0+1,-o1. The agent learns to reach subgoals with the same networks as the task's
goal. While a subgoal is not met, the policy acts for the subgoal.
A subgoal is declared as text: "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15".

A task with several objects has a sequence of subgoals: one for each object, in the order in which the objects are placed.
Each names the dimensions of the task's goal that are the position of its object, and how near to the goal the object counts
as placed: "reach achieved=0,1,2 goal=7,8,9 tolerance=0.03 switch_distance=0.15 dimensions=0,1,2 placed=0.05".
- With K objects, index k from 1 to K stands for the subgoal that leads the tool to object k. Index K + k stands for a goal
  that asks for the positions of the first k objects only: k is below K, or is K if the task's own goal asks for more.
- The policy acts for the first object that is not placed: for its subgoal while the tool is farther than switch_distance,
  then for the positions of the objects up to it. An object that is knocked off its position is the first again.
- The subgoal that leads the tool to object k also asks that the objects before it stay where they are placed: else the tool
  would drag or push them along.
- Where a goal is not about an object, its dimensions count as reached: achieved and desired goal are equal there.
- Networks see objects that are placed before another one is acted for as exactly where they should be.
- If subgoals name the columns of their objects, in the same order, as in "columns=7,8,9,13,14,15", networks see the object
  that is acted for in the place of the first one. What they learn of one object then holds for the others, too. Columns
  at one place stay where they are if some of them are hidden from the networks and others are not.

What must be moved may have no position in the goal: a drawer, a switch. Then `achieved` and `goal` name the tool and the
place where it must be, in as many columns as these have: "reach achieved=0,1 goal=o5+0.1,0*o1+0.4 tolerance=0.03
switch_distance=0.1 dimensions=0 placed=0.05". Goals get as many dimensions after those of the task. They are 0 in all goals
but those of such subgoals.

If the goal is the position and the angle of one object, its subgoal names the dimensions of the position alone, without
`placed`. The other dimensions count as reached for it, and the task's own goal asks for all of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import OptionError
from ..records import Array, GoalSpec
from .affine import AffineColumns

MOST_SUBGOALS = 100  # each is an input of the networks, and is looked at in each step
TASK = 0  # the index that stands for the task's own goal; subgoals count from 1
_EXAMPLE = "reach achieved=0,1,2 goal=3,4,5 tolerance=0.03 switch_distance=0.15"
_EXAMPLE_OF_OBJECT = f"{_EXAMPLE} dimensions=0,1,2 placed=0.05 columns=3,4,5"
SUBGOAL_TEXT = re.compile(
    r"(\w+) achieved=(\S+) goal=(\S+) tolerance=([\d.e-]+) switch_distance=([\d.e-]+)"
    r"(?: dimensions=(\d+(?:,\d+)*)(?: placed=([\d.e-]+)(?: columns=(\d+(?:,\d+)*))?)?)?"
)
Goals = tuple[Any, Any, Any]  # the index of the subgoal, its achieved goal and its goal


@dataclass(frozen=True)
class Subgoal:
    """A goal to reach before the task's goal.

    achieved, goal: columns of the observation, as many as the task's goals have, or as `dimensions`. If they are more than
        `dimensions`, they are a place that goals do not have.
    tolerance: the subgoal is met within this distance.
    switch_distance: within this distance the policy acts for the next goal.
    dimensions: of the task's goal, the position of the object that the subgoal leads to; empty: all.
    placed: the object is placed within this distance of the desired goal, measured in `dimensions`; 0: there is one object.
    columns: of the observation, all that are about the object, in the same order for each object; empty: not known.
    """

    name: str
    achieved: AffineColumns
    goal: AffineColumns
    tolerance: float
    switch_distance: float
    dimensions: tuple[int, ...] = ()
    placed: float = 0.0
    columns: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Subgoal:
        """Return the subgoal that a text declares, as the module shows it. Raises OptionError."""
        found = SUBGOAL_TEXT.fullmatch(text)
        try:
            name, achieved, goal, tolerance, switch_distance, dimensions, placed, columns = found.groups() if found else ()
            subgoal = cls(
                name,
                AffineColumns.parse(achieved),
                AffineColumns.parse(goal),
                float(tolerance),
                float(switch_distance),
                _numbers(dimensions),
                float(placed or 0.0),
                _numbers(columns),
            )
        except ValueError:
            raise OptionError(
                f"Cannot read the subgoal {text!r}. Write it as in {_EXAMPLE!r}, or for one of several objects as in "
                f"{_EXAMPLE_OF_OBJECT!r}; `columns` may be left out."
            ) from None
        if not 0 < subgoal.tolerance <= subgoal.switch_distance < math.inf:
            raise OptionError(f"Subgoal {text!r}: tolerance must be above 0 and switch_distance at least tolerance.")
        if placed and not 0 < subgoal.placed < math.inf:
            raise OptionError(f"Subgoal {text!r}: placed must be above 0.")
        return subgoal

    def text(self) -> str:
        """Return the text that `parse` reads, with 3 digits of each distance."""
        distances = f"tolerance={_digits(self.tolerance)} switch_distance={_digits(self.switch_distance)}"
        text = f"{self.name} achieved={self.achieved.text()} goal={self.goal.text()} {distances}"
        if not self.dimensions:
            return text
        text += f" dimensions={','.join(map(str, self.dimensions))}"
        text += f" placed={_digits(self.placed)}" if self.placed else ""
        return f"{text} columns={','.join(map(str, self.columns))}" if self.columns else text

    def distance(self, observation: Any, xp: Any = np) -> Any:
        """Return the Euclidean distance from being met, (...), of observations (..., n). xp: as in `acting_goals`."""
        return xp.sqrt(xp.square(self.achieved.of(observation, xp) - self.goal.of(observation, xp)).sum(-1))

    def is_far(self, observation: Any, is_guided: bool, xp: Any = np) -> Any:
        """Return whether the policy acts for this subgoal and not yet for what follows, (...) bool."""
        return self.distance(observation, xp) > (self.tolerance if is_guided else self.switch_distance)

    def is_placed(self, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
        """Return whether the object is where `goal` asks it to be, (...) bool, of goals (..., g)."""
        gap = self.position(achieved_goal) - self.position(goal)
        return xp.sqrt(xp.square(gap).sum(-1)) <= self.placed

    def position(self, goal: Any) -> Any:
        """Return the dimensions (..., k) of goals (..., g) that are the position of the object."""
        return goal[..., self._index]

    @cached_property
    def n_added(self) -> int:
        """How many dimensions the subgoal adds to goals: those of a place that has no position in the goal, or 0."""
        size = len(self.achieved.columns)
        return size if self.dimensions and size != len(self.dimensions) else 0

    def with_place(self, values: Any, goals: Any, xp: Any = np) -> Any:
        """Return goals (..., g) with the place, `values` (..., k): in the object's dimensions, or in the added ones."""
        if not self.n_added:
            return self.fill(values, goals, xp)
        of_task = goals[..., : goals.shape[-1] - self.n_added]
        return xp.concatenate((of_task, values), -1, dtype=xp.float32, casting="unsafe")

    def fill(self, values: Any, others: Any, xp: Any = np) -> Any:
        """Return goals (..., g) with the object's dimensions from `values` (..., k) and the rest from `others` (..., g).

        Without `dimensions`, `values` are the whole goal.
        """
        if not self.dimensions:
            return values
        is_own, source = self._spread(others.shape[-1])
        return xp.where(xp.asarray(is_own), values[..., source], others)

    @cached_property
    def _index(self) -> Array:
        return np.array(self.dimensions, np.int64)

    def _spread(self, size: int) -> tuple[Array, Array]:
        """Return which dimensions of a goal are the object's, and the index of each in `dimensions`, (size,) each."""
        is_own, source = np.zeros(size, np.bool_), np.zeros(size, np.int64)
        is_own[self._index], source[self._index] = True, np.arange(len(self.dimensions))
        return is_own, source


def _numbers(text: str | None) -> tuple[int, ...]:
    """Return the numbers of a list such as "3,4,5"."""
    return tuple(map(int, text.split(","))) if text else ()


def _digits(distance: float) -> str:
    """Return a distance with 3 digits, without the "+" that `1.23e+03` would have."""
    return f"{float(f'{distance:.3g}'):.12g}"


class Subgoals:
    """The subgoals of a task in their order. Empty if the task has none.

    texts: as the module describes them. hidden: columns of the observation that networks do not see.

    Raises OptionError if a text cannot be read, if the task lacks the columns or if its goals have another size.
    """

    def __init__(self, texts: Sequence[str], spec: GoalSpec, hidden: Container[int] = ()) -> None:
        if len(texts) > MOST_SUBGOALS:
            raise OptionError(f"Expected at most {MOST_SUBGOALS} subgoals, got {len(texts)}. Leave some out.")
        self.items = tuple(Subgoal.parse(text) for text in texts)
        _check(self.items, spec)
        self.has_objects = bool(self.items and self.items[0].placed)
        is_all = sum(len(each.dimensions) for each in self.items) == spec.goal.size
        self._n_first = len(self) - is_all if self.has_objects else 0  # goals that ask for the first objects only
        self.n_added, self._size = max((each.n_added for each in self.items), default=0), spec.goal.size
        self._exchanges = tuple(
            _exchange(self.items[0], each, (spec.observation.size, self._size + self.n_added), hidden)
            for each in self.items[1:]
            if each.columns
        )

    def __len__(self) -> int:
        """Return the number of subgoals."""
        return len(self.items)

    def __iter__(self) -> Iterator[Subgoal]:
        """Iterate over the subgoals."""
        return iter(self.items)

    @property
    def n_indices(self) -> int:
        """Return how many indices besides TASK rows can have: with objects also those of the first objects being placed."""
        return len(self) + self._n_first

    def widen(self, goals: Any, xp: Any = np) -> Any:
        """Return goals (..., g) with zeros in the dimensions that subgoals add; others as they are."""
        if not self.n_added or goals.shape[-1] > self._size:
            return goals
        return xp.concatenate((goals, *(goals[..., :1] * 0,) * self.n_added), -1, dtype=xp.float32, casting="unsafe")

    def _with_places(self, subgoal: Any, observation: Any, achieved_goal: Any, goal: Any, xp: Any) -> tuple[Any, Any]:
        """Return achieved goal and goal with all dimensions. The tool achieves those that the subgoal of a row adds."""
        is_wide = achieved_goal.shape[-1:] != (self._size,)
        achieved_goal, goal = self.widen(achieved_goal, xp), self.widen(goal, xp)
        for k, each in enumerate(self.items, 1):
            if each.n_added and not is_wide:
                reached = each.with_place(each.achieved.of(observation, xp), achieved_goal, xp)
                achieved_goal = xp.where(xp.asarray(subgoal == k)[..., None], reached, achieved_goal)
        return achieved_goal, goal

    def acting_goals(
        self, observation: Any, achieved_goal: Any, goal: Any, subgoal: Any, is_guided: bool = False, xp: Any = np
    ) -> Goals:
        """Return the index of the subgoal (...), achieved goal and goal (..., g) that the policy acts for.

        The policy acts for the first subgoal that is farther than its switch_distance (its tolerance if `is_guided`). A row
        that belongs to a subgoal considers only the subgoals before it. With objects, see the module: a row whose goal asks
        for the positions of the first objects considers only these, and a row of "reach" acts for its object.

        observation: (..., n). achieved_goal, goal: (..., g).
        subgoal: (...), TASK for rows of the task's own goal.
        xp: the namespace of the array functions, `numpy` by default.
        """
        if not self.items:
            return subgoal, achieved_goal, goal
        achieved_goal, goal = self._with_places(subgoal, observation, achieved_goal, goal, xp)
        size, considered = len(self), subgoal - (len(self) if self.has_objects else 1)
        considered = xp.where(subgoal == TASK, self._n_first + 1 if self.has_objects else size, considered)
        acting, acting_achieved, acting_goal = subgoal, achieved_goal, goal
        is_open = considered > 0  # no subgoal so far was far, and all objects so far are placed
        for k, each in enumerate(self.items, 1):
            is_next = is_open & (considered >= k)
            if self.has_objects:
                is_next = is_next & ~each.is_placed(achieved_goal, goal, xp)
            is_far = is_next & each.is_far(observation, is_guided, xp)
            reached, wanted = self.reach(k, observation, achieved_goal, goal, xp)
            acting = xp.where(is_far, k, acting)
            acting_achieved = xp.where(is_far[..., None], reached, acting_achieved)
            acting_goal = xp.where(is_far[..., None], wanted, acting_goal)
            if self.has_objects:
                is_near = is_next & ~is_far & (considered > k)
                acting = xp.where(is_near, size + k, acting)
                first = self.of_first(k, achieved_goal, goal, xp)
                acting_achieved = xp.where(is_near[..., None], first, acting_achieved)
            is_open = is_open & ~(is_next if self.has_objects else is_far)
        return acting, acting_achieved, acting_goal

    def acting_goal(self, observation: Array, achieved_goal: Array, goal: Array, is_guided: bool) -> Goals:
        """Return what `acting_goals` returns for one observation of the task's own goal, in less time."""
        achieved_goal, goal = map(self.widen, (achieved_goal, goal))
        for index, each in enumerate(self.items, 1):
            if each.placed and each.is_placed(achieved_goal, goal):
                continue
            if each.is_far(observation, is_guided):
                return index, *self.reach(index, observation, achieved_goal, goal)
            if index <= self._n_first:
                return len(self) + index, self.of_first(index, achieved_goal, goal), goal
        return TASK, achieved_goal, goal

    def reach(self, k: int, observation: Any, achieved_goal: Any, goal: Any, xp: Any = np) -> tuple[Any, Any]:
        """Return achieved goal and goal (..., g) of the subgoal k: the tool at its object, the objects before it placed."""
        each = self.items[k - 1]
        before = self.of_first(k - 1, achieved_goal, goal, xp) if each.dimensions else achieved_goal
        before, goal = (self.widen(each, xp) for each in (before, goal))
        reached, wanted = (part.of(observation, xp) for part in (each.achieved, each.goal))
        return each.with_place(reached, before, xp), each.with_place(wanted, goal, xp)

    def seen(self, subgoal: Any, observation: Any, achieved_goal: Any, goal: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Return observation (..., n), achieved goal and goal (..., g) as networks see them.

        An object that is placed before another one is acted for counts as reached: its error, which does not matter, would
        look like that of an object that must be moved. The object that is acted for is in the place of the first one.

        subgoal: (...), or one number for all.
        """
        if not self.has_objects:
            return observation, achieved_goal, goal
        achieved_goal, goal = self._with_places(subgoal, observation, achieved_goal, goal, xp)
        size, has_bodies = len(self), len(self) == self._n_first
        acted_for = xp.where(xp.asarray(subgoal > size), subgoal - size, subgoal)
        acted_for = xp.where(xp.asarray(subgoal == TASK), size + has_bodies, acted_for)  # bodies are placed last
        for k, each in enumerate(self.items, 1):
            is_before = (acted_for > k) & each.is_placed(achieved_goal, goal, xp)
            goal = xp.where(is_before[..., None], each.fill(each.position(achieved_goal), goal, xp), goal)
        for k, (columns, dimensions) in enumerate(self._exchanges, 2):
            is_exchanged = (acted_for == k)[..., None]
            observation = xp.where(is_exchanged, observation[..., columns], observation)
            achieved_goal, goal = (xp.where(is_exchanged, x[..., dimensions], x) for x in (achieved_goal, goal))
        return observation, achieved_goal, goal

    @property
    def orders(self) -> Iterator[tuple[Any, Any]]:
        """Yield indices of the last axis of observations and of goals, for each object that may be in the first place."""
        yield ..., ...
        for columns, dimensions in self._exchanges:
            yield (..., columns), (..., dimensions)

    def all_goals(self, observation: Array, achieved_goal: Array, desired_goal: Array) -> list[Array]:
        """Return the goals of N rows, those of subgoals included, (N, g) each. Added dimensions hold the tool."""
        goals = [achieved_goal, desired_goal]
        for each in self.items:
            if each.n_added:
                tool = each.achieved.of(observation)
                goals[:2] = (each.with_place(tool, self.widen(goal)) for goal in (achieved_goal, desired_goal))
            wide = self.widen(achieved_goal)
            goals += [each.with_place(part.of(observation), wide) for part in (each.achieved, each.goal)]
        return goals

    def of_first(self, k: int, achieved_goal: Any, goal: Any, xp: Any = np) -> Any:
        """Return achieved goals (..., g) with the positions of the first k objects; the others count as placed."""
        is_asked = np.zeros(goal.shape[-1], np.bool_)
        is_asked[[dimension for each in self.items[:k] for dimension in each.dimensions]] = True
        return xp.where(xp.asarray(is_asked), achieved_goal, goal)


def _exchange(first: Subgoal, other: Subgoal, sizes: tuple[int, int], hidden: Container[int]) -> tuple[Array, Array]:
    """Return the order of columns and of dimensions, of two sizes, with two objects in the places of each other."""
    pairs = [pair for pair in zip(first.columns, other.columns, strict=True) if len({c in hidden for c in pair}) == 1]
    dimensions = zip(first.dimensions, other.dimensions, strict=True)
    return _exchanged(sizes[0], pairs), _exchanged(sizes[1], dimensions)


def _exchanged(size: int, pairs: Iterable[tuple[int, int]]) -> Array:
    """Return the numbers below `size`, with those of each pair in the places of each other."""
    order = np.arange(size)
    for one, other in pairs:
        order[[one, other]] = other, one
    return order


def _check(subgoals: Sequence[Subgoal], spec: GoalSpec) -> None:
    if subgoals and (len(spec.observation.shape) != 1 or len(spec.goal.shape) != 1):
        shapes = f"{spec.observation.shape} and {spec.goal.shape}"
        raise OptionError(f"Subgoals need a flat observation and flat goals, got the shapes {shapes}. Set subgoals=().")
    for subgoal in subgoals:
        size = subgoal.n_added or len(subgoal.dimensions) or spec.goal.size
        for name, part in (("achieved", subgoal.achieved), ("goal", subgoal.goal)):
            if len(part.columns) != size or max(part.all_columns) >= spec.observation.size:
                expected = f"{size} columns of the observation, below {spec.observation.size}"
                raise OptionError(f"`{name}` of the subgoal {subgoal.name} is {part.columns}. Expected {expected}.")
    if len({subgoal.n_added for subgoal in subgoals if subgoal.n_added}) > 1:
        raise OptionError("`achieved` and `goal` of the subgoals differ in size. All of them are places of one tool.")
    dimensions = [dimension for subgoal in subgoals for dimension in subgoal.dimensions]
    if len({(bool(subgoal.dimensions), bool(subgoal.placed)) for subgoal in subgoals}) > 1:
        raise OptionError(
            "Either all subgoals name the `dimensions` of their object, and how near it is `placed`, or none."
        )
    if dimensions and (len(set(dimensions)) < len(dimensions) or max(dimensions) >= spec.goal.size):
        raise OptionError(
            f"`dimensions` of the subgoals are {dimensions}. Each must occur once, and be below {spec.goal.size}."
        )
    if any(subgoal.columns for subgoal in subgoals):
        _check_columns(subgoals, spec)


def _check_columns(subgoals: Sequence[Subgoal], spec: GoalSpec) -> None:
    of_objects = [subgoal.columns for subgoal in subgoals]
    listed = [column for columns in of_objects for column in columns]
    sizes = {(len(subgoal.columns), len(subgoal.dimensions)) for subgoal in subgoals}
    if not (len(sizes) == 1 and len(set(listed)) == len(listed) and max(listed) < spec.observation.size):
        raise OptionError(
            f"`columns` of the subgoals are {of_objects}. Expected as many of each object, each once, and below "
            f"{spec.observation.size}, for objects with as many `dimensions`."
        )
    places = {tuple(subgoal.columns.index(c) for c in subgoal.goal.columns if c in subgoal.columns) for subgoal in subgoals}
    has_positions = len(places) == 1 and len(next(iter(places))) == len(subgoals[0].dimensions)
    of_tool = {column for subgoal in subgoals for column in subgoal.achieved.all_columns}
    if not has_positions or not of_tool.isdisjoint(listed):
        raise OptionError(
            f"`columns` of the subgoals are {of_objects}. Expected the position of each object (`goal`) at the same places "
            "of them, and no column of `achieved`."
        )
