"""Running means and standard deviations of the network inputs, updated once per episode. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..records import Episode
from ..records.subgoals import Subgoal
from .layout import FIXED_MEAN_AND_SCALE, Block, Feature, Layout, feature_of

Array = npt.NDArray[Any]


class RunningMoments:
    """Mean and variance of each column over all rows so far, in float64.

    Batches are merged as in Chan, Golub and LeVeque 1979, which never subtracts two large sums of squares.
    """

    def __init__(self, size: int) -> None:
        self.count = np.zeros((), np.float64)
        self.mean = np.zeros(size, np.float64)
        self.squares = np.zeros(size, np.float64)  # sum of squared differences from the mean

    def update(self, rows: Array) -> None:
        """Add rows, (N, size), any dtype."""
        if len(rows) == 0:
            return
        mean = rows.mean(axis=0, dtype=np.float64)
        difference, total = mean - self.mean, self.count + len(rows)
        self.mean += difference * (len(rows) / total)
        self.squares += np.square(rows - mean).sum(axis=0) + np.square(difference) * (self.count * len(rows) / total)
        self.count[...] = total

    def standard_deviation(self) -> Array:
        """Return the standard deviation of each column, (size,); 0 before the first row."""
        return np.asarray(np.sqrt(self.squares / max(float(self.count), 1.0)))


class Normalizer:
    """Running moments of the numeric observations, and of all goals together, those of subgoals included.

    Networks see x as clip((x - mean) * scale) with scale = 1 / max(standard deviation, eps). Before the first episode mean
    is 0 and scale is 1. Bits, one-hot values and images have a fixed mean and scale (see `layout`).
    """

    def __init__(self, layout: Layout, eps: float, subgoals: Sequence[Subgoal] = ()) -> None:
        self.layout, self.eps, self.subgoals = layout, eps, subgoals
        self.moments = {
            name: RunningMoments(array.size if feature_of(array) == "number" else 0)
            for name, array in (("observation", layout.observation), ("goal", layout.goal))
        }

    def update(self, episode: Episode) -> None:
        """Add every row of an episode, the last one included."""
        self._add("observation", episode.observation)
        self._add("goal", episode.achieved_goal)
        self._add("goal", episode.desired_goal)
        for subgoal in self.subgoals:
            self._add("goal", episode.observation[:, subgoal.achieved])
            self._add("goal", episode.observation[:, subgoal.goal])

    def mean_and_scale(self) -> tuple[Array, Array]:
        """Return float32 mean and scale of the network input, (layout.size,) each."""
        pairs = [(self._mean_and_scale(block), block.size) for block in self.layout.blocks]
        means = [np.broadcast_to(np.asarray(mean, np.float32), size) for (mean, _), size in pairs]
        scales = [np.broadcast_to(np.asarray(scale, np.float32), size) for (_, scale), size in pairs]
        return np.concatenate(means), np.concatenate(scales)

    def summary(self) -> dict[str, float]:
        """Return stats_o/mean, stats_o/std, stats_g/mean and stats_g/std: means over the columns of observation and goal.

        The names are those of OpenAI baselines. Arrays that are not numeric or have no rows yet are left out.
        """
        known = {f"stats_{n[0]}": m for n, m in self.moments.items() if m.mean.size and m.count}
        means = {f"{name}/mean": float(moments.mean.mean()) for name, moments in known.items()}
        return means | {f"{name}/std": float(moments.standard_deviation().mean()) for name, moments in known.items()}

    def state_dict(self) -> dict[str, Array]:
        """Return copies of all moments, under "normalizer/..."."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Restore the moments of `state_dict`; the caller has checked names and shapes."""
        for name, array in self._arrays().items():
            array[...] = state[name]

    def _add(self, name: str, values: Array) -> None:
        moments = self.moments[name]
        if moments.mean.size:
            moments.update(np.asarray(values, np.float64).reshape(len(values), moments.mean.size))

    def _mean_and_scale(self, block: Block) -> tuple[Array | float, Array | float]:
        is_difference = block.feature == "difference"
        array = self.layout.observation if block.source == "observation" else self.layout.goal
        mean, scale = self._statistics(block, feature_of(array) if is_difference else block.feature)
        return 0.0 if is_difference else mean, scale  # without its mean subtracted, a difference is 0 at the goal

    def _statistics(self, block: Block, feature: Feature) -> tuple[Array | float, Array | float]:
        if feature in FIXED_MEAN_AND_SCALE:
            return FIXED_MEAN_AND_SCALE[feature]
        moments, visible = self.moments[block.source], slice(None) if block.visible is None else list(block.visible)
        scale = 1.0 / np.maximum(moments.standard_deviation(), self.eps) if moments.count else np.ones_like(moments.mean)
        return moments.mean[visible], scale[visible]

    def _arrays(self) -> dict[str, Array]:
        return {
            f"normalizer/{name}_{kind}": getattr(moments, kind)
            for name, moments in self.moments.items()
            for kind in ("count", "mean", "squares")
        }
