"""Sampler: draw rows, choose goals, gather a batch, apply transforms. The timeline is only read.

A live row starts a transition of a stored episode: its `steps_left` is above 0. No row at or above `timeline.high_water`
was ever written, so all live rows are below it. Uniform rows are drawn by rejection sampling. Each proposal is a random row
below high_water, and it is accepted if it is live. Then all live rows are equally likely. If only a small fraction of the
rows is live, most proposals would be rejected. Then rows are drawn from the list of all live rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, count
from typing import Protocol

import numpy as np

from ..errors import InputError, NothingToSampleError
from ..options import ReplayOptions
from ..options.replay import DEFAULT_N_SAMPLED_GOAL, GOAL_SOURCES, Relabel, StrategyFunction, her_probability
from ..records import Array, Batch
from .kernels import FUTURE, READS_OTHERS, STORED, choose_goals, draw_rows, fill_uniform, gather, sample
from .priorities import Priorities
from .rows import BatchMemory, Draw, as_bytes
from .strategies import Strategy, check_strategy, custom_rows
from .timeline import Timeline

MIN_FRACTION_FOR_REJECTION = 1 / 64  # of live rows; below it, rows are drawn from the list of live rows


class RandomNumbers:
    """The random numbers of a buffer. All of them come from `state`, one uint64."""

    def __init__(self, seed: int | np.random.Generator) -> None:
        self.state = np.random.default_rng(seed).integers(2**64, size=1, dtype=np.uint64)
        self._u = np.zeros(0)

    def uniform(self, count: int) -> Array:
        """Return `count` numbers in [0, 1), in memory that the next call overwrites."""
        u = self.memory(count)[:count]
        fill_uniform(self.state, u)
        return u

    def stratified(self, size: int, batch_size: int) -> Array:
        """Return `size` numbers in [0, 1] (1 by rounding), as `uniform` does, for batches of batch_size.

        The numbers of each batch are in order, one in each of batch_size equal intervals.
        """
        u = self.uniform(size)
        u.reshape(-1, batch_size)[:] += np.arange(batch_size)
        u *= 1 / batch_size
        return u

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Bring the state back if the block raises, so that what was drawn in it can be drawn again."""
        before = self.state.copy()
        try:
            yield
        except BaseException:
            self.state[:] = before
            raise

    def memory(self, count: int) -> Array:
        """Return memory for at least `count` numbers."""
        if len(self._u) < count:
            self._u = np.zeros(count)
        return self._u


class RowSampler:
    """Draw rows that start a transition: uniformly, or in proportion to `priorities`."""

    def __init__(self, timeline: Timeline, rng: RandomNumbers, priorities: Priorities | None = None) -> None:
        self.timeline, self.priorities, self.rng = timeline, priorities, rng

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return rows for batches with the leading axes `shape`, flat. With priorities, each batch is stratified."""
        size = math.prod(shape)
        if self.priorities is None:
            return self.uniform_rows(size)
        return self.priorities.draw(self.rng.stratified(size, shape[-1]))

    def uniform_rows(self, size: int) -> Array:
        """Return `size` live rows, each equally likely: by rejection sampling, or from the list of live rows."""
        row, n_proposals = np.empty(size, np.int64), self.count_proposals(size)
        if n_proposals:
            u = self.rng.uniform(n_proposals)
            if draw_rows(self.timeline.numbers, self.timeline.layout, u, self.timeline.high_water, row) == size:
                return row
        live = self.timeline.live_rows()
        return live[(self.rng.uniform(size) * len(live)).astype(np.int64)]

    def count_proposals(self, size: int) -> int:
        """Return how many rows to propose so that `size` of them are live almost always. 0: do not use rejection."""
        fraction = self.timeline.num_transitions / self.timeline.high_water
        if fraction <= MIN_FRACTION_FOR_REJECTION:
            return 0
        return int((size + 6 * math.sqrt(size * (1 - fraction))) / fraction) + 1


class GoalSampler:
    """Choose which samples are relabelled, and with which goals.

    strategy, n_sampled_goal: as in ReplayOptions.
    is_stored: choose from the goals that StoredGoals drew.
    probability: fraction of the samples that are relabelled.
    sources: see `kernels.choose_goals`. It is not used for functions.
    reads_others: whether rows of other episodes are drawn.
    is_compiled: whether `kernels.sample` can choose the goals.
    """

    def __init__(self, rows: RowSampler, strategy: Strategy, n_sampled_goal: int | None, is_stored: bool = False) -> None:
        self.strategy, self.probability = check_strategy(strategy), her_probability(strategy, n_sampled_goal)
        self.sources = source_table(self.strategy, self.probability)
        if is_stored:
            self.sources = np.array([(STORED, 0.0, self.probability)])
        self.reads_others = bool(np.isin(self.sources[:, 0], READS_OTHERS).any())
        self.is_compiled = not self.reads_others and not callable(strategy)
        self._timeline, self._rows, self._rng = rows.timeline, rows, rows.rng

    def choose(self, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """Fill is_relabelled and goal_at, the first byte of each sample's goal in the ring. All (B,)."""
        if callable(self.strategy):
            self._apply(self.strategy, row, is_relabelled, goal_at)
            return
        other_row = self._rows.uniform_rows(len(row)) if self.reads_others else row
        u = self._rng.uniform(len(row))
        timeline = self._timeline
        choose_goals(timeline.numbers, timeline.layout, u, self.sources, row, other_row, is_relabelled, goal_at)

    def _apply(self, strategy: StrategyFunction, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """Choose goals by the user's function."""
        timeline, u = self._timeline, self._rng.uniform(len(row))
        row_bytes, achieved_at, desired_at = timeline.layout[3:6].tolist()
        is_relabelled[:] = u < self.probability
        goal_at[:] = row * row_bytes + desired_at
        chosen = row[is_relabelled]
        if len(chosen):
            rest = u[is_relabelled] / self.probability  # u below `probability`, rescaled, is uniform in [0, 1) again
            goal_row = custom_rows(strategy, chosen, timeline.steps_done[chosen], timeline.steps_left[chosen], rest)
            if not (is_held := timeline.holds(goal_row)).all():
                bad = goal_row[~is_held][0]
                raise InputError(f"The strategy returned row {bad}, which belongs to no stored episode.")
            goal_at[is_relabelled] = goal_row * row_bytes + achieved_at


def source_table(strategy: Strategy, probability: float) -> Array:
    """Return the sources of a strategy, as `kernels.choose_goals` reads them."""
    if isinstance(strategy, Relabel):
        fractions = strategy.fractions().values()
        parts = zip(count(), accumulate(fractions, initial=0.0), fractions, strict=False)
        return np.array([part for part in parts if part[2]] or [(FUTURE, 0.0, 0.0)])
    return np.array([(GOAL_SOURCES.index(strategy) if isinstance(strategy, str) else FUTURE, 0.0, probability)])


def count_stored_goals(options: ReplayOptions) -> int:
    """Return how many goals are stored in each row: n_sampled_goal, 4 for a Relabel, and at most 1 for "final"."""
    if options.relabel_at == "sample" or not options.relabelled_fraction:
        return 0
    strategy = options.goal_strategy
    is_final = (strategy.only if isinstance(strategy, Relabel) else strategy) == "final"
    return 1 if is_final else DEFAULT_N_SAMPLED_GOAL if options.n_sampled_goal is None else options.n_sampled_goal


class StoredGoals:
    """Relabelled goals that are drawn once, when an episode ends (Stable Baselines 2), and kept in its rows."""

    def __init__(self, rows: RowSampler, strategy: Strategy) -> None:
        self._timeline, self._goals = rows.timeline, GoalSampler(rows, strategy, None)
        self._goals.sources[:, 1:] /= self._goals.probability  # every stored goal is relabelled

    def draw(self, first: int, steps: int) -> None:
        """Fill `stored_goals` of an episode of `steps` steps that was written from row `first` on."""
        rows = self._timeline.rows
        stored: Array = rows["stored_goals"][first : first + steps]
        row = np.repeat(np.arange(first, first + steps), stored.shape[1])
        is_relabelled, goal_at = np.empty(len(row), np.bool_), np.empty(len(row), np.int64)
        self._goals.choose(row, is_relabelled, goal_at)
        goals = as_bytes(rows)[goal_at[:, None] + np.arange(rows.dtype["desired_goal"].itemsize)]
        stored[:] = goals.view(stored.dtype).reshape(stored.shape)


class Transform(Protocol):
    """A step of the pipeline that changes a gathered batch in place."""

    def __call__(self, batch: Batch, draw: Draw, rng: RandomNumbers) -> None:
        """Change the samples. batch: arrays (B, ...), those of draw.flat. draw: what else is known of these samples."""


class Sampler:
    """Sample relabelled batches of a timeline (Andrychowicz et al. 2017).

    rows, goals: draw the rows, and the goals of the relabelled samples. `goals` may be replaced at any time.
    transforms: applied to every batch, in this order.
    extras: further arrays of a batch, one number per sample: ("discount",) with n-step returns.
    """

    def __init__(
        self, rows: RowSampler, goals: GoalSampler, transforms: Sequence[Transform], extras: tuple[str, ...] = ()
    ) -> None:
        self.timeline, self.rng, self.rows, self.goals = rows.timeline, rows.rng, rows, goals
        self.transforms = tuple(transforms)
        self._ring = as_bytes(self.timeline.rows)
        row = rows.timeline.rows.dtype
        self._memory = cache(lambda shape: BatchMemory(row, shape, extras))  # a learner has one or two shapes

    def sample(self, shape: tuple[int, ...], out: Batch | None = None) -> Batch:
        """Return a batch with the leading axes `shape`, in fresh memory or in that of `out`.

        The samples are independent, or stratified within each batch if there are priorities.
        Raises NothingToSampleError, InputError if `out` does not fit, and what the transforms raise.
        """
        if not self.timeline.num_transitions:
            raise NothingToSampleError("There is nothing to sample: 0 episodes have ended. Sample after the first end.")
        memory = self._memory(shape)
        draw = memory.allocate() if out is None else memory.reuse(out)
        batch = draw.flat
        if not self._sample_compiled(draw):
            batch.row[:] = self.rows.draw(shape)
            self.goals.choose(batch.row, batch.is_relabelled, draw.goal_at)
            gather(self._ring, self.timeline.rows.itemsize, batch.row, draw.goal_at, draw.plan)
        for transform in self.transforms:
            transform(batch, draw, self.rng)
        return draw.batch

    def _sample_compiled(self, draw: Draw) -> bool:
        """Draw rows, choose goals and gather in one compiled loop, in nine tenths of the time of three loops.

        Return False if it does not apply: for functions, "random", priorities, and a ring with few live rows.
        """
        goals, batch, size = self.goals, draw.flat, len(draw.goal_at)
        if not goals.is_compiled or self.rows.priorities is not None:
            return False
        n_proposals = self.rows.count_proposals(size)
        if not n_proposals:
            return False
        is_done = sample(
            self._ring,
            self.timeline.layout,
            self.rng.state,
            self.rng.memory(n_proposals + size),
            n_proposals,
            self.timeline.high_water,
            goals.sources,
            batch.row,
            batch.is_relabelled,
            draw.goal_at,
            draw.plan,
        )
        return bool(is_done)
