"""What single observation columns are: copies of the goal and their units, constants, or differences of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..records import Array
from ..records.statistics import FLOAT32_ROUNDING, NOISY_COPY, are_noisy_copies
from ..task_structure.affine import AffineColumns, AffineMap, affine_text
from .steps import DIGITS, FEWEST, HARDLY, ROUNDED, SAMPLED, Steps, with_unit_norm


@dataclass(frozen=True)
class GoalCopies:
    """columns[k]: the observation column that equals achieved_goal[k] in every step, or None."""

    columns: tuple[int | None, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every dimension of the achieved goal has a copy."""
        return None not in self.columns

    @property
    def complete(self) -> tuple[int, ...]:
        """The columns, which must have no gap."""
        return tuple(column for column in self.columns if column is not None)

    def of_objects(self, objects: Iterable[Sequence[int]]) -> set[int]:
        """Return the columns that show objects, whose dimensions of the goal these are: no tool has them."""
        return {column for dimensions in objects for k in dimensions if (column := self.columns[k]) is not None}


@dataclass(frozen=True)
class ColumnDifference:
    """column = left - right in every step, up to a constant: a bail is above the bucket that it carries."""

    column: int
    left: int
    right: int


def find_goal_copies(steps: Steps, largest_noise: float = NOISY_COPY) -> GoalCopies:
    """Find the columns that equal a dimension of the achieved goal before and after every step, or differ by little noise.

    largest_noise: see `are_noisy_copies`; 0 for exact copies only.

    A column that never varies is a copy only if some other dimension of the goal has a copy that varies, or if neighbouring
    columns equal a goal that nothing moved yet: two constants may be equal by accident.
    """
    seen = np.concatenate([steps.observation, steps.next_observation])
    achieved = np.concatenate([steps.achieved_goal, steps.next_achieved_goal])
    columns: list[int | None] = []
    rounding = FLOAT32_ROUNDING * float(np.abs(achieved).max())
    errors = np.stack([np.square(seen - values[:, None]).mean(0) for values in achieved.T])  # (goal size, columns)
    nearest, least = errors.argmin(1), errors.min(1)
    is_noisy = are_noisy_copies(least, achieved.var(0), largest_noise)
    for k, values in enumerate(achieved.T):
        equal = np.flatnonzero(np.abs(seen - values[:, None]).max(0) <= rounding)
        columns.append(int(equal[errors[k, equal].argmin()]) if len(equal) else int(nearest[k]) if is_noisy[k] else None)
    varies = [column is not None and np.ptp(values) > 0 for column, values in zip(columns, achieved.T, strict=True)]
    if not any(varies):
        columns = _find_constant_copies(seen, achieved, rounding)
    return GoalCopies(tuple(columns))


def _find_constant_copies(seen: Array, achieved: Array, rounding: float) -> list[int | None]:
    """Return the first neighbouring columns that equal the achieved goal, up to rounding, if the goal never varies."""
    size = achieved.shape[1]
    if not np.ptp(achieved, axis=0).any():
        for first in range(seen.shape[1] - size + 1):
            if (np.abs(seen[:, first : first + size] - achieved) <= rounding).all():
                return list(range(first, first + size))
    return [None] * size


def find_constant_columns(steps: Steps) -> tuple[int, ...]:
    """Return the columns that have one value in all steps."""
    seen = np.concatenate([steps.observation, steps.next_observation])
    return tuple(np.flatnonzero(np.ptp(seen, axis=0) == 0).tolist())


def find_differences(steps: Steps) -> tuple[ColumnDifference, ...]:
    """Find the columns that are one column minus another, exactly up to a constant, one pair for each such column.

    If several pairs are, as where a place is seen in two ways, it is the one with the smallest constant.
    """
    seen = np.concatenate([steps.observation, steps.next_observation])
    live = np.flatnonzero(np.ptp(seen, axis=0) > 0).tolist()
    size, first, seen = np.abs(seen).max(0), seen[0], seen - seen[0]
    sample = seen[:: max(1, len(seen) // SAMPLED)]
    found: dict[
        frozenset[int], ColumnDifference
    ] = {}  # "c = a - b" and "b = a - c" say the same: one of each triple is kept
    for column in live:
        rounding = FLOAT32_ROUNDING * (size[live, None] + size[live] + size[column])  # of each pair's difference from it
        gap = np.abs(sample[:, live, None] - sample[:, None, live] - sample[:, column, None, None]).max(0)
        pairs = np.argwhere(gap <= rounding)
        constants = np.abs(first[live][pairs] @ [1, -1] - first[column])
        constants[constants <= rounding[tuple(pairs.T)]] = 0.0
        for i, j in pairs[np.argsort(constants, kind="stable")]:
            left, right = live[i], live[j]
            exact = np.abs(seen[:, left] - seen[:, right] - seen[:, column]).max() <= rounding[i, j]
            if exact and left != right and column not in (left, right):
                found.setdefault(frozenset((column, left, right)), ColumnDifference(column, left, right))
                break
    return tuple(found.values())


def third_column(pair: tuple[int, int], differences: Sequence[ColumnDifference]) -> int | None:
    """Return the column that is the sum or the difference of two; None if there is none."""
    for difference in differences:
        triple = {difference.column, difference.left, difference.right}
        if set(pair) < triple:
            return (triple - set(pair)).pop()
    return None


def find_delayed_columns(steps: Steps) -> dict[int, int]:
    """Find the columns that show what another column showed one step before, as in observations of several frames.

    Return the other column of each.
    """
    inside = ~steps.starts_episode
    before, now = steps.observation[inside], steps.next_observation[inside]
    moves = np.flatnonzero((steps.change[inside] != 0).any(0))
    every = max(1, len(now) // SAMPLED)
    alike = (now[::every, moves, None] == before[::every, None, moves]).all(0)
    pairs = [(int(moves[i]), int(moves[j])) for i, j in np.argwhere(alike)]
    return {late: early for late, early in pairs if (now[:, late] == before[:, early]).all()}


def listed(columns: Iterable[int]) -> str:
    """Return columns as text, separated by commas."""
    return ", ".join(map(str, columns))


@dataclass(frozen=True)
class Gap:
    """A column that is the gap between an object and the tool, times a factor.

    of: the column of the object. is_certain: whether displacements of the object show it, and not its starts alone.
    """

    column: int
    of: int
    factor: float
    is_certain: bool = True

    def tool(self, observation: Array) -> Array:
        """Return the position of the tool, (N,), of observations (N, n)."""
        return np.asarray(observation[:, self.of] - observation[:, self.column] / self.factor)


@dataclass(frozen=True, eq=False)
class Units:
    """factor * column + offset is a column in the units of the goal, if `is_known`. All arrays are (columns,).

    gaps: to a tool that no column shows. Its positions are columns of steps after those of the observation.
    by_contact: the columns of a tool whose units follow from its contacts.
    origin: where columns that show the goal are 0, if their factor is the same for all its dimensions, but this is not;
        empty otherwise. (goal size,).
    """

    factor: Array
    offset: Array
    is_known: Array
    gaps: tuple[Gap, ...] = ()
    by_contact: tuple[int, ...] = ()
    origin: tuple[float, ...] = ()

    @classmethod
    def same(cls, size: int) -> Units:
        """Return the units of an observation whose columns all have the units of the goal."""
        return cls(np.ones(size), np.zeros(size), np.ones(size, bool))

    def set(self, column: int, factor: float, offset: float) -> None:
        """Note the units of a column, unless they are known."""
        if not self.is_known[column]:
            self.factor[column], self.offset[column], self.is_known[column] = factor, offset, True

    def with_tool(self, columns: Sequence[int], factor: Array, offset: Array) -> Units:
        """Return the units if factor * column + offset, of columns in these units, are positions of a tool."""
        at, (factors, offsets, is_known) = list(columns), (x.copy() for x in (self.factor, self.offset, self.is_known))
        factors[at], offsets[at], is_known[at] = factor * factors[at], factor * offsets[at] + offset, True
        return Units(factors, offsets, is_known, self.gaps, tuple(sorted(columns)))

    def shifted(self, shift: Mapping[int, float]) -> Units:
        """Return the units of columns of steps that stand for positions from another origin; no others are known then.

        shift: what is added to each of them. If all are 0, nothing changes.
        """
        shift = {column: origin for column, origin in shift.items() if column < self.n_columns}
        if not any(shift.values()):
            return self
        offset, is_known = self.offset.copy(), np.zeros_like(self.is_known)
        offset[list(shift)] += list(shift.values())
        is_known[list(shift)] = True
        return replace(self, offset=offset, is_known=is_known)

    def apply(self, steps: Steps) -> Steps:
        """Return steps with the observation in the units of the goal."""
        seen, then = (self._apply(x) for x in (steps.observation, steps.next_observation))
        return replace(steps, observation=seen, next_observation=then)

    def _apply(self, observation: Array) -> Array:
        values = observation * self.factor + self.offset
        return np.column_stack([values, *(gap.tool(values) for gap in self.gaps)])

    @property
    def n_columns(self) -> int:
        """The number of columns of an observation."""
        return len(self.factor)

    def knows(self, column: int) -> bool:
        """Return whether a column of steps may be a position in the units of the goal. Gaps in these units are none."""
        if column >= self.n_columns:
            return self.gaps[column - self.n_columns].is_certain
        is_gap = any(column == gap.column and abs(gap.factor) == 1 and gap.is_certain for gap in self.gaps)
        return bool(self.is_known[column]) and not is_gap

    def of(self, columns: Sequence[int]) -> AffineColumns:
        """Return columns of steps as columns of the observation, with what brings them to the units of the goal."""
        gaps = [self.gaps[c - self.n_columns] if c >= self.n_columns else None for c in columns]
        at = [c if gap is None else gap.of for c, gap in zip(columns, gaps, strict=True)]
        factor, offset = self.factor[at], self.offset[at]
        if not any(gaps):
            return AffineColumns(tuple(at), tuple(factor.tolist()), tuple(offset.tolist()))
        added = [c if gap is None else gap.column for c, gap in zip(at, gaps, strict=True)]
        weight = np.array([0.0 if gap is None else -1 / gap.factor for gap in gaps])
        offset, weight = offset + weight * self.offset[added], weight * self.factor[added]
        return AffineColumns(
            tuple(at), tuple(factor.tolist()), tuple(offset.tolist()), tuple(added), tuple(weight.tolist())
        )

    def difference(self, left: int, right: int) -> str:
        """Return the difference of two columns of the observation, in the units of the left one, as an option writes it."""
        (factor, other), (offset, others) = (each[[left, right]].tolist() for each in (self.factor, self.offset))
        if (factor, offset) == (other, others):
            return f"{left}-{right}"
        constant, weight = (offset - others) / factor, -other / factor
        return AffineColumns((left,), (1.0,), (constant,), (right,), (weight,)).text()

    def in_observation(self, change: AffineMap) -> AffineMap:
        """Return the map of the observation that does what `change` does with columns of steps."""
        seen = slice(self.n_columns)
        return AffineMap(change.source[seen], change.factor[seen], change.offset[seen]).from_units(self.factor, self.offset)

    def listed(self, columns: Sequence[int]) -> str:
        """Return columns of steps as text: "0, 1", or "8-o2" for a position less the gap to it."""
        return ", ".join(self.of([c]).text() if c >= self.n_columns else str(c) for c in columns)

    def evidence(self) -> str:
        """Return the evidence in one sentence; nothing if all columns have the units of the goal."""
        exact = np.setdiff1d(np.flatnonzero(self.is_known), self.by_contact).tolist()
        text = ""
        if not self.is_known.all():
            text += f"; {self._in_units(exact)} have the units of the goal, by exact linear relations"
        if self.by_contact:
            near = "as they are near the object when it begins to move"
            text += f"; {self._in_units(self.by_contact)} have the units of the goal about, {near}"
        return text

    def _in_units(self, columns: Sequence[int]) -> str:
        factor, offset = (each.round(DIGITS).tolist() for each in (self.factor, self.offset))
        return ", ".join(affine_text("o", c, factor[c], offset[c]) for c in columns)


def find_units(steps: Steps) -> Units:
    """Find the units of columns.

    If columns equal two dimensions of the achieved goal or more, all columns are taken to have its units, but for those
    that are exact linear functions of other dimensions. If all are such functions, the units are known of these, and of
    pairs of columns whose weighted sum is exactly a dimension of the goal: the position of a tool, and the gap between tool
    and object. If these functions are the same for all dimensions, as where positions are divided by the size of a room,
    other columns whose values may be positions of the goal then are taken to have the same units. If only their factors
    are, the columns may show positions from another origin, see `goal_frame`. Dimensions in which all achieved and desired
    goals are the same do not matter.
    """
    same, copies = Units.same(steps.n_columns), find_goal_copies(steps, 0.0).columns
    if None not in copies:
        return same
    units = replace(Units.same(steps.n_columns), is_known=np.zeros(steps.n_columns, bool))
    seen = np.concatenate([steps.observation, steps.next_observation])
    live = np.flatnonzero(np.ptp(seen, axis=0) > 0)
    achieved = np.concatenate([steps.achieved_goal, steps.next_achieved_goal])
    shown, scales = list[int](), list[tuple[float, float]]()
    differ = np.ptp(np.concatenate([achieved, steps.desired_goal]), axis=0) > 0
    for k in np.flatnonzero(differ).tolist():  # the others have no units of their own
        values, copy = achieved[:, k], copies[k]
        is_varied = len(np.unique(values)) >= FEWEST
        linear = _linear_columns(values, seen, live) if is_varied else {}
        if copy is None and not linear:
            if is_varied or (found := _beside(k, values, seen, shown, scales)) is None:
                return same
            linear = {found[0]: found}
        column, factor, offset = next(iter(linear.values())) if copy is None else (copy, 1.0, 0.0)
        units.set(column, factor, offset)
        shown.append(column)
        scales.append((factor, offset))
        for pair, weights in _linear_pairs(values, seen, np.setdiff1d(live, list(linear))) if is_varied else ():
            _set_pair(units, steps, k, pair, weights)
    if sum(copy is not None for copy in copies) > 1:  # they equal a position, and others are shown in other units
        units.is_known[live] = True
        return units
    factors, offsets = np.reshape(scales, (-1, 2)).T
    rounding = FLOAT32_ROUNDING * np.abs(achieved).max()
    if len(scales) < 2 or not np.allclose(factors, factors[0], atol=0):
        return units
    units.factor[shown] = factors[0]  # the others differ from it by rounding alone
    if not np.allclose(offsets, offsets[0], atol=rounding):
        origin = np.zeros(steps.goal_size)
        origin[differ] = offsets
        return replace(units, origin=tuple(origin.tolist()))
    in_units = factors[0] * seen[:, live] + offsets[0]
    may_be_positions = (in_units.min(0) <= achieved.max()) & (in_units.max(0) >= achieved.min())
    for column in live[may_be_positions].tolist():
        units.set(column, *scales[0])
    return units


def _beside(
    k: int, values: Array, seen: Array, shown: Sequence[int], scales: Sequence[tuple[float, float]]
) -> tuple[int, float, float] | None:
    """Return the column after those that show the dimensions before k, with its factor and offset; None if it is not that.

    All objects may lie on one table, so that no regression shows the units of their height. If the columns of the
    dimensions before it are neighbours, and have one factor, the next one has it, too. values: of the dimension, (N,).
    """
    factors = [factor for factor, _ in scales]
    if not k or len(shown) < k or np.ptp(np.array(shown) - np.arange(k)) or not np.allclose(factors, factors[0], atol=0):
        return None
    column = shown[-1] + 1
    if column >= seen.shape[1]:
        return None
    positions = factors[0] * seen[:, column]
    offset = float(np.mean(values - positions))
    precision = FLOAT32_ROUNDING * float(np.abs(values).max() + np.abs(positions).max())
    is_shown = np.abs(values - positions - offset).max() <= precision
    return (column, factors[0], offset * (abs(offset) > precision)) if is_shown else None


def _linear_columns(values: Array, seen: Array, live: Array) -> dict[int, tuple[int, float, float]]:
    """Return the columns of which `values` is an exact linear function: column -> (column, factor, offset)."""
    fraction = np.square(with_unit_norm(seen[:, live]).T @ with_unit_norm(values))
    fits = {c: _exact_fit(values, seen[:, [c]]) for c in live[fraction >= 1 - HARDLY].tolist()}
    return {c: (c, float(fit[0]), float(fit[1])) for c, fit in fits.items() if fit is not None}


def _linear_pairs(values: Array, seen: Array, live: Array) -> list[tuple[Array, Array]]:
    """Return the pairs of columns of which `values` is an exact linear function, with the two factors and the offset."""
    unit = with_unit_norm(seen[:, live])
    one, both = unit.T @ with_unit_norm(values), unit.T @ unit
    fraction = np.square(one)[:, None] + np.square(one) - 2 * one[:, None] * one * both  # R2, times its denominator
    pairs = np.argwhere(np.triu(fraction >= (1 - HARDLY) * np.maximum(1 - np.square(both), ROUNDED), 1))
    fits = [(live[pair], _exact_fit(values, seen[:, live[pair]])) for pair in pairs]
    return [(pair, fit) for pair, fit in fits if fit is not None]


def _exact_fit(values: Array, columns: Array) -> Array | None:
    """Return factors and offset (k + 1,) with which columns (N, k) give `values`; None if they do not in every step."""
    design = np.column_stack([columns, np.ones(len(columns))])
    weights = np.linalg.lstsq(design, values, rcond=None)[0]
    residual = values - design @ weights
    precision = FLOAT32_ROUNDING * (np.abs(values).max() + np.abs(design * weights).max(0).sum())
    weights[-1] *= abs(weights[-1]) > precision
    is_exact = np.abs(residual).max() <= precision
    return weights if is_exact and residual.var() <= HARDLY * values.var() else None


def _set_pair(units: Units, steps: Steps, k: int, pair: Array, weights: Array) -> None:
    """Note the units of a position and a gap. The gap starts with the object; the position does not, and has the offset."""
    starts = steps.observation[steps.starts_episode][:, pair]
    alike = np.abs(with_unit_norm(starts).T @ with_unit_norm(steps.achieved_goal[steps.starts_episode, k]))
    for i, column in enumerate(pair.tolist()):
        units.set(column, float(weights[i]), float(weights[2]) if i == alike.argmin() else 0.0)
