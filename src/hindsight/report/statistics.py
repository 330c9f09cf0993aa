"""What several runs say together, with how sure that is: Agarwal et al. 2021, "Deep RL at the edge of the precipice"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .curves import Array

CUT = 0.25  # of the values, left out at either end of an interquartile mean
DRAWS = 10_000  # of the bootstrap
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A statistic and its interval; (value, value) where a single run leaves it unknown."""

    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether there is an interval."""
        return self.low < self.high


def interquartile_mean(values: Array) -> Array:
    """The mean over the last axis without the lowest and the highest quarter, rounded down to whole values; (...,)."""
    cut = int(CUT * values.shape[-1])
    return np.asarray(np.sort(values, -1)[..., cut : values.shape[-1] - cut].mean(-1))


def mean(values: Array) -> Array:
    """The mean over the last axis; (...,)."""
    return np.asarray(values.mean(-1))


def estimate(
    strata: Sequence[Array], statistic: Callable[[Array], Array], generator: np.random.Generator, draws: int = DRAWS
) -> Estimate:
    """A statistic of all values, with its 95 % interval by the percentiles of a stratified bootstrap.

    strata: for each task the values of its runs, (n,) each; a draw takes n of them with replacement, task by task.
    statistic: (..., N) -> (...,).
    """
    value = float(statistic(np.concatenate(strata)))
    drawn = [stratum[generator.integers(len(stratum), size=(draws, len(stratum)))] for stratum in strata]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(statistic(np.concatenate(drawn, axis=1)), (tail, 1 - tail))
    return Estimate(value, float(low), float(high))
