"""Whether what stops a body in one place also stops it where a symmetry leads.

Few steps end at a wall, so models that predict all steps hardly see it. A body that may be anywhere in two rooms visits
the image of each position; only the wall between them tells them apart.
"""

from __future__ import annotations

import numpy as np

from ..records import Array
from ..task_structure.symmetries import Symmetry
from .model import Difference, mean_and_error
from .steps import FEWEST_EPISODES, MOSTLY, TINY


class Stops:
    """Steps in which a body got elsewhere than it would in most places: a wall stopped it.

    position: the achieved goal before each step, (N, g). displacement: of the step, (N, g). free: as predicted without
    positions, (N, g). episode: (N,) numbers.
    """

    def __init__(self, position: Array, displacement: Array, free: Array, episode: Array) -> None:
        self._step = float(np.sqrt(np.square(displacement).sum(1).mean())) + TINY  # a usual one
        self._is_stopped = np.linalg.norm(free - displacement, axis=1) > MOSTLY * self._step
        self._position, self._free, self._episode = position, free, episode

    def lost(self, symmetry: Symmetry, copies: list[int], n_columns: int) -> Difference:
        """Return which fraction of the stopped steps loses its neighbour, once they are transformed.

        Neighbour: the step of another episode with the most similar position and prediction, if that was stopped, too. If
        fewer than FEWEST_EPISODES were stopped, nothing is known: 0, with an infinite error.
        copies: the column of each dimension of the goal, of n_columns.
        """
        stopped = self._is_stopped
        _, episode = np.unique(self._episode[stopped], return_inverse=True)
        observation = np.zeros((int(stopped.sum()), n_columns))
        observation[:, copies] = self._position[stopped]
        position = symmetry.observation.apply(observation)[:, copies]
        free = symmetry.goal.apply_to_displacements(self._free[stopped])
        before = self._has_neighbour(self._position[stopped], self._free[stopped])
        if len(episode) == 0 or episode.max() + 1 < FEWEST_EPISODES or not before.any():
            return Difference(0.0, np.inf)
        lost = before - self._has_neighbour(position, free)
        return mean_and_error(np.bincount(episode, lost) * (episode.max() + 1) / before.sum())

    def _has_neighbour(self, position: Array, free: Array) -> Array:
        """Return for each stopped step, moved to these positions, whether the nearest step was stopped, 0 or 1."""
        there, here = (np.column_stack(pair) / self._step for pair in ((self._position, self._free), (position, free)))
        square = np.zeros((len(here), len(there)))
        for one, other in zip(here.T, there.T, strict=True):
            square += np.square(one[:, None] - other)
        square[self._episode[self._is_stopped][:, None] == self._episode] = np.inf
        return np.asarray(self._is_stopped[square.argmin(1)], np.float64) if len(here) else np.zeros(0)
