"""Which columns change places if two objects do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .axes import correlations, object_signals
from .steps import Steps

SAME_PROFILE = 0.35  # root mean square difference of correlations between columns that are exchanged


def pair_columns(
    steps: Steps, columns: Sequence[int], tool: Sequence[int], one: int, other: int
) -> list[tuple[int, int]] | None:
    """Return pairs of columns: what the first is to one object, the second is to the other. A column may be its own pair.

    columns: those that are not places. tool: as in `object_signals`. one, other: the objects. None if a column has no pair.
    """
    signals = object_signals(steps, tool)
    values = steps.observation[:, list(columns)]
    first, second = (correlations(values, signals[k]).reshape(len(columns), -1) for k in (one, other))
    gap = np.sqrt(np.square(first[:, None] - second).mean(2))
    gap = np.maximum(gap, gap.T)  # what the first is to the other object, the second is to the one
    if not len(columns):
        return []
    pair = gap.argmin(1)
    is_paired = (pair[pair] == np.arange(len(columns))).all() and gap.min(1).max() <= SAME_PROFILE
    return [(column, columns[at]) for column, at in zip(columns, pair.tolist(), strict=True)] if is_paired else None
