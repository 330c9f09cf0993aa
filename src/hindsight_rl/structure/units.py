"""In which units, and with which signs, the observation shows places: exact linear relations to the achieved goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..records import Array
from ..task_structure.affine import AffineColumns, affine_text
from .columns import EXACT, find_goal_copies
from .steps import Steps

LINEAR = 0.999  # R2 from which on a linear relation is tested for exactness
MIN_VALUES = 5  # different values that a number of the goal must have: few values agree with a line by accident


@dataclass(frozen=True, eq=False)
class Units:
    """factor * column + offset is a column in the units of the goal, if `is_known`. All arrays are (columns,)."""

    factor: Array
    offset: Array
    is_known: Array

    @classmethod
    def same(cls, size: int) -> Units:
        """Return the units of an observation whose columns all have the units of the goal."""
        return cls(np.ones(size), np.zeros(size), np.ones(size, bool))

    def set(self, column: int, factor: float, offset: float) -> None:
        """Note the units of a column, unless they are known."""
        if not self.is_known[column]:
            self.factor[column], self.offset[column], self.is_known[column] = factor, offset, True

    def apply(self, steps: Steps) -> Steps:
        """Return steps with the observation in the units of the goal."""
        seen, then = (x * self.factor + self.offset for x in (steps.observation, steps.next_observation))
        return replace(steps, observation=seen, next_observation=then)

    def of(self, columns: Sequence[int]) -> AffineColumns:
        """Return columns with what brings them to the units of the goal."""
        at = list(columns)
        return AffineColumns(tuple(at), tuple(self.factor[at].tolist()), tuple(self.offset[at].tolist()))

    def evidence(self) -> str:
        """Return the evidence in one sentence; nothing if all columns have the units of the goal."""
        if self.is_known.all():
            return ""
        at = np.flatnonzero(self.is_known).tolist()
        listed = ", ".join(affine_text("o", c, float(self.factor[c].round(4)), float(self.offset[c].round(4))) for c in at)
        return f"; {listed} have the units of the goal, by exact linear relations"


def find_units(steps: Steps) -> Units:
    """Find the units of columns.

    If columns equal the achieved goal, all columns are taken to have its units. If columns are exact linear functions of it
    instead, the units are known of these, and of pairs of columns whose weighted sum is exactly a number of the goal: the
    place of a tool, and the gap between tool and object.
    """
    same, copies = Units.same(steps.n_columns), find_goal_copies(steps, 0.0).columns
    if None not in copies:
        return same
    units = replace(same, is_known=np.zeros(steps.n_columns, bool))
    seen = np.concatenate([steps.observation, steps.next_observation])
    live = np.flatnonzero(np.ptp(seen, axis=0) > 0)
    achieved = np.concatenate([steps.achieved_goal, steps.next_achieved_goal])
    for k, copy in enumerate(copies):
        values = achieved[:, k]
        linear = {} if len(np.unique(values)) < MIN_VALUES else _linear_columns(values, seen, live)
        if copy is None and not linear:
            return same
        units.set(*(next(iter(linear.values())) if copy is None else (copy, 1.0, 0.0)))
        for pair, weights in _linear_pairs(values, seen, np.setdiff1d(live, list(linear))):
            _set_pair(units, steps, k, pair, weights)
    return units


def _linear_columns(values: Array, seen: Array, live: Array) -> dict[int, tuple[int, float, float]]:
    """Return the columns of which `values` is an exact linear function: column -> (column, factor, offset)."""
    fraction = np.square(_unit(seen[:, live]).T @ _unit(values))
    fits = {c: _exact_fit(values, seen[:, [c]]) for c in live[fraction >= LINEAR].tolist()}
    return {c: (c, float(fit[0]), float(fit[1])) for c, fit in fits.items() if fit is not None}


def _linear_pairs(values: Array, seen: Array, live: Array) -> list[tuple[Array, Array]]:
    """Return the pairs of columns of which `values` is an exact linear function, with the two factors and the offset."""
    unit = _unit(seen[:, live])
    one, both = unit.T @ _unit(values), unit.T @ unit
    fraction = np.square(one)[:, None] + np.square(one) - 2 * one[:, None] * one * both  # R2, times its denominator
    pairs = np.argwhere(np.triu(fraction >= LINEAR * np.maximum(1 - np.square(both), 1e-12), 1))
    fits = [(live[pair], _exact_fit(values, seen[:, live[pair]])) for pair in pairs]
    return [(pair, fit) for pair, fit in fits if fit is not None]


def _exact_fit(values: Array, columns: Array) -> Array | None:
    """Return factors and offset (k + 1,) with which columns (N, k) give `values`; None if they do not in every step."""
    design = np.column_stack([columns, np.ones(len(columns))])
    weights = np.linalg.lstsq(design, values, rcond=None)[0]
    residual = values - design @ weights
    precision = EXACT * (np.abs(values).max() + np.abs(design * weights).max(0).sum())
    weights[-1] *= abs(weights[-1]) > precision
    is_exact = np.abs(residual).max() <= precision
    return weights if is_exact and residual.var() <= (1 - LINEAR) * values.var() else None


def _set_pair(units: Units, steps: Steps, k: int, pair: Array, weights: Array) -> None:
    """Note the units of a place and a gap. The gap starts with the object; the place does not, and has the offset."""
    starts = steps.observation[steps.starts_episode][:, pair]
    alike = np.abs(_unit(starts).T @ _unit(steps.achieved_goal[steps.starts_episode, k]))
    for i, column in enumerate(pair.tolist()):
        units.set(column, float(weights[i]), float(weights[2]) if i == alike.argmin() else 0.0)


def _unit(values: Array) -> Array:
    """Return columns with mean 0 and norm 1; 0 where they do not vary."""
    centred = values - values.mean(0)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-12))
