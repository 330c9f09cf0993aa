"""Which observation columns help to predict what happens. The others can be hidden from the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..records import Array
from .contact import Contact
from .model import Difference, DisplacementModel, informative_steps
from .steps import Steps

MARGIN = 0.05  # of the held-out loss: in tests, columns that matter add 0.1 and more, others less than 0.03


@dataclass(frozen=True)
class Relevance:
    """How much the held-out loss grows without each column that may be hidden.

    needless: columns without which, one by one and together, it grows by less than MARGIN for certain.
    """

    without: dict[int, Difference]
    needless: tuple[int, ...]

    @property
    def uncertain(self) -> tuple[int, ...]:
        """Columns that may be needless, but not for certain."""
        return tuple(c for c, each in self.without.items() if c not in self.needless and each.mean < MARGIN)

    def evidence(self, columns: Sequence[int]) -> str:
        """Return the evidence for some of the columns in one sentence."""
        tested = [column for column in columns if column in self.without]
        return "; ".join(f"without column {c} the held-out error of the next moves is {self.without[c]}" for c in tested)


def inputs_of(observation: Array, action: Array, columns: Sequence[int], contact: Contact) -> Array:
    """Return what models see of steps: columns, the gap between tool and object, and the action, (N, inputs)."""
    gap = observation[:, list(contact.thing)] - observation[:, list(contact.tool)]
    return np.column_stack([observation[:, list(columns)], gap, action])


def displacements(steps: Steps, contact: Contact) -> Array:
    """Return how the goal and the tool are displaced in each step, (N, goal size + axes)."""
    return np.column_stack([steps.next_achieved_goal - steps.achieved_goal, steps.change[:, list(contact.axes)]])


def find_relevance(steps: Steps, contact: Contact, columns: Sequence[int], candidates: Sequence[int]) -> Relevance:
    """Test each of the candidates: with its values from other steps, what happens is predicted worse if it matters.

    columns: all that may be seen. candidates: those of them that may be hidden.
    """
    picked = informative_steps(steps)
    inputs = inputs_of(steps.observation[picked], steps.action[picked], columns, contact)
    model = DisplacementModel(inputs, displacements(steps, contact)[picked], steps.episode[picked])
    at = {column: position for position, column in enumerate(columns)}
    without = {column: model.without([at[column]]) for column in candidates}
    needless = [column for column in candidates if without[column].is_below(MARGIN, len(candidates))]
    while needless and not model.without([at[column] for column in needless]).is_below(MARGIN, 1):
        needless.remove(max(needless, key=lambda column: without[column].mean))
    return Relevance(without, tuple(needless))
