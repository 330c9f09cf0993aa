"""Steer what the action controls to the object: each contact is evidence, and random actions seldom make one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..records import Array, ArraySpec
from .columns import ControlledColumns
from .contact import Contact

NOISE = 0.4  # standard deviation of the exploration noise, in half widths of the action range


class ProbingController:
    """Act so that the tool of a `Contact` meets the object from random directions.

    The change of the tool's columns is linear in the action, as regression found: the pseudo-inverse of that effect is
    the controller. In each episode the target is the object plus a random offset, which is drawn again when it is reached.
    """

    def __init__(
        self, controlled: ControlledColumns, contact: Contact, action: ArraySpec, rng: np.random.Generator
    ) -> None:
        at = [controlled.columns.index(column) for column in contact.tool]
        self._steer = np.linalg.pinv(controlled.effect[:, at].T)  # (action size, goal size)
        self._tool, self._thing = list(contact.tool), list(contact.thing)
        self._reach = contact.distances[1]
        self._low, self._high = action.bounds()
        self._shape, self._dtype, self._rng = action.shape, action.dtype, rng
        self._offset = np.zeros(len(contact.tool))

    def start_episode(self) -> None:
        """Choose another direction to the object."""
        self._offset = self._rng.normal(size=len(self._tool)) * 0.6 * self._reach

    def __call__(self, observation: Mapping[str, Any]) -> Array:
        """Return the action for one observation."""
        seen = np.asarray(observation["observation"], np.float64).ravel()
        way = seen[self._thing] + self._offset - seen[self._tool]
        if np.linalg.norm(way) < 0.4 * self._reach:
            self.start_episode()
        width = (self._high - self._low).ravel() / 2
        action = self._steer @ way + self._rng.normal(size=len(self._steer)) * NOISE * width
        return np.clip(action.reshape(self._shape), self._low, self._high).astype(self._dtype)
