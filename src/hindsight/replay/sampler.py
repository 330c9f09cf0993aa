"""Sampler: draw rows, choose goals, gather a batch, apply transforms. The timeline is only read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..errors import NothingToSampleError
from ..options.relabel import STRATEGIES, Relabel
from ..records import Array, Batch
from .kernels import RANDOM, choose_goals, draw_rows, fill_uniform, gather, row_layout, sample
from .priorities import Priorities
from .rows import BatchMemory, Draw, as_bytes, check_stored
from .strategies import (
    DESIRED,
    ORIGINAL,
    Strategy,
    StrategyFunction,
    check_strategy,
    custom_rows,
    her_probability,
    mixed_rows,
    refuse_goal_rows,
)
from .timeline import Timeline

MIN_LIVE_FRACTION = 1 / 64  # below this fraction of live rows they are chosen from the exact list


class RandomState:
    """The random state of a buffer: `state`, one uint64. All random numbers of a buffer come from it."""

    def __init__(self, seed: int | np.random.Generator) -> None:
        self.state = np.random.default_rng(seed).integers(2**64, size=1, dtype=np.uint64)
        self._u = np.zeros(0)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._u.nbytes

    def uniform(self, count: int) -> Array:
        """Return `count` numbers in [0, 1), in memory that the next call overwrites."""
        u = self.memory(count)[:count]
        fill_uniform(self.state, u)
        return u

    def stratified(self, size: int, batch_size: int) -> Array:
        """Return `size` numbers in [0, 1), as `uniform` does, for batches of batch_size.

        The numbers of each batch are in order, one in each of batch_size equal intervals.
        """
        u = self.uniform(size)
        u.reshape(-1, batch_size)[:] += np.arange(batch_size)
        u *= 1 / batch_size
        return u

    def memory(self, count: int) -> Array:
        """Return memory for at least `count` numbers."""
        if len(self._u) < count:
            self._u = np.zeros(count)
        return self._u

    def check(self, state: Array) -> None:
        """Raise FileError unless `state` is a random state."""
        check_stored("random state", state, (1,), np.uint64)

    def load(self, state: Array) -> None:
        """Take a checked state."""
        self.state[:] = state


class RowSampler:
    """Draw rows that start a transition: uniformly, or in proportion to `priorities`."""

    def __init__(self, timeline: Timeline, rng: RandomState, priorities: Priorities | None = None) -> None:
        self.timeline, self.priorities, self._rng = timeline, priorities, rng
        self._counts: Array = timeline.rows.view(np.int32)
        self._layout = row_layout(timeline.rows.dtype)
        self._fill, self._n_proposals = (0, 0, 0), 0

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return rows for batches with the leading axes `shape`, flat. With priorities, each batch is stratified."""
        size = math.prod(shape)
        if self.priorities is None:
            return self.uniform(size)
        return self.priorities.draw(self._rng.stratified(size, shape[-1]))

    def uniform(self, size: int) -> Array:
        """Return `size` live rows, each equally likely: by rejection sampling, or from the exact list."""
        row, n_proposals = np.empty(size, np.int64), self.count_proposals(size)
        if n_proposals:
            u = self._rng.uniform(n_proposals)
            if draw_rows(self._counts, self._layout, u, self.timeline.high_water, row) == size:
                return row
        live = self.timeline.live_rows()
        return live[(self._rng.uniform(size) * len(live)).astype(np.int64)]

    def count_proposals(self, size: int) -> int:
        """Return how many rows to propose so that `size` of them are live almost always. 0: the exact list is better."""
        fill = (self.timeline.num_transitions, self.timeline.high_water, size)
        if fill != self._fill:  # changes with every episode, not with every batch
            fraction = self.timeline.num_transitions / self.timeline.high_water
            self._fill, self._n_proposals = fill, 0
            if fraction > MIN_LIVE_FRACTION:
                self._n_proposals = int((size + 6 * math.sqrt(size * (1 - fraction))) / fraction) + 1
        return self._n_proposals


class GoalSampler:
    """Choose which samples are relabelled, and with which goals.

    strategy, n_sampled_goal: as in ReplayOptions.
    probability: fraction of the samples that are relabelled.
    code: index of the strategy for the compiled loops, -1 for functions and mixtures.
    """

    def __init__(self, rows: RowSampler, rng: RandomState, strategy: Strategy, n_sampled_goal: int | None) -> None:
        self.strategy, self.probability = check_strategy(strategy), her_probability(strategy, n_sampled_goal)
        name = strategy.only if isinstance(strategy, Relabel) else strategy
        self.code = STRATEGIES.index(name) if isinstance(name, str) else -1
        self._timeline, self._rows, self._rng = rows.timeline, rows, rng
        self._counts: Array = self._timeline.rows.view(np.int32)
        self._layout = row_layout(self._timeline.rows.dtype)
        *_, self._row_bytes, self._achieved_at, self._desired_at = self._layout.tolist()

    def choose(self, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """Fill is_relabelled and goal_at, the first byte of each sample's goal in the ring. All (B,)."""
        if self.code >= 0:
            other_row = self._rows.uniform(len(row)) if self.code == RANDOM else row
            u = self._rng.uniform(len(row))
            counts, layout = self._counts, self._layout
            choose_goals(counts, layout, u, self.probability, self.code, row, other_row, is_relabelled, goal_at)
        elif isinstance(self.strategy, Relabel):
            self._mix(self.strategy, row, is_relabelled, goal_at)
        elif callable(self.strategy):
            self._apply(self.strategy, row, is_relabelled, goal_at)

    def _mix(self, relabel: Relabel, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """Choose goals from several sources."""
        timeline, other_row, u = self._timeline, self._rows.uniform(len(row)), self._rng.uniform(len(row))
        goal_row, source = mixed_rows(relabel, row, timeline.steps_done[row], timeline.steps_left[row], u, other_row)
        is_relabelled[:] = source < ORIGINAL
        goal_at[:] = goal_row * self._row_bytes + np.where(source < DESIRED, self._achieved_at, self._desired_at)

    def _apply(self, strategy: StrategyFunction, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """Choose goals by the user's function."""
        timeline, u = self._timeline, self._rng.uniform(len(row))
        is_relabelled[:] = u < self.probability
        goal_at[:] = row * self._row_bytes + self._desired_at
        chosen = row[is_relabelled]
        if len(chosen):
            rest = u[is_relabelled] / self.probability
            goal_row = custom_rows(strategy, chosen, timeline.steps_done[chosen], timeline.steps_left[chosen], rest)
            refuse_goal_rows(goal_row, timeline.holds(goal_row))
            goal_at[is_relabelled] = goal_row * self._row_bytes + self._achieved_at


class Transform(Protocol):
    """A step of the pipeline that changes a gathered batch in place."""

    def __call__(self, batch: Batch, draw: Draw, rng: RandomState) -> None:
        """Change the samples. batch: arrays (B, ...), those of draw.flat. draw: what else is known of these samples."""


class Sampler:
    """Sample relabelled batches of a timeline (Andrychowicz et al. 2017).

    rows, goals: draw the rows, and the goals of the relabelled samples. `goals` may be replaced at any time.
    transforms: applied to every batch, in this order.
    extras: further arrays of a batch, one number per sample: ("discount",) with n-step returns.
    """

    def __init__(
        self,
        timeline: Timeline,
        rng: RandomState,
        rows: RowSampler,
        goals: GoalSampler,
        transforms: Sequence[Transform],
        extras: tuple[str, ...] = (),
    ) -> None:
        self.timeline, self.rng, self.rows, self.goals = timeline, rng, rows, goals
        self.transforms, self._extras = tuple(transforms), extras
        self._ring = as_bytes(timeline.rows)
        self._layout = row_layout(timeline.rows.dtype)
        self._memories: dict[tuple[int, ...], BatchMemory] = {}

    @property
    def nbytes(self) -> int:
        """Memory in bytes, without that of the timeline."""
        return self.rng.nbytes + sum(memory.nbytes for memory in self._memories.values())

    def sample(self, shape: tuple[int, ...], out: Batch | None = None) -> Batch:
        """Return a batch with the leading axes `shape`, all samples independent, in fresh memory or in that of `out`.

        Raises NothingToSampleError, InputError if `out` does not fit, and what the transforms raise.
        """
        if not self.timeline.num_transitions:
            raise NothingToSampleError("There is nothing to sample: 0 episodes have ended. Sample after the first end.")
        memory = self._memories.get(shape)
        if memory is None:
            memory = self._memories[shape] = BatchMemory(self.timeline.rows.dtype, shape, self._extras)
        draw = memory.allocate() if out is None else memory.reuse(out)
        if not self._sample_compiled(draw):
            self._sample_in_steps(draw, shape)
        for transform in self.transforms:
            transform(draw.flat, draw, self.rng)
        return draw.batch

    def _sample_compiled(self, draw: Draw) -> bool:
        """Draw rows, choose goals and gather in one compiled loop. Return False if it does not apply."""
        if not 0 <= self.goals.code < RANDOM or self.rows.priorities is not None:
            return False
        batch, size = draw.flat, len(draw.goal_at)
        n_proposals = self.rows.count_proposals(size)
        if not n_proposals:
            return False
        is_done: bool = sample(
            self._ring,
            self._layout,
            self.rng.state,
            self.rng.memory(n_proposals + size),
            n_proposals,
            self.timeline.high_water,
            self.goals.probability,
            self.goals.code,
            batch.row,
            batch.is_relabelled,
            draw.goal_at,
            draw.plan,
            draw.block,
        )
        return is_done

    def _sample_in_steps(self, draw: Draw, shape: tuple[int, ...]) -> None:
        """Do the same for functions, mixtures, "random", priorities, and a ring with few live rows."""
        batch = draw.flat
        batch.row[:] = self.rows.draw(shape)
        self.goals.choose(batch.row, batch.is_relabelled, draw.goal_at)
        gather(self._ring, self.timeline.rows.itemsize, batch.row, draw.goal_at, draw.plan, draw.block)
