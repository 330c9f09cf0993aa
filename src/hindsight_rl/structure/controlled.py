"""Which observation columns actions move, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..records import Array
from ..task_structure.affine import Posture
from .steps import ERROR_RATE, HARDLY, HELD_OUT, LITTLE, MOSTLY, ROUNDED, Steps, correlations, explained_variance, regress


@dataclass(frozen=True, eq=False)
class ControlledColumns:
    """Columns that the action moves.

    columns: ascending. r2: of the change of each that the action explains, cross-validated.
    effect: (action size, columns), change of each column per unit of action.
    drift: (2, columns), change with an action in the middle of its range: a factor of the column's value, as where an
        action is a target position, and a constant.
    posture: numbers on which the effect depends, in deviations from their mean; none if it is the same everywhere.
    by_posture: (posture size, action size, columns), what each deviation adds to the effect.
    """

    columns: tuple[int, ...]
    r2: tuple[float, ...]
    effect: Array
    drift: Array
    posture: Posture
    by_posture: Array

    @property
    def clear(self) -> tuple[int, ...]:
        """The columns whose change the action clearly explains."""
        return tuple(column for column, r2 in zip(self.columns, self.r2, strict=True) if r2 >= LITTLE)

    def at(self, columns: Sequence[int]) -> list[int]:
        """Return where some of the columns stand in the arrays."""
        return [self.columns.index(column) for column in columns]


def find_controlled_columns(steps: Steps) -> ControlledColumns:
    """Find the columns that the action moves.

    The effect of an action may depend on other columns, as on the joints of an arm or the heading of a car. That counts if
    products of actions and columns explain more of how columns move: less than half as much is left unexplained. At least
    as many steps as products must be held out: more products fit anything.
    """
    linear = _explain_by_actions(steps, most_products=0)
    in_postures = _explain_by_actions(steps, most_products=len(steps) // HELD_OUT)
    both = np.array(sorted({*linear.columns, *in_postures.columns}), np.int64)
    left = [1 - np.clip(explained.r2[both], 0, 1).mean() if len(both) else 0.0 for explained in (linear, in_postures)]
    chosen = in_postures if left[1] + HARDLY < MOSTLY * left[0] else linear
    return chosen.measure_effect(steps)


@dataclass(frozen=True, eq=False)
class _Explanation:
    """How much of the change of each column actions explain.

    columns: those that count as moved by them. r2: of all columns. posture, products: see `ControlledColumns.posture`; the
    products of these columns and actions in each step.
    """

    columns: tuple[int, ...]
    r2: Array
    posture: Posture
    products: Array

    def measure_effect(self, steps: Steps) -> ControlledColumns:
        """Return what an action changes in each of the columns."""
        at = list(self.columns)
        inputs, targets = np.column_stack([steps.action, self.products]), steps.change[:, at]
        weights, own = regress(inputs, targets, steps.observation[:, at])
        n_actions = steps.action.shape[1]
        effects = weights[:-1].reshape(inputs.shape[1] // n_actions, n_actions, len(at))
        drift = np.stack([own, weights[-1]])
        return ControlledColumns(self.columns, tuple(self.r2[at].tolist()), effects[0], drift, self.posture, effects[1:])


def _explain_by_actions(steps: Steps, most_products: int) -> _Explanation:
    """Explain how columns change by actions and by products of actions and columns, if these are not too many.

    First the part of a column's change that its change in the step before predicts is left out: a driven body keeps its
    speed, and a pushed object moves on. A column counts if linear regression on this action and the one before explains at
    least LITTLE of the rest, cross-validated. It also counts if the rest correlates with one of them, on average over
    episodes by at least LITTLE, and significantly: a table may stop a hand in most steps.
    """
    posture, deviations = _posture(steps, most_products)
    products = (deviations[:, :, None] * steps.action[:, None]).reshape(len(steps), -1)
    actions = np.column_stack([steps.action, steps.previous_action])
    change = steps.change - steps.change.mean(0)
    before = steps.of_step_before(change)
    nothing = np.zeros((len(steps), 0))
    alone, (_, kept) = explained_variance(nothing, change, steps.episode, before), regress(nothing, change, before)
    r2 = explained_variance(np.column_stack([actions, products]), change, steps.episode, before)
    r2 = (r2 - alone) / np.maximum(1 - alone, ROUNDED)
    is_significant = _correlate_significantly(change - kept * before, actions, steps.episode)
    columns = np.flatnonzero((r2 >= LITTLE) | is_significant).tolist()
    return _Explanation(tuple(columns), r2, posture, products)


def _posture(steps: Steps, most: int) -> tuple[Posture, Array]:
    """Return the columns that vary as deviations from their mean, in standard deviations, and these of each step.

    Those of cosine and sine follow where a column is an angle. Nothing if there were more than `most` products of all of
    them and actions.
    """
    columns, angles = np.flatnonzero(np.ptp(steps.observation, axis=0) > 0), steps.angles
    if (len(columns) + 2 * len(angles)) * steps.action.shape[1] > most:
        columns = angles = columns[:0]
    seen, radians = steps.observation[:, columns], 2 * np.pi / np.ptp(steps.observation[:, angles], axis=0)
    mean, std, angle = seen.mean(0), seen.std(0), steps.observation[:, angles] * radians
    turned = np.concatenate([np.cos(angle), np.sin(angle)], 1)
    numbers = columns, 1 / std, -mean / std, angles, radians, turned.mean(0)
    of_columns, factor, offset, *of_angles = (tuple(each.tolist()) for each in numbers)
    posture = Posture(of_columns, factor, offset, (), (), *of_angles)
    return posture, np.concatenate([(seen - mean) / std, turned - turned.mean(0)], 1)


def _correlate_significantly(values: Array, signals: Array, episode: Array) -> Array:
    """Return which columns (N, m) correlate with a signal (N, s) by more than a little, and not by chance, (m,) bool.

    The standard error is that over episodes, or that of as many independent steps if that is larger: a few episodes may
    agree by chance.
    """
    each = np.stack([correlations(values[episode == k], signals[episode == k].T) for k in np.unique(episode)])
    mean, error = each.mean(0), each.std(0, ddof=1) / np.sqrt(len(each))
    error = np.maximum(error, 1 / np.sqrt(max(len(values) - len(each), 1)))
    largest_error = NormalDist().inv_cdf(1 - ERROR_RATE / 2 / each[0].size) * error
    return np.asarray(((np.abs(mean) >= LITTLE) & (np.abs(mean) > largest_error)).any(1))
