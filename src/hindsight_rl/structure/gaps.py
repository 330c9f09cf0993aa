"""Which columns are the gap between a tool, whose position no column shows, and an object."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..records import Array
from .columns import Gap, GoalCopies
from .contact import find_onsets, is_moving
from .controlled import ControlledColumns
from .parts import Parts
from .steps import ALIKE, ERROR_RATE, HARDLY, LITTLE, MOSTLY, TINY, Steps, regress, standardize
from .tool import CLEARLY, positions_among


def find_gaps(steps: Steps, parts: Parts, copies: GoalCopies, controlled: ControlledColumns) -> tuple[Gap, ...]:
    """Return for each dimension of the objects the column that is the gap to a tool along it, if there is one.

    Actions move a gap, and when the object begins to move, its displacement explains most of what is left. Until that is
    certain, a gap shows at the start of episodes where the object is: the tool starts somewhere else. Such a gap serves
    guesses of the tool alone. Where a column hardly differs from the position of the tool, but for a constant, the gap to
    it is left out, and so is a gap that would leave the tool beside the object all the time, or far outside the task.
    """
    dimensions = sorted(k for each in parts.objects for k in each)
    columns = [c for c in positions_among(steps, controlled.columns) if c not in copies.columns]
    if not (parts.has_positions and copies.is_complete and columns):
        return ()
    (one,) = steps.of_objects([dimensions])
    factor, alike = _by_displacement(one, columns, controlled)
    is_certain = bool((alike > MOSTLY).any())
    if not is_certain:
        factor, alike = _by_starts(one, columns)
    found, moved = [], steps.observation[:, list(controlled.columns)]
    for i, k in enumerate(dimensions):
        best = int(alike[:, i].argmax())
        if alike[best, i] <= MOSTLY or int(alike[best].argmax()) != i:  # an object moves along several axes at once
            continue
        size = float(factor[best, i])
        is_in_units = MOSTLY < abs(size) < 1 / MOSTLY  # chance alone makes it differ from 1
        gap = Gap(columns[best], copies.complete[k], float(np.sign(size)) if is_in_units else size, is_certain)
        tool, place = gap.tool(steps.observation), steps.observation[:, gap.of]
        is_at_task = LITTLE < (tool - place).std() / steps.goal_std < 1 / LITTLE
        if is_at_task and not ((tool[:, None] - moved).var(0) <= HARDLY * tool.var()).any():
            found.append(gap)
    return tuple(found)


def _by_displacement(steps: Steps, columns: Sequence[int], controlled: ControlledColumns) -> tuple[Array, Array]:
    """Return by how much each column changes per displacement along each dimension, and how much of its change that is.

    Both are (columns, dimensions): of the steps in which objects move, or of those in which they begin to, where that is
    more. It is 0 where it may be chance. What actions change while objects rest is left out, and what goes on from the step
    before: a tool that has met an object moves as the object does.
    """
    at, rests, onsets = list(columns), ~is_moving(steps), find_onsets(steps)
    n_free = len(onsets) - steps.goal_size
    if n_free < 1:
        nothing = np.zeros((len(at), steps.goal_size))
        return nothing, nothing
    products = controlled.posture.of(steps.observation)[:, :, None] * steps.action[:, None]
    inputs = np.column_stack([steps.action, steps.previous_action, products.reshape(len(steps), -1)])
    change = steps.change[:, at]
    before = steps.of_step_before(change)
    weights, kept = regress(inputs[rests], change[rests], before[rests])
    left = change - inputs @ weights[:-1] - weights[-1] - kept * before
    # of n independent rows, k displacements explain a larger part p of what is left with a probability of at most about
    # (1 - p)^((n - k) / 2); steps of one episode are not independent
    least, found = 1 - (ERROR_RATE / len(at)) ** (2 / n_free), []
    for rows in (onsets, np.flatnonzero(~rests)):
        displacement, size = steps.displacement[rows], np.maximum(np.square(left[rows]).sum(0), TINY)
        factor, unexplained = _fit(displacement, left[rows])
        # displacements along two axes may be alike so far: without that along the axis of the gap, the rest is less likely
        without = np.array([_fit(np.delete(displacement, k, 1), left[rows])[1] for k in range(steps.goal_size)])
        is_needed = np.log(np.maximum(without, TINY) / np.maximum(unexplained, TINY)) * len(onsets) / 2 > CLEARLY
        part = np.square(factor) * np.square(displacement).sum(0)[:, None] / size
        found.append((factor.T, np.where(is_needed & (unexplained < (1 - least) * size), part, 0.0).T))
    (at_onset, alike_at_onset), (factor, alike) = found
    return np.where(alike_at_onset > alike, at_onset, factor), np.maximum(alike_at_onset, alike)


def _fit(inputs: Array, targets: Array) -> tuple[Array, Array]:
    """Return the factors (k, m) of inputs (N, k) that fit targets (N, m) best, and what is left of each, squared, (m,)."""
    factors = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    return factors, np.square(targets - inputs @ factors).sum(0)


def _by_starts(steps: Steps, columns: Sequence[int]) -> tuple[Array, Array]:
    """Return sign and size of the correlation of columns and dimensions at the start of episodes; 0 if it is not clear."""
    first = steps.starts_episode
    starts = standardize(np.column_stack([steps.observation[:, list(columns)], steps.achieved_goal])[first])
    correlation = starts[:, : len(columns)].T @ starts[:, len(columns) :] / first.sum()
    return np.sign(correlation), np.where(np.abs(correlation) > ALIKE, np.abs(correlation), 0.0)
