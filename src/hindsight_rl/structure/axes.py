"""Assign each visible column and each action to an axis of the goal: a mirror of that axis changes its sign.

Also: which columns belong together if two objects or two axes are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .steps import Steps

ASSOCIATED = 0.3  # correlation with signals of an axis from which on a column belongs to it
OFF_CENTRE = 0.5  # a column whose mean is so many standard deviations from 0 changes no sign under a mirror
MOVES_TOOL = 0.2  # of the largest effect of an action on the tool
BY_ACTION = 0.2  # smallest correlation with an action without an axis at which a column has no axis either
OTHER_AXIS = 0.6  # largest correlation with another axis, as a fraction of that with its own axis
SAME_PROFILE = 0.35  # root mean square difference of correlations between columns that are exchanged


@dataclass(frozen=True)
class AxisTable:
    """of[i]: the axis of the goal that column (or action) i belongs to, SCALAR for none, UNCLEAR_AXIS if that is not clear.

    profile[i]: its correlations with the signals of its axis, (signals,), which distinguish columns of one axis.
    """

    of: tuple[int, ...]
    profile: Array

    def members(self, axis: int) -> list[int]:
        """Return what belongs to an axis."""
        return [i for i, found in enumerate(self.of) if found == axis]


SCALAR, UNCLEAR_AXIS = -1, -2


def axis_signals(steps: Steps, tool: Sequence[int]) -> Array:
    """Return what belongs to each axis for certain, (axes, signals, N): the signals of all objects."""
    return np.concatenate(list(object_signals(steps, tool)), axis=1)


def object_signals(steps: Steps, tool: Sequence[int]) -> Array:
    """Return the gap between tool and object and the displacements of both, (objects, axes, signals, N).

    tool: for each dimension of the goal the column that the action moves along its axis, the same for all objects.
    """
    position, object_position = steps.observation[:, list(tool)], steps.achieved_goal
    displacements = steps.change[:, list(tool)], steps.displacement
    signals = [object_position - position, *displacements, *map(steps.of_step_before, displacements)]
    by_dimension = np.stack(signals).transpose(2, 0, 1)
    return by_dimension.reshape(-1, len(set(tool)), *by_dimension.shape[1:])


def find_action_axes(effect: Array) -> AxisTable:
    """Assign each entry of the action to the axis along which it moves the tool most; SCALAR if it hardly moves it.

    effect: (action size, axes), change of the tool's position per unit of action.
    """
    size = np.abs(effect)
    axes = tuple(SCALAR if row.max() < MOVES_TOOL * size.max() else int(row.argmax()) for row in size)
    return AxisTable(axes, np.take_along_axis(effect, size.argmax(1)[:, None], 1) / size.max())


def find_column_axes(steps: Steps, columns: Sequence[int], signals: Array, actions: AxisTable) -> AxisTable:
    """Assign each column to the axis with whose signals or actions it correlates.

    A column that correlates with no axis is SCALAR if its values lie on one side of 0, or if an action without an axis
    moves it. Otherwise, or if it correlates with several axes, it is UNCLEAR_AXIS.
    """
    values = steps.observation[:, list(columns)]
    is_scalar = np.abs(values.mean(0)) >= OFF_CENTRE * values.std(0)
    at = actions.members(SCALAR)
    if at and len(columns):
        both = np.concatenate([steps.action[:, at], steps.of_step_before(steps.action)[:, at]], 1)
        is_scalar |= np.abs(correlations(values, both.T[None])).max((1, 2)) >= BY_ACTION
    return _assign(values, signals, is_scalar)


def _assign(values: Array, signals: Array, is_scalar: Array) -> AxisTable:
    """values: (N, m). signals: (axes, signals, N). is_scalar: (m,), what a column is if it correlates with no axis."""
    correlation = correlations(values, signals)  # (m, axes, signals)
    strength = np.abs(correlation).max(2)
    axes, profiles = [], []
    for row, by_axis, without_axis in zip(strength, correlation, is_scalar, strict=True):
        best = int(row.argmax())
        others = np.delete(row, best).max(initial=0.0)
        if row[best] < ASSOCIATED:
            axes.append(SCALAR if without_axis else UNCLEAR_AXIS)
        else:
            axes.append(best if others <= OTHER_AXIS * row[best] else UNCLEAR_AXIS)
        profiles.append(by_axis[best])
    return AxisTable(tuple(axes), np.array(profiles))


def correlations(values: Array, signals: Array) -> Array:
    """Return the correlations of columns (N, m) with signals (axes, signals, N), (m, axes, signals)."""

    def unit(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-12))

    return np.asarray(np.einsum("mn,asn->mas", unit(values.T), unit(signals)))


def pair_columns(
    steps: Steps, columns: Sequence[int], tool: Sequence[int], one: int, other: int
) -> list[tuple[int, int]] | None:
    """Return pairs of columns: the first describes one object as the second describes the other. Both may be the same.

    columns: those that are no positions. tool: as in `object_signals`. one, other: the objects. None if one has no pair.
    """
    if not columns:
        return []
    signals = object_signals(steps, tool)
    values = steps.observation[:, list(columns)]
    first, second = (correlations(values, signals[k]).reshape(len(columns), -1) for k in (one, other))
    gap = np.sqrt(np.square(first[:, None] - second).mean(2))
    gap = np.maximum(gap, gap.T)  # what the first is to the other object, the second is to the one
    pair = gap.argmin(1)
    is_paired = (pair[pair] == np.arange(len(columns))).all() and gap.min(1).max() <= SAME_PROFILE
    return [(column, columns[at]) for column, at in zip(columns, pair.tolist(), strict=True)] if is_paired else None


def pair_axes(table: AxisTable, axis: int, other: int) -> list[tuple[int, int, float]] | None:
    """Pair what belongs to one axis with what belongs to the other, by the likeness of their profiles.

    Returns (i, j, sign that makes their profiles alike); None if one is left over or too different from all others.
    """
    free, pairs = table.members(other), []
    if len(table.members(axis)) != len(free):
        return None
    for i in table.members(axis):
        gaps = [
            (float(np.sqrt(np.square(table.profile[i] - factor * table.profile[j]).mean())), at, factor)
            for at, j in enumerate(free)
            for factor in (1.0, -1.0)
        ]
        gap, at, factor = min(gaps)
        if gap > SAME_PROFILE:
            return None
        pairs.append((i, free.pop(at), factor))
    return pairs
