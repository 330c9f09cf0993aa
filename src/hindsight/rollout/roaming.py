"""Seek one visited place after another: episodes that see more of the task than the way to their own goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..records import Array

ANOTHER = 0.02  # probability of each step that another place is sought


class RoamingActor:
    """Act for a random place, then for another.

    act: chooses an action for an observation whose desired goal is the place. places: (M, g).
    """

    def __init__(self, act: Callable[[Mapping[str, Array]], Array], places: Array, rng: np.random.Generator) -> None:
        self._act, self._places, self._rng = act, places, rng
        self._place = self._another()

    def _another(self) -> Array:
        return np.asarray(self._places[int(self._rng.integers(len(self._places)))])

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        if self._rng.random() < ANOTHER:
            self._place = self._another()
        return self._act({**observation, "desired_goal": self._place})
