"""Actions as inference sees them: Discrete ones one-hot, others in half widths of their range from its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..records import Array, ArraySpec, Episode, GoalSpec
from ..task_structure.symmetries import Symmetry
from .findings import Structure


@dataclass(frozen=True, eq=False)
class ActionFrame:
    """An action is seen as (action - middle) / width. Both are (action size,).

    n_choices: of Discrete actions, 0 for others. first: of the choices.
    """

    middle: Array
    width: Array
    n_choices: int = 0
    first: int = 0

    @classmethod
    def of(cls, action: ArraySpec) -> ActionFrame:
        """Return the frame of the actions of a task."""
        if action.n_values:
            return cls(np.zeros(action.n_values), np.ones(action.n_values), action.n_values, int(action.low[0]))
        if not action.is_bounded:
            return cls(np.zeros(action.size), np.ones(action.size))
        low, high = (bound.ravel() for bound in action.bounds())
        return cls((low + high) / 2, np.where(low < high, (high - low) / 2, 1.0))

    @property
    def is_usual(self) -> bool:
        """Whether actions are seen as they are, or as choices."""
        return not self.middle.any() and bool((self.width == 1).all())

    def of_episodes(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Return episodes whose actions are seen so, (steps, action size)."""
        if self.n_choices:
            one_hot = np.eye(self.n_choices)
            return [replace(each, action=one_hot[np.asarray(each.action, np.int64) - self.first]) for each in episodes]
        if self.is_usual:
            return list(episodes)
        return [replace(each, action=(each.action - self.middle) / self.width) for each in episodes]

    def of_symmetry(self, symmetry: Symmetry) -> Symmetry:
        """Return the symmetry that does with seen actions what another one does with actions."""
        return replace(symmetry, action=symmetry.action.from_units(self.width, self.middle))

    def restore(self, found: Structure, spec: GoalSpec) -> Structure:
        """Return what was found with seen actions, said of actions as they are, from the middle of their range."""
        if self.is_usual:
            return found
        back, controlled = ActionFrame(-self.middle / self.width, 1 / self.width), found.controlled
        per_unit = {name: getattr(controlled, name) / self.width[:, None] for name in ("effect", "by_posture")}
        return replace(found, controlled=replace(controlled, **per_unit)).with_symmetries(back.of_symmetry, spec)
