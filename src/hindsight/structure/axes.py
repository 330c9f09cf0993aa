"""Assign each visible column and each action to an axis of the goal: a mirror of that axis changes its sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .steps import Steps

ASSOCIATED = 0.3  # correlation with signals of an axis from which on a column belongs to it
CLEARLY = 0.6  # the correlation with every other axis is at most this fraction of it


@dataclass(frozen=True)
class AxisTable:
    """of[i]: the axis of the goal that column (or action) i belongs to, SCALAR for none, UNKNOWN if that is not clear.

    profile[i]: its correlations with the signals of its axis, (signals,), which distinguish columns of one axis.
    """

    of: tuple[int, ...]
    profile: Array

    def members(self, axis: int) -> list[int]:
        """Return what belongs to an axis."""
        return [i for i, found in enumerate(self.of) if found == axis]


SCALAR, UNKNOWN = -1, -2


def axis_signals(steps: Steps, tool: Sequence[int]) -> Array:
    """Return what belongs to each axis for certain, (axes, signals, N): gap between tool and object, and how both move.

    tool: for each axis of the goal the column that the action moves along it.
    """
    place, object_place = steps.observation[:, list(tool)], steps.achieved_goal
    signals = [object_place - place, steps.change[:, list(tool)], steps.next_achieved_goal - object_place]
    return np.stack(signals).transpose(2, 0, 1)


def find_axes(values: Array, signals: Array) -> AxisTable:
    """Assign each column of `values` to the axis whose signals it correlates with.

    values: (N, m), columns of the observation or of the action. signals: (axes, signals, N).
    A column that correlates with no axis is SCALAR; one that correlates with several is UNKNOWN.
    """
    correlation = _correlation(values, signals)  # (m, axes, signals)
    strength = np.abs(correlation).max(2)
    axes, profiles = [], []
    for row, by_axis in zip(strength, correlation, strict=True):
        best = int(row.argmax())
        others = np.delete(row, best).max(initial=0.0)
        if row[best] < ASSOCIATED:
            axes.append(SCALAR)
        else:
            axes.append(best if others <= CLEARLY * row[best] else UNKNOWN)
        profiles.append(by_axis[best])
    return AxisTable(tuple(axes), np.array(profiles))


def _correlation(values: Array, signals: Array) -> Array:
    def unit(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-12))

    return np.asarray(np.einsum("mn,asn->mas", unit(values.T), unit(signals)))
