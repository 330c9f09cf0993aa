"""Running means and deviations of what an agent sees, taken up once per episode. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import Episode

Array = npt.NDArray[Any]


class RunningMoments:
    """Mean and variance of the columns of all rows seen so far, in float64.

    Batches are merged by the rule of Chan, Golub and LeVeque 1979, which never subtracts two large sums of squares.
    """

    def __init__(self, size: int) -> None:
        self.count = np.zeros((), np.float64)
        self.mean = np.zeros(size, np.float64)
        self.squares = np.zeros(size, np.float64)  # sum of squared distances from the mean

    def update(self, rows: Array) -> None:
        """Take up `rows`, (N, size) of any dtype."""
        if len(rows) == 0:
            return
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = np.square(rows - mean).sum(axis=0)
        total = self.count + len(rows)
        distance = mean - self.mean
        self.mean += distance * (len(rows) / total)
        self.squares += squares + np.square(distance) * (self.count * len(rows) / total)
        self.count[...] = total

    def deviation(self) -> Array:
        """The standard deviation of each column, (size,); 0 before the first row."""
        return np.asarray(np.sqrt(self.squares / max(float(self.count), 1.0)))

    def arrays(self) -> dict[str, Array]:
        """The live arrays, by name."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}


class Normalizer:
    """One set of moments for observations and one that achieved and desired goals share.

    A value x is seen by the networks as clip((x - mean) * scale), scale = 1 / max(deviation, eps); before the first
    episode mean is 0 and scale 1.
    """

    def __init__(self, observation_size: int, goal_size: int, eps: float) -> None:
        self.observation = RunningMoments(observation_size)
        self.goal = RunningMoments(goal_size)
        self.eps = eps

    def update(self, episode: Episode) -> None:
        """Take up every row of an episode, the last one too."""
        self.observation.update(_flat_rows(episode.observation))
        self.goal.update(_flat_rows(episode.achieved_goal))
        self.goal.update(_flat_rows(episode.desired_goal))

    def mean_and_scale(self, sees_achieved_goal: bool) -> tuple[Array, Array]:
        """float32 mean and scale of a network's input: observation, goal and, where it is seen, the achieved goal."""
        parts = [self.observation, self.goal] + [self.goal] * sees_achieved_goal
        mean = np.concatenate([part.mean for part in parts])
        scale = np.concatenate([self._scale(part) for part in parts])
        return mean.astype(np.float32), scale.astype(np.float32)

    def state_dict(self) -> dict[str, Array]:
        """Copies of all moments, under "normalizer/..."."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take the moments of `state_dict` back; the caller has checked names and shapes."""
        for name, array in self._arrays().items():
            array[...] = state[name]

    def _scale(self, moments: RunningMoments) -> Array:
        if moments.count == 0:
            return np.ones_like(moments.mean)
        return np.asarray(1.0 / np.maximum(moments.deviation(), self.eps))

    def _arrays(self) -> dict[str, Array]:
        parts = {"observation": self.observation, "goal": self.goal}
        return {f"normalizer/{part}_{name}": a for part, moments in parts.items() for name, a in moments.arrays().items()}


def _flat_rows(values: Array) -> Array:
    values = np.asarray(values)
    return values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
