"""In which units columns show the position of a tool, as its contacts with objects show."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from ..records import Array
from .columns import Units
from .contact import find_onsets, is_moving
from .controlled import ControlledColumns
from .parts import POSITION_SIZES, Parts
from .steps import ALIKE, ERROR_RATE, FEWEST, HARDLY, LITTLE, MOSTLY, ROUNDED, TINY, Steps, correlations
from .tool import positions_among


def find_tool_units(steps: Steps, parts: Parts, controlled: ControlledColumns, units: Units) -> Units | None:
    """Return units in which columns that actions move are the position of a tool; None if contacts do not show them.

    When an object begins to move, the tool is beside it. If the columns of the tool have other units than the goal, they
    then are linear functions of the position of the object and of the direction in which it moves: a tool is behind what it
    pushes. Of each dimension of the position it is the column with the highest correlation, if that is significant and
    both explain nearly all of the column: the angle of a joint is no such function.

    Objects may all lie at one height. There it is the column that then varies least, and the factor is that of the others.

    steps: in `units`. They may include episodes that sought contact.
    """
    size = max(map(len, parts.objects))
    of_objects = Steps.join(steps.of_objects([dimensions for dimensions in parts.objects if len(dimensions) == size]))
    onsets, columns = find_onsets(of_objects), positions_among(steps, controlled.columns)
    columns = [column for column in columns if column < units.n_columns and not _is_carried(of_objects, column)]
    if len(onsets) < FEWEST or not columns:
        return None
    tool, place = of_objects.next_observation[onsets][:, columns], of_objects.next_achieved_goal[onsets]
    found = _clearly_alike(tool, place)
    moved = of_objects.displacement[onsets]
    direction = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    fits = {k: _fit(tool[:, at], place[:, k], direction[:, k]) for k, at in found.items()}
    terms = {k: (factor, offset) for k, (factor, offset, explained) in fits.items() if explained > ALIKE}
    found = {k: found[k] for k in terms}
    if found:
        usual = float(np.median([abs(factor) for factor, _ in terms.values()]))
        spread = tool.std(0) / np.maximum(of_objects.observation[:, columns].std(0), TINY)
        for k in np.flatnonzero(place.std(0) < LITTLE * of_objects.goal_std).tolist():
            at = int(np.where(np.isin(range(len(columns)), list(found.values())), np.inf, spread).argmin())
            if k not in found and spread[at] < MOSTLY:
                factor = usual * _sign(of_objects, k, columns[at])
                found[k], terms[k] = at, (factor, float(place[:, k].mean() - factor * tool[:, at].mean()))
    if len(found) < min(POSITION_SIZES) or len(set(found.values())) < len(found):
        return None
    factor, offset = np.transpose(list(terms.values()))
    return units.with_tool([columns[at] for at in found.values()], factor, offset)


def _is_carried(steps: Steps, column: int) -> bool:
    """Return whether a column is a linear function of a dimension of the object, as that of a handle on a door is."""
    alike = np.abs(correlations(steps.observation[:, [column]], steps.achieved_goal.T))
    return bool(alike.max() > 1 - HARDLY**2)


def _clearly_alike(tool: Array, place: Array) -> dict[int, int]:
    """Return for dimensions of `place` (N, k) which column of `tool` (N, m) is clearly a linear function of each."""
    alike = np.abs(correlations(tool, place.T))  # (m, k)
    statistic = alike * np.sqrt((len(tool) - 2) / np.maximum(1 - np.square(alike), ROUNDED))  # Student's
    is_clear = statistic > NormalDist().inv_cdf(1 - ERROR_RATE / 2 / alike.size)
    shown = np.where(is_clear & (np.square(alike) > MOSTLY), alike, 0.0)
    return {int(k): int(shown[:, k].argmax()) for k in np.flatnonzero(shown.any(0))}


def _fit(tool: Array, place: Array, direction: Array) -> tuple[float, float, float]:
    """Return factor and offset of a column of the tool, (N,), with which it is a position, in the units of `place`.

    The third number says how much of the column is explained. It is the tool that is explained by the position of the
    object, as the distance is no error of this position.
    """
    design = np.column_stack([place, direction, np.ones(len(place))])
    weights = np.linalg.lstsq(design, tool, rcond=None)[0]
    slope, _, constant = weights
    return float(1 / slope), float(-constant / slope), float(1 - (tool - design @ weights).var() / tool.var())


def _sign(steps: Steps, dimension: int, column: int) -> float:
    """Return -1 if an object moves down along a dimension of the goal where a column moves up, and 1 otherwise."""
    rows = is_moving(steps)
    return -1.0 if steps.displacement[rows, dimension] @ steps.change[rows, column] < 0 else 1.0
