"""Steer what the action controls to the object: each contact is evidence, and random actions seldom make one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..records import Array, ArraySpec
from ..records.probing import Probing
from ..task_structure.affine import AffineColumns

NOISE = 0.4  # standard deviation of the exploration noise, in half widths of the action range
ANOTHER = 0.2  # probability that another object is sought when a target is met
OFFSET, MET = 0.6, 0.4  # of the reach: standard deviation of the target's offset, and the distance at which it is met


class ProbingActor:
    """Act so that the tool meets the object from random directions.

    The target is the object plus a random offset, which is drawn again when the target is met. Of several objects one is
    drawn at the start, and sometimes when the target is met.
    """

    def __init__(self, probing: Probing, action: ArraySpec, rng: np.random.Generator) -> None:
        self._probing, self._rng = probing, rng
        self._steer = np.array(probing.steer)
        self._low, self._high = action.bounds()
        self._dtype = action.dtype
        self._offset = self._another_direction()
        self._things = (probing.thing, *probing.others)
        self._thing = self._another_thing()

    def _another_thing(self) -> AffineColumns:
        return self._things[int(self._rng.integers(len(self._things)))] if self._probing.others else self._probing.thing

    def _another_direction(self) -> Array:
        return self._rng.normal(size=len(self._probing.tool.columns)) * OFFSET * self._probing.reach

    def __call__(self, observation: Mapping[str, Array]) -> Array:
        """Return the action for one observation."""
        seen = np.asarray(observation["observation"], np.float64).ravel()
        way: Array = self._thing.of(seen) + self._offset - self._probing.tool.of(seen)
        if np.linalg.norm(way) < MET * self._probing.reach:
            self._offset = self._another_direction()
            if self._probing.others and self._rng.random() < ANOTHER:
                self._thing = self._another_thing()
        width = (self._high - self._low).ravel() / 2
        action = self._steer @ way + self._rng.normal(size=len(self._steer)) * NOISE * width
        return np.clip(action.reshape(self._low.shape), self._low, self._high).astype(self._dtype)
