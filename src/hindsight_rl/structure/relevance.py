"""Which observation columns help to predict what happens. The others can be hidden from the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .contact import Contact
from .model import Difference, DisplacementModel, informative_steps
from .steps import Steps

COLUMN_MARGIN = 0.1  # of the held-out loss, for all hidden columns together: a column that matters adds as much alone
EXPLAINED = 0.3  # of the variance: networks that leave more unexplained may not know yet what a column is for


@dataclass(frozen=True)
class Relevance:
    """How much the held-out loss grows without each column that may be hidden.

    without: each column, in networks that expect it.
    needless: columns without which it grows by less than COLUMN_MARGIN for certain.
    together: how much it grows in networks that see none of them.
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


def inputs_of(observation: Array, action: Array, columns: Sequence[int], contact: Contact) -> Array:
    """Return what models see of steps: columns, the gap between tool and object, and the action, (N, inputs)."""
    gap = observation[:, list(contact.object_columns)] - observation[:, list(contact.tool)]
    return np.column_stack([observation[:, list(columns)], gap, action])


def displacements(steps: Steps, contact: Contact) -> Array:
    """Return how the goal and the tool are displaced in each step, (N, goal size + axes)."""
    return np.column_stack([steps.displacement, steps.change[:, list(contact.axes)]])


def find_relevance(steps: Steps, contact: Contact, columns: Sequence[int], candidates: Sequence[int]) -> Relevance:
    """Find the columns without which networks predict what happens as well.

    With the values of a column from other steps, what happens is predicted worse if it matters, or if it says the same as
    others. Of those that add little for certain as many are left out together as make no difference for networks that
    never see them; none if the networks explain too little of what happens.
    columns: all that may be seen. candidates: those of them that may be hidden.
    """
    picked = informative_steps(steps)
    inputs = inputs_of(steps.observation[picked], steps.action[picked], columns, contact)
    model = DisplacementModel(inputs, displacements(steps, contact)[picked], steps.episode[picked])
    at = {column: position for position, column in enumerate(columns)}
    without = {column: model.without([at[column]]) for column in candidates}
    needless = [c for c, each in without.items() if model.unexplained <= EXPLAINED and each.is_below(COLUMN_MARGIN, 1)]
    order = sorted(needless, key=lambda column: without[column].mean)
    together: dict[int, Difference] = {}  # by how many of the columns are left out
    fewest, most = 0, len(order)
    while fewest < most:
        n = (fewest + most + 1) // 2 if together else most  # often all of them can be left out, and one fit shows it
        together[n] = model.fitted_without([at[column] for column in order[:n]])
        fewest, most = (n, most) if together[n].is_below(COLUMN_MARGIN, 1) else (fewest, n - 1)
    return Relevance(without, tuple(sorted(order[:fewest])), together.get(fewest))
