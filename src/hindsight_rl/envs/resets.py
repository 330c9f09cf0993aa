"""Resets of an environment that are not exact: how far they differ from a new environment, and what a new one costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..records import OBSERVATION_KEYS, Array
from ..records.statistics import FLOAT32_ROUNDING
from .random_play import Environment, play

COMPARED_SEEDS = (201, 203, 205)  # of resets of a new environment and of the used one
DEVIATION_SEEDS = range(301, 321)  # of resets; 20 show a standard deviation within about a sixth
USED_STEPS = 20  # played in the used environment before each reset that is compared
TIMED_STEPS = 10  # of an episode, from which the seconds of a whole one follow
LARGEST_GAP = 0.01  # in standard deviations: far below the noise of exploration


@dataclass(frozen=True)
class ResetComparison:
    """First observations after a reset of a used environment, compared with those of new environments.

    gap: the largest difference of the column that differs most. deviation: its standard deviation over resets.
    column: its key and its index. is_similar: whether no column differs by more than LARGEST_GAP standard deviations.
    new_are_equal: whether two new environments with the same seed have the same first steps, bit by bit.
    make_seconds: to make an environment. step_seconds: to step it.
    """

    gap: float
    deviation: float
    column: str
    is_similar: bool
    new_are_equal: bool
    make_seconds: float
    step_seconds: float

    def __str__(self) -> str:
        """Return the gap as the end of a sentence."""
        if not self.gap:
            return "the first observation equals that of a new environment"
        gap = f"the first observation differs from that of a new environment by {self.gap:.2g} in {self.column}"
        return f"{gap}, whose standard deviation over resets is {self.deviation:.2g}"


class _NewEpisode(NamedTuple):
    """The first observation and the first steps of a new environment, and what they took in seconds."""

    first: Array
    rows: list[tuple[bytes, ...]]
    make_seconds: float
    step_seconds: float


def compare_resets(
    used: Environment,
    make: Callable[[], Environment],
    seeds: Sequence[int] = COMPARED_SEEDS,
    play_before: Callable[[], object] | None = None,
) -> ResetComparison:
    """Compare the resets of a used environment with new environments, and time these.

    make: returns a new environment, which is closed here. seeds: of the resets, each in another new environment. That of
        the first seed is compared with one more. play_before: plays an episode of `used` before each reset; None: a random
        one.
    Reset `used` before its next step.
    """
    gaps, new = list[Array](), list[_NewEpisode]()
    for seed in seeds:
        if play_before:
            play_before()
        else:
            play(used, seed + 1, USED_STEPS)
        new.append(_play_new(make, seed))
        gaps.append(np.abs(_first(used, seed) - new[-1].first))
    again = _play_new(make, seeds[0])
    new_are_equal = np.array_equal(again.first, new[0].first) and again.rows == new[0].rows
    gap, firsts = np.max(gaps, axis=0), np.stack([_first(used, seed) for seed in DEVIATION_SEEDS])
    deviation = firsts.std(0)
    excess = gap - LARGEST_GAP * deviation - FLOAT32_ROUNDING * np.abs(firsts).max(0)
    worst = int(excess.argmax())
    seconds = (float(np.median([each.make_seconds for each in new])), float(np.median([each.step_seconds for each in new])))
    found = float(gap[worst]), float(deviation[worst]), _name(used, worst), bool(excess[worst] <= 0)
    return ResetComparison(*found, new_are_equal, *seconds)


def _play_new(make: Callable[[], Environment], seed: int) -> _NewEpisode:
    """Make an environment, play its first steps, and close it."""
    started = time.perf_counter()
    env = make()
    make_seconds = time.perf_counter() - started
    try:
        first = _first(env, seed)
        started = time.perf_counter()
        episode = play(env, seed, TIMED_STEPS)
        return _NewEpisode(first, episode.to_bytes(), make_seconds, (time.perf_counter() - started) / len(episode))
    finally:
        env.close()


def _first(env: Environment, seed: int) -> Array:
    """Return the first observation of an episode with its goals, as one vector."""
    observation = env.reset(seed=seed)[0]
    return np.concatenate([np.asarray(observation[key], np.float64).reshape(-1) for key in OBSERVATION_KEYS])


def _name(env: Environment, column: int) -> str:
    """Return the key and the index of a column of the vector of `_first`."""
    observation = env.reset(seed=COMPARED_SEEDS[0])[0]
    for key in OBSERVATION_KEYS:
        size = np.size(observation[key])
        if column < size:
            return f"column {column} of {key}"
        column -= size
    raise AssertionError("the vector has no more columns")
