"""Where a tool must be to move what has no position in the goal: a drawer by its handle, a switch, a lever."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, product

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineColumns
from ..task_structure.subgoals import Subgoal
from .columns import GoalCopies, Units
from .contact import MIN_ONSETS, SWITCH, find_onsets, is_at_rest, reach
from .controlled import ControlledColumns
from .parts import POSITION_SIZES, Parts
from .steps import EXCEPTIONS, HELD_OUT, LITTLE, MOSTLY, SAMPLED, Steps, at_equal_intervals, rounded
from .tool import CANDIDATES, CLEARLY, MOST_GUESSES, are_alike, likelihood_of, positions_among

MOST_ROWS = SAMPLED**2  # at rest, that onsets are compared with


@dataclass(frozen=True)
class Handle:
    """Where the tool is when a dimension of the goal begins to move.

    tool: columns of steps. place: of such columns, one for each of the tool. n_onsets: episodes in which the dimension
        moved from rest. distances: between tool and place then, the 10, 50 and 90 % quantiles.
    placed: how near to its goal the dimension counts as reached.
    """

    dimension: int
    tool: tuple[int, ...]
    place: AffineColumns
    n_onsets: int
    distances: tuple[float, float, float]
    placed: float = 0.0

    def subgoal(self, units: Units) -> Subgoal:
        """Return the subgoal that brings the tool there, unless the dimension is near its goal."""
        subgoal = reach(units.of(self.tool), self.place_of(units), self.distances)
        return replace(subgoal, dimensions=(self.dimension,), placed=self.placed)

    def place_of(self, units: Units) -> AffineColumns:
        """Return the place as columns of the observation."""
        return self.place.after(units.of(self.place.columns))

    def shifted(self, shift: Mapping[int, float]) -> Handle:
        """Return the same place for columns that show positions from another origin. shift: what is added to each."""
        place = self.place
        offset = [
            constant + shift.get(tool, 0.0) - factor * shift.get(column, 0.0)
            for tool, column, factor, constant in zip(self.tool, place.columns, place.factor, place.offset, strict=True)
        ]
        return replace(self, place=replace(place, offset=tuple(offset)))

    def figures(self) -> str:
        """Return the figures of the evidence."""
        low, middle, high = self.distances
        return f"{self.n_onsets} episodes (distance {low:.3g}, {middle:.3g}, {high:.3g} at the 10, 50 and 90 % quantiles)"

    def evidence(self, units: Units) -> str:
        """Return the evidence in one sentence. units: how the observation holds the columns."""
        where = f"columns {units.listed(self.tool)} were near {self.place_of(units).text()}"
        return f"{where} where achieved_goal[{self.dimension}] moved from rest, in {self.figures()}"


def find_handles(
    steps: Steps,
    parts: Parts,
    copies: GoalCopies,
    controlled: ControlledColumns,
    tool: Sequence[int] = (),
    positions: Sequence[int] = (),
) -> tuple[Handle, ...]:
    """Find where a tool is when single dimensions of the goal begin to move.

    Along each axis that is a constant place, 0 for gaps, or another column, or a linear function of how far the dimension
    is moved. One tool moves all of them: no columns that show objects. It must be clearly nearer there than by chance for
    each choice that is compared.

    tool: its columns if they are known. positions: dimensions of the goal that are positions of objects. Others that hardly
        move without these, as the angle of an object, need no handle.
    """
    seen = [_Seen.of(steps, k, copies.columns[k]) for k in single_dimensions(steps, parts, positions)]
    seen = [each for each in seen if len(each.onsets) >= MIN_ONSETS]
    may_touch = set(controlled.columns) - copies.of_objects(parts.objects)
    columns = list(tool) or _axes(steps, positions_among(steps, may_touch))
    others = [c for c in range(steps.n_columns) if c not in controlled.columns]
    places = {(each.dimension, c): each.likeliest(c, others) for each in seen for c in columns}
    support = {c: sum(max(0.0, places[each.dimension, c][0].likelihood) for each in seen) for c in columns}
    best = sorted(sorted(columns, key=support.__getitem__)[-MOST_GUESSES:])
    sizes = POSITION_SIZES if len(columns) > 1 else (1,)  # along a line one column is the position of a tool
    tools = [tuple(tool)] if tool else [each for size in sizes for each in combinations(best, size)]
    n_tools = 1 if tool else sum(math.comb(len(columns), size) for size in sizes)
    most, found = 0.0, list[Handle]()
    for columns_of_tool in tools:
        total = by_chance = 0.0
        handles = []
        for each in seen:
            chosen = max(product(*(places[each.dimension, c] for c in columns_of_tool)), key=_joint_likelihood)
            likelihood, chance = _joint_likelihood(chosen), len(columns_of_tool) * math.log(each.n_choices(others))
            handle = _measure(each, columns_of_tool, chosen)
            if likelihood >= chance + CLEARLY and _is_away(chosen, SWITCH * handle.distances[1]):
                total, by_chance = total + likelihood, by_chance + chance
                handles.append(handle)
        if total > most and total >= by_chance + math.log(n_tools) + CLEARLY:
            most, found = total, handles
    return tuple(found)


def _axes(steps: Steps, positions: Sequence[int]) -> list[int]:
    """Return the positions that are not alike, but for signs and constants: the first of those that are."""
    found = list[int]()
    for column in positions:
        if not any(are_alike(steps, [column], [other]) for other in found):
            found.append(column)
    return found


def single_dimensions(steps: Steps, parts: Parts, positions: Sequence[int]) -> list[int]:
    """Return the dimensions of objects that may need a handle. positions: see `find_handles`.

    If there are positions, that is what moves without them in more than a few of its steps, as an empty tray does.
    """
    single = [k for each in parts.objects for k in each if k not in positions]
    if not positions:
        alone = [each for each in parts.objects if len(each) == 1 or _move_alone(steps, each)]
        return [k for each in alone for k in each]
    (known,) = steps.of_objects([positions])
    moves = {k: _only(k, steps).moved > 0 for k in single}
    return [k for k in single if (known.moved[moves[k]] == 0).sum() > LITTLE * moves[k].sum()]


def _move_alone(steps: Steps, dimensions: Sequence[int]) -> bool:
    """Return whether dimensions of one part move, and seldom two of them in one step, as two drawers do."""
    is_moving = np.stack([_only(k, steps).moved > 0 for k in dimensions])
    n_moving = is_moving.sum(0)
    return bool(is_moving.any(1).all() and (n_moving > 1).sum() <= LITTLE * (n_moving > 0).sum())


def _only(dimension: int, steps: Steps) -> Steps:
    """Return the steps with one dimension of the goal."""
    (one,) = steps.of_objects([(dimension,)])
    return one


@dataclass(frozen=True, eq=False)
class _Place:
    """A place along one axis: factor * column + offset, and how far the tool is from it along this axis.

    at_onset: before and after the steps in which the dimension moves from rest, (2, n), from the place that others show.
    at_rest: before and after steps in which it rests, (2, N). n_fitted: numbers that were fitted to the onsets.
    """

    column: int
    factor: float
    offset: float
    at_onset: Array
    at_rest: Array
    n_fitted: int

    @property
    def likelihood(self) -> float:
        """The logarithm of its likelihood."""
        return _joint_likelihood([self])


@dataclass(frozen=True, eq=False)
class _Seen:
    """What steps show of one dimension of the goal.

    copy: the column that shows it. onsets: in which it moves from rest. at_rest: in which it rests.
    """

    dimension: int
    steps: Steps
    copy: int | None
    onsets: Array
    at_rest: Array

    @classmethod
    def of(cls, steps: Steps, dimension: int, copy: int | None) -> _Seen:
        """Return what steps show of a dimension."""
        one = _only(dimension, steps)
        at_rest = np.flatnonzero(is_at_rest(one))
        return cls(dimension, one, copy, find_onsets(one), at_rest[at_equal_intervals(len(at_rest), MOST_ROWS)])

    def n_choices(self, others: Sequence[int]) -> int:
        """Return how many places along an axis are compared."""
        return 2 + 2 * len(others) + (self.copy is not None)

    def likeliest(self, tool: int, others: Sequence[int]) -> list[_Place]:
        """Return the likeliest places along an axis. tool: its column. others: columns that actions do not move."""
        return sorted(self._places(tool, others), key=lambda place: place.likelihood, reverse=True)[:CANDIDATES]

    def _places(self, tool: int, others: Sequence[int]) -> Iterator[_Place]:
        yield self._fit(tool, tool, factor=0.0)
        yield _Place(tool, 0.0, 0.0, *self._distances(tool, tool, 0.0), 0)  # a gap to the handle is 0 there
        for column in others:
            yield _Place(column, 1.0, 0.0, *self._distances(tool, column, 1.0), 0)
            yield self._fit(tool, column, factor=1.0)
        if self.copy is not None and len(self.onsets) > HELD_OUT:
            own, wanted = self.steps.next_observation[self.onsets][:, [self.copy, tool]].T
            centred = own - own.mean()
            if centred.any():
                yield self._fit(tool, self.copy, float(centred @ wanted / (centred @ centred)), n_fitted=2)

    def _distances(self, tool: int, column: int, factor: float) -> tuple[Array, Array]:
        """Return how far the tool is from factor * column at onsets and at rest, before and after each step."""
        seen = np.stack([self.steps.observation, self.steps.next_observation])
        distance = seen[..., tool] - factor * seen[..., column]
        return distance[:, self.onsets], distance[:, self.at_rest]

    def _fit(self, tool: int, column: int, factor: float, n_fitted: int = 1) -> _Place:
        """Return the place with the mean offset after onsets. Each onset is compared with the mean of the others."""
        at_onset, at_rest = self._distances(tool, column, factor)
        n, offset = at_onset.shape[1], float(at_onset[1].mean())
        return _Place(column, factor, offset, (at_onset - offset) * n / (n - n_fitted), at_rest - offset, n_fitted)


def _joint_likelihood(places: Sequence[_Place]) -> float:
    """Return the logarithm of the likelihood that these are the axes of the place.

    The tool is there before the step, too. Then what the step itself changes is no place: a switch that is off until then.
    """
    at_onset, at_rest = (
        reduce(np.add, [np.square(getattr(each, name)) for each in places]).max(0) for name in ("at_onset", "at_rest")
    )
    return likelihood_of(at_onset, at_rest, max(each.n_fitted for each in places))


def _is_away(places: Sequence[_Place], distance: float) -> bool:
    """Return whether the tool mostly is farther away while the dimension rests: what is met anywhere leads nowhere."""
    at_rest = np.linalg.norm([each.at_rest[1] for each in places], axis=0)
    return bool((at_rest > distance).mean() > MOSTLY)


def _measure(seen: _Seen, tool: tuple[int, ...], places: Sequence[_Place]) -> Handle:
    """Return the handle. A distance below a usual step of the tool counts as that step."""
    distance = np.linalg.norm([each.at_onset[1] for each in places], axis=0)
    usual_step = np.median(np.linalg.norm(seen.steps.change[:, list(tool)], axis=1))
    distances = np.maximum(np.quantile(distance, [EXCEPTIONS, MOSTLY, 1 - EXCEPTIONS]), usual_step)
    columns, factor, offset = zip(*((each.column, each.factor, each.offset) for each in places), strict=True)
    factor, offset = (tuple(rounded(np.array(x), size).tolist()) for x, size in ((factor, 1.0), (offset, distances[0])))
    low, middle, high = distances.tolist()
    return Handle(seen.dimension, tool, AffineColumns(columns, factor, offset), len(seen.onsets), (low, middle, high))
