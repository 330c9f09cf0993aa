"""Which observation columns networks need to predict what happens: only these need be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..records import Array
from .contact import Contact
from .model import Difference, DisplacementModel, informative_steps, inputs_of
from .steps import LITTLE, Steps

COLUMN_MARGIN = 0.1  # of the held-out loss, for all hidden columns together: a column that matters adds as much alone
EXPLAINED = 0.3  # of the variance: networks that leave more unexplained may not know yet what a column is for


@dataclass(frozen=True)
class Relevance:
    """How much the held-out loss grows without each column that may be hidden.

    without: each column, in networks that expect it.
    needless: columns without which, one by one, it grows by less than LITTLE for certain.
    together: how much it grows in networks that see none of them; less than COLUMN_MARGIN for certain.
    """

    without: dict[int, Difference]
    needless: tuple[int, ...]
    together: Difference | None

    @property
    def uncertain(self) -> tuple[int, ...]:
        """Columns that do not clearly matter, but are not needless for certain."""
        return tuple(c for c, each in self.without.items() if c not in self.needless and not each.is_above(0.0, 1))

    def evidence(self, columns: Sequence[int]) -> str:
        """Return the evidence for some of the columns in one sentence."""
        tested = [column for column in columns if column in self.without]
        each = [f"{self.without[c]} without column {c}" for c in tested]
        together = [f"{self.together} without them all"] if self.together and set(tested) == set(self.needless) else []
        return f"the held-out error of the next displacements changes by {', '.join([*each, *together])}"


def displacements(steps: Steps, contact: Contact) -> Array:
    """Return how the goal and the tool are displaced in each step, (N, goal size + axes)."""
    return np.column_stack([steps.displacement, steps.change[:, list(contact.axes)]])


@dataclass(frozen=True)
class NeededColumns:
    """Columns that were hidden, and without which networks predict worse.

    loss: by how much the held-out loss grows without them, which is clearly more than the margin.
    """

    columns: tuple[int, ...]
    loss: Difference
    margin: float


class ColumnTest:
    """Tests which observation columns networks need to predict what happens. columns: all that may be seen."""

    def __init__(self, steps: Steps, contact: Contact, columns: Sequence[int]) -> None:
        self._steps, self._contact, self._columns = steps, contact, list(columns)
        self._fitted: dict[tuple[int, ...], DisplacementModel] = {}  # by the columns that they do not see

    @cached_property
    def _model(self) -> DisplacementModel:
        steps, contact, picked = self._steps, self._contact, informative_steps(self._steps)
        seen, action = steps.observation[picked], steps.action[picked]
        inputs = inputs_of(seen, action, self._columns, contact.tool, contact.object_columns)
        return DisplacementModel(inputs, displacements(steps, contact)[picked], steps.episode[picked])

    def without(self, columns: Sequence[int], hidden: Sequence[int] = ()) -> Difference:
        """Return how the held-out loss differs in networks that never see some columns. The gaps to the tool are seen.

        hidden: columns that networks do not see with these columns either.
        """
        return self._fitted_without(hidden).difference_to(self._fitted_without([*columns, *hidden]))

    @property
    def knows_something(self) -> bool:
        """Whether networks that see all columns explain more than a little of what happens."""
        return self._model.unexplained <= 1 - LITTLE

    def _fitted_without(self, columns: Sequence[int]) -> DisplacementModel:
        key = tuple(sorted(columns))
        if key not in self._fitted:
            self._fitted[key] = self._model.fitted_without(self._at(key)) if key else self._model
        return self._fitted[key]

    def relevance(self, candidates: Sequence[int]) -> Relevance:
        """Find the columns without which networks predict what happens as well. candidates: columns that may be hidden.

        First each column gets the values of other steps. The error then grows if the column matters, or if another column
        says the same. Columns with little growth are candidates. Of these, as many as possible are left out together, while
        networks that never see them predict as well. None are left out if the networks explain too little of what happens.
        The first limit is wider than the second: networks that rely on a column need not need it, and the second test
        decides.
        """
        if not candidates:
            return Relevance({}, (), None)
        without = {column: self._model.without(self._at([column])) for column in candidates}
        is_clear = self._model.unexplained <= EXPLAINED
        needless = [c for c, each in without.items() if is_clear and each.is_below(LITTLE, 1)]
        order = sorted(needless, key=lambda column: without[column].mean)
        together: dict[int, Difference] = {}  # by how many of the columns are left out
        fewest, most = 0, len(order)
        while fewest < most:
            n = (fewest + most + 1) // 2 if together else most  # often all of them can be left out, and one fit shows it
            together[n] = self.without(order[:n])
            fewest, most = (n, most) if together[n].is_below(COLUMN_MARGIN, 1) else (fewest, n - 1)
        return Relevance(without, tuple(sorted(order[:fewest])), together.get(fewest))

    def needed(self, groups: Iterable[tuple[Sequence[int], float]]) -> tuple[NeededColumns, ...]:
        """Return those groups of columns without which networks clearly predict worse. groups: with the margin of each."""
        tested = [NeededColumns(tuple(columns), self.without(columns), margin) for columns, margin in groups if columns]
        return tuple(each for each in tested if each.loss.is_above(each.margin, 1))

    def _at(self, columns: Sequence[int]) -> list[int]:
        return [self._columns.index(column) for column in columns]
