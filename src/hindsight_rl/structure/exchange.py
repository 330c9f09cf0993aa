"""Which columns change places if two objects or two axes do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .axes import AxisTable, correlations, object_signals
from .steps import Steps

SAME_PROFILE = 0.35  # root mean square difference of correlations between columns that are exchanged


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
