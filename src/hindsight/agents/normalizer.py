"""Running means and deviations of what an agent sees, taken up once per episode. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import Episode
from ..records.subgoals import Subgoal
from .layout import FIXED_MEAN_AND_SCALE, Layout, Part, coding_of

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
        self.merge(len(rows), mean, np.square(rows - mean).sum(axis=0))

    def merge(self, count: float, mean: Array, squares: Array) -> None:
        """Take up `count` rows of which mean and sum of squared distances from it are known, (size,) each."""
        total = self.count + count
        distance = mean - self.mean
        self.mean += distance * (count / total)
        self.squares += squares + np.square(distance) * (self.count * count / total)
        self.count[...] = total

    def deviation(self) -> Array:
        """The standard deviation of each column, (size,); 0 before the first row."""
        return np.asarray(np.sqrt(self.squares / max(float(self.count), 1.0)))

    def arrays(self) -> dict[str, Array]:
        """The live arrays, by name."""
        return {"count": self.count, "mean": self.mean, "squares": self.squares}


class Normalizer:
    """One set of moments for observations and one that all goals share, those of subgoals too; for what is plain numbers.

    A value x is seen by the networks as clip((x - mean) * scale), scale = 1 / max(deviation, eps); before the first
    episode mean is 0 and scale 1. Bits and one-hot values have a mean and a scale of their own (`layout`).
    """

    def __init__(self, layout: Layout, eps: float, subgoals: Sequence[Subgoal] = ()) -> None:
        self.layout, self.eps, self.subgoals = layout, eps, subgoals
        self.moments = {
            name: RunningMoments(array.size if coding_of(array) == "numbers" else 0)
            for name, array in (("observation", layout.observation), ("goal", layout.goal))
        }

    def update(self, episode: Episode) -> None:
        """Take up every row of an episode, the last one too."""
        self._take("observation", episode.observation)
        self._take("goal", episode.achieved_goal)
        self._take("goal", episode.desired_goal)
        for subgoal in self.subgoals:
            self._take("goal", episode.observation[:, subgoal.achieved])
            self._take("goal", episode.observation[:, subgoal.goal])

    def to_vector(self) -> Array:
        """All moments, one after another, float64."""
        return np.concatenate([array.ravel() for array in self._arrays().values()])

    def merge_vector(self, vector: Array) -> None:
        """Take up the rows that a `to_vector` of the same task tells of."""
        for moments in self.moments.values():
            size = moments.mean.size
            count, mean, squares, vector = (
                vector[0],
                vector[1 : size + 1],
                vector[size + 1 : 2 * size + 1],
                vector[2 * size + 1 :],
            )
            if count:
                moments.merge(float(count), mean, squares)

    def mean_and_scale(self) -> tuple[Array, Array]:
        """float32 mean and scale of a network's input, (layout.size,) each."""
        mean, scale = np.empty(self.layout.size, np.float32), np.empty(self.layout.size, np.float32)
        for part in self.layout.parts:
            mean[part.columns], scale[part.columns] = self._mean_and_scale_of(part)
        return mean, scale

    def summary(self) -> dict[str, float]:
        """stats_o/mean, stats_o/std, stats_g/mean, stats_g/std: means over the numbers of an observation, and of a goal.

        The names are those of OpenAI baselines. Nothing of what is no plain number, or before the first episode.
        """
        seen = {f"stats_{n[0]}": m for n, m in self.moments.items() if m.mean.size and m.count}
        means = {f"{name}/mean": float(moments.mean.mean()) for name, moments in seen.items()}
        return means | {f"{name}/std": float(moments.deviation().mean()) for name, moments in seen.items()}

    def state_dict(self) -> dict[str, Array]:
        """Copies of all moments, under "normalizer/..."."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Take the moments of `state_dict` back; the caller has checked names and shapes."""
        for name, array in self._arrays().items():
            array[...] = state[name]

    def _take(self, name: str, values: Array) -> None:
        if self.moments[name].mean.size:
            self.moments[name].update(_flat_rows(values))

    def _mean_and_scale_of(self, part: Part) -> tuple[Array | float, Array | float]:
        """A difference has no mean taken off, so that it stays 0 at the goal, and the scale of what it is taken from."""
        if part.coding in FIXED_MEAN_AND_SCALE:
            return FIXED_MEAN_AND_SCALE[part.coding]
        if part.coding == "difference":
            return 0.0, self._mean_and_scale_of(replace(part, coding=coding_of(getattr(self.layout, part.source))))[1]
        mean, scale = self.moments[part.source].mean, self._scale(self.moments[part.source])
        return (mean, scale) if part.kept is None else (mean[list(part.kept)], scale[list(part.kept)])

    def _scale(self, moments: RunningMoments) -> Array:
        if moments.count == 0:
            return np.ones_like(moments.mean)
        return np.asarray(1.0 / np.maximum(moments.deviation(), self.eps))

    def _arrays(self) -> dict[str, Array]:
        return {
            f"normalizer/{part}_{name}": a for part, moments in self.moments.items() for name, a in moments.arrays().items()
        }


def _flat_rows(values: Array) -> Array:
    values = np.asarray(values)
    return values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
