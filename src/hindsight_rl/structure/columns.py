"""What single observation columns are: copies of the goal, constants, differences, or moved by the action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .steps import CONTROLLED_R2, Steps, explained_variance

EXACT = 1e-6  # relative to the size of the numbers: float32 observations agree to about 1e-7
NOISY = 0.01  # of the variance of the goal: a column whose error is smaller shows it with noise of its own


@dataclass(frozen=True)
class GoalCopies:
    """columns[k]: the observation column that equals achieved_goal[k] in every step, or None.

    noise: largest standard deviation of their differences; 0 if they are exact.
    """

    columns: tuple[int | None, ...]
    n_steps: int
    noise: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether every number of the achieved goal has a copy."""
        return None not in self.columns

    @property
    def complete(self) -> tuple[int, ...]:
        """The columns, which must have no gap."""
        return tuple(column for column in self.columns if column is not None)

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        found = {k: column for k, column in enumerate(self.columns) if column is not None}
        if not found:
            return f"no column equals a number of achieved_goal in {self.n_steps:,} steps"
        pairs = ", ".join(f"column {column} = achieved_goal[{k}]" for k, column in found.items())
        noise = f", up to noise of {self.noise:.2g}" if self.noise else ""
        return f"{pairs} in {self.n_steps:,} of {self.n_steps:,} steps{noise}"


@dataclass(frozen=True)
class ControlledColumns:
    """Columns whose change the action explains.

    columns: ascending. r2: held-out R2 of each. effect: (action size, columns), change of each column per unit of action.
    """

    columns: tuple[int, ...]
    r2: tuple[float, ...]
    effect: Array

    def effect_on(self, columns: Sequence[int]) -> Array:
        """Return the effect on some of the columns, (action size, len(columns))."""
        return self.effect[:, [self.columns.index(column) for column in columns]]

    def evidence(self) -> str:
        """Return the evidence in one sentence."""
        if not self.columns:
            return "the action explains the change of no column"
        return f"columns {_listed(self.columns)} follow the action (held-out R2 {min(self.r2):.2f} to {max(self.r2):.2f})"


@dataclass(frozen=True)
class Difference:
    """column = left - right in every step."""

    column: int
    left: int
    right: int


def find_goal_copies(steps: Steps, largest_noise: float = NOISY) -> GoalCopies:
    """Find the columns that equal a number of the achieved goal before and after every step, or differ by little noise.

    largest_noise: fraction of the variance of a number of the goal; 0 for exact copies only.

    A column that never varies is a copy only if some other number of the goal has a copy that varies: two constants may be
    equal by accident.
    """
    seen = np.concatenate([steps.observation, steps.next_observation])
    achieved = np.concatenate([steps.achieved_goal, steps.next_achieved_goal])
    columns: list[int | None] = []
    rounding, noise = EXACT * float(np.abs(achieved).max()), 0.0
    for values in achieved.T:
        gap = seen - values[:, None]
        error = np.square(gap).mean(0)
        equal, nearest = np.flatnonzero(np.abs(gap).max(0) <= rounding), int(error.argmin())
        if len(equal):
            columns.append(int(equal[0]))
        elif error[nearest] < largest_noise * values.var():
            columns.append(nearest)
            noise = max(noise, float(np.sqrt(error[nearest])))
        else:
            columns.append(None)
    varies = [column is not None and np.ptp(values) > 0 for column, values in zip(columns, achieved.T, strict=True)]
    return GoalCopies(tuple(columns) if any(varies) else (None,) * len(columns), len(steps), noise)


def find_constant_columns(steps: Steps) -> tuple[int, ...]:
    """Return the columns that have one value in all steps."""
    seen = np.concatenate([steps.observation, steps.next_observation])
    return tuple(np.flatnonzero(np.ptp(seen, axis=0) == 0).tolist())


def find_controlled_columns(steps: Steps) -> ControlledColumns:
    """Find the columns that the action moves, by linear regression of each column's change on this and the last action."""
    r2 = explained_variance(np.column_stack([steps.action, steps.previous_action]), steps.change, steps.is_held_out)
    columns = np.flatnonzero(r2 >= CONTROLLED_R2)
    design = np.column_stack([steps.action, np.ones(len(steps))])
    effect = np.linalg.lstsq(design, steps.change[:, columns], rcond=None)[0][:-1]
    return ControlledColumns(tuple(columns.tolist()), tuple(r2[columns].tolist()), effect)


def find_differences(steps: Steps) -> tuple[Difference, ...]:
    """Find the columns that are exactly one column minus another, one pair for each such column."""
    seen = np.concatenate([steps.observation, steps.next_observation])
    live = np.flatnonzero(np.ptp(seen, axis=0) > 0).tolist()
    sample = seen[:: max(1, len(seen) // 64)]  # most pairs fail on a few rows already
    size = np.abs(seen).max(0)
    rounding = 4 * EXACT * np.maximum(size[live, None], size[live])  # of the difference of each pair
    found: dict[frozenset[int], Difference] = {}  # "c = a - b" and "b = a - c" say the same: one of each triple is kept
    for column in live:
        gap = np.abs(sample[:, live, None] - sample[:, None, live] - sample[:, column, None, None]).max(0)
        for i, j in np.argwhere(gap <= rounding):
            left, right = live[i], live[j]
            exact = np.abs(seen[:, left] - seen[:, right] - seen[:, column]).max() <= rounding[i, j]
            if exact and len({column, left, right}) == 3:
                found.setdefault(frozenset((column, left, right)), Difference(column, left, right))
                break
    return tuple(found.values())


def _listed(columns: tuple[int, ...]) -> str:
    return ", ".join(map(str, columns))
