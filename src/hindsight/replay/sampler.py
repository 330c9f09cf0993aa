"""Sampler: draw rows, choose goals, gather, judge -> Batch. The timeline is only ever read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ..errors import GoalEnvError, InputError, NothingToSampleError
from ..records import BATCH_FIELDS, Array, Batch
from .goals import STRATEGIES, Strategy, check_strategy
from .kernels import RANDOM, choose_goals, draw_rows, gather, merge, row_layout, sample
from .rows import INFO_PREFIX
from .timeline import Timeline

Judge = Callable[[Array, Array, dict[str, Array]], Any]
FEWEST_LIVE = 1 / 64  # below this share of live rows none is proposed: they are taken from the exact list
ALIGNMENT = 64  # bytes
LARGEST_BATCH = 2**31  # bytes, which NumPy allows a record
GATHERED = {
    "goal": ("desired_goal", 0),
    "observation": ("observation", 0),
    "achieved_goal": ("achieved_goal", 0),
    "action": ("action", 0),
    "reward": ("reward", 0),
    "terminated": ("terminated", 0),
    "next_observation": ("observation", 1),
    "next_achieved_goal": ("achieved_goal", 1),
}  # a batch's field: the row's field that it is read from, in the sample's own row (0) or in the next (1)


@dataclass(frozen=True, eq=False)
class _Form:
    """How batches with the leading axes `shape` lie in one block of memory: as one record, a field per array.

    record, flat: that record, and the same with all leading axes in one. plan: what `gather` copies.
    """

    shape: tuple[int, ...]
    size: int
    record: np.dtype[Any]
    flat: np.dtype[Any]
    plan: Array
    goal_at: Array


@dataclass(eq=False, slots=True)
class _Target:
    """Memory that a batch is written into: the batch as it is handed out, and the same with one leading axis.

    info: what the reward reads besides. block, plan: what `gather` fills, and how; places in the plan count from the first
    byte of `block`, which need not hold them, so that memory of anybody's can be reached.
    """

    batch: Batch
    flat: Batch
    info: dict[str, Array]
    block: Array
    plan: Array


class Sampler:
    """Relabelled batches of a timeline (Andrychowicz et al. 2017); see `HindsightBuffer` for the arguments.

    generator: the only source of chance. her_probability: the share of samples that are relabelled, k/(k+1).
    """

    def __init__(
        self,
        timeline: Timeline,
        compute_reward: Judge,
        n_sampled_goal: int,
        strategy: str | Strategy,
        generator: np.random.Generator,
        compute_terminated: Judge | None = None,
    ) -> None:
        self.timeline, self.generator = timeline, generator
        self.compute_reward, self.compute_terminated = compute_reward, compute_terminated
        self.strategy = check_strategy(strategy)
        self.her_probability = n_sampled_goal / (n_sampled_goal + 1)
        self._code = -1 if callable(strategy) else STRATEGIES.index(strategy)
        self._ring: Array = timeline.rows.view(np.uint8)
        self._counts: Array = timeline.rows.view(np.int32)
        self._layout = row_layout(timeline.rows.dtype)
        self._anchor = np.zeros(1, np.uint8)
        self._u = np.zeros(0)
        self._forms: dict[tuple[int, ...], _Form] = {}
        self._reused: dict[tuple[int, ...], _Target] = {}
        self._is_probed = False

    @property
    def nbytes(self) -> int:
        """Memory of the sampler's own, without the timeline's."""
        return self._u.nbytes + sum(form.plan.nbytes + form.goal_at.nbytes for form in self._forms.values())

    def sample(self, shape: tuple[int, ...], out: Batch | None = None) -> Batch:
        """A batch with the leading axes `shape`, all of it independent draws, in fresh memory or in that of `out`.

        Raises NothingToSampleError, InputError where `out` does not fit, GoalEnvError where the reward is unusable.
        """
        timeline = self.timeline
        if not timeline.num_transitions:
            raise NothingToSampleError(
                "there is nothing to sample yet: the buffer holds 0 finished episodes; sample once an episode has ended"
            )
        form = self._forms.get(shape) or self._make_form(shape)
        target = _fresh(form) if out is None else self._reuse(out, form)
        flat, is_done = target.flat, False
        n_proposals = self._count_proposals(form.size)
        if n_proposals and 0 <= self._code < RANDOM:
            is_done = sample(
                self._ring,
                self._counts,
                self._layout,
                self._random(n_proposals + form.size),
                timeline.high_water,
                self.her_probability,
                self._code,
                flat.row,
                flat.is_relabelled,
                form.goal_at,
                target.plan,
                target.block,
            )
        if not is_done:
            self._sample_in_parts(flat.row, flat.is_relabelled, form.goal_at, target)
        self._judge(flat, target.info)
        return target.batch

    def _sample_in_parts(self, row: Array, is_relabelled: Array, goal_at: Array, target: _Target) -> None:
        """What `sample` does at once, for a user's strategy, for "random", and where few rows are live."""
        row[:] = self._draw(len(row))
        if callable(self.strategy):
            self._choose_by(self.strategy, row, is_relabelled, goal_at)
        else:
            other_row, u = self._draw(len(row)), self._random(len(row))
            settings = (self.her_probability, self._code)
            choose_goals(self._counts, self._layout, u, *settings, row, other_row, is_relabelled, goal_at)
        gather(self._ring, self.timeline.rows.itemsize, row, goal_at, target.plan, target.block)

    def _count_proposals(self, size: int) -> int:
        """How many rows to propose so that nearly always `size` of them are live; 0 where the exact list is better."""
        share = self.timeline.num_transitions / self.timeline.high_water
        return int((size + 6 * math.sqrt(size * (1 - share))) / share) + 1 if share > FEWEST_LIVE else 0

    def _draw(self, size: int) -> Array:
        """So many live rows, each equally likely: proposed and kept if live, or else from the exact list."""
        row, n_proposals = np.empty(size, np.int64), self._count_proposals(size)
        if n_proposals:
            u = self._random(n_proposals)
            if draw_rows(self._counts, self._layout, u, self.timeline.high_water, row) == size:
                return row
        live = self.timeline.live_rows()
        return live[(self._random(size) * len(live)).astype(np.int64)]

    def _random(self, count: int) -> Array:
        """So many numbers in [0, 1), in memory that the next call overwrites."""
        if len(self._u) < count:
            self._u = np.zeros(count)
        return self.generator.random(out=self._u[:count])

    def _choose_by(self, strategy: Strategy, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """As `choose_goals`, by the user's own strategy."""
        timeline, u, probability = self.timeline, self._random(len(row)), self.her_probability
        *_, row_bytes, achieved_at, desired_at = self._layout.tolist()
        is_relabelled[:] = u < probability
        goal_at[:] = row * row_bytes + desired_at
        told = row[is_relabelled]
        if len(told):
            rest = u[is_relabelled] / probability
            goal_row = np.asarray(strategy(told, timeline.steps_done[told], timeline.steps_left[told], rest))
            self._check_goal_rows(goal_row, len(told))
            goal_at[is_relabelled] = goal_row * row_bytes + achieved_at

    def _check_goal_rows(self, goal_row: Array, count: int) -> None:
        if goal_row.shape != (count,) or goal_row.dtype.kind not in "iu":
            raise InputError(
                f"the strategy returned shape {goal_row.shape} of {goal_row.dtype}, but ({count},) integers are needed"
            )
        timeline = self.timeline
        is_row = (goal_row >= 0) & (goal_row < timeline.high_water)
        place = np.where(is_row, goal_row, 0)
        is_live = is_row & (timeline.steps_left[place] + timeline.steps_done[place] > 0)
        if not is_live.all():
            raise InputError(
                f"the strategy returned row {goal_row[~is_live][0]}, which belongs to no episode in the buffer: "
                f"stay between row - steps_done and row + steps_left"
            )

    def _judge(self, batch: Batch, info: dict[str, Array]) -> None:
        """The reward, and `terminated`, of the relabelled samples under their new goals."""
        if not self._is_probed:
            self._probe(batch, info)
        judged = _call(self.compute_reward, "compute_reward", batch, info)
        if not merge(judged, batch.reward, batch.is_relabelled):
            raise GoalEnvError(
                "compute_reward returned NaN or infinity for a relabelled goal: the reward must be finite for every goal "
                "that was ever achieved"
            )
        if self.compute_terminated is not None:
            ended = _call(self.compute_terminated, "compute_terminated", batch, info)
            np.copyto(batch.terminated, ended.astype(np.bool_), where=batch.is_relabelled)

    def _probe(self, batch: Batch, info: dict[str, Array]) -> None:
        """Once: refuse a compute_reward that writes into its arguments, which would spoil every batch."""
        arguments = [batch.next_achieved_goal, batch.goal, *info.values()]
        before = [argument.copy() for argument in arguments]
        for name, judge in (("compute_reward", self.compute_reward), ("compute_terminated", self.compute_terminated)):
            if judge is not None:
                _call(judge, name, batch, info)
                if not all(map(np.array_equal, before, arguments)):
                    raise GoalEnvError(f"{name} writes into its arguments: let it work on copies")
        self._is_probed = True

    def _make_form(self, shape: tuple[int, ...]) -> _Form:
        """Lay the fields of a batch one after the other, those that are gathered first."""
        row, size = self.timeline.rows.dtype, math.prod(shape)
        places = {name: place for name, (_, place, *_) in (row.fields or {}).items()}
        sources = {name: (row[field], places[field] + after * row.itemsize) for name, (field, after) in GATHERED.items()}
        sources |= {name: (row[name], places[name]) for name in places if name.startswith(INFO_PREFIX)}
        dtypes = {name: dtype for name, (dtype, _) in sources.items()}
        dtypes |= {"row": np.dtype(np.int64), "is_relabelled": np.dtype(np.bool_)}
        into = list(accumulate((-(-size * d.itemsize // ALIGNMENT) * ALIGNMENT for d in dtypes.values()), initial=0))
        plan = [(start, dtype.itemsize, at) for (dtype, start), at in zip(sources.values(), into, strict=False)]
        if into[-1] >= LARGEST_BATCH:
            raise InputError(
                f"a batch of shape {shape} takes {into[-1] / 1e9:.1f} GB, but 2 GB is the limit: lower its size"
            )
        record, flat = (
            np.dtype(
                {
                    "names": list(dtypes),
                    "formats": [(dtype.base, (*axes, *dtype.shape)) for dtype in dtypes.values()],
                    "offsets": into[:-1],
                    "itemsize": into[-1],
                }
            )
            for axes in (shape, (size,))
        )
        form = _Form(shape, size, record, flat, np.array(plan, np.int64), np.zeros(size, np.int64))
        self._forms[shape] = form
        return form

    def _reuse(self, out: Batch, form: _Form) -> _Target:
        """The memory of `out`, looked at once: the same batch again costs nothing more."""
        known = self._reused.get(form.shape)
        if known is not None and known.batch is out:
            return known
        arrays = {}
        for name in form.record.names or ():
            part = form.record[name]
            arrays[name] = np.zeros(part.shape, part.base) if name.startswith(INFO_PREFIX) else getattr(out, name)
            _check_out(arrays[name], name, part)
            arrays[name] = arrays[name].reshape(form.flat[name].shape)
        plan = form.plan.copy()
        for line, array in zip(plan, arrays.values(), strict=False):
            line[2] = array.ctypes.data - self._anchor.ctypes.data
        info = {name.removeprefix(INFO_PREFIX): arrays.pop(name) for name in list(arrays) if name.startswith(INFO_PREFIX)}
        self._reused[form.shape] = _Target(out, Batch(**arrays), info, self._anchor, plan)
        return self._reused[form.shape]


def _fresh(form: _Form) -> _Target:
    """Fresh memory: one allocation for all fields."""
    block = np.empty(form.record.itemsize, np.uint8)
    record = np.ndarray((), form.record, block)
    batch = flat = Batch(*[record[name] for name in BATCH_FIELDS])
    if len(form.shape) > 1 or len(form.plan) > len(GATHERED):
        record = np.ndarray((), form.flat, block)
        flat = Batch(*[record[name] for name in BATCH_FIELDS])
    info = {name.removeprefix(INFO_PREFIX): record[name] for name in (form.record.names or ())[len(GATHERED) : -2]}
    return _Target(batch, flat, info, block, form.plan)


def _check_out(array: Any, name: str, part: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray) or array.shape != part.shape or array.dtype != part.base:
        got = (getattr(array, "shape", type(array).__name__), getattr(array, "dtype", "no dtype"))
        raise InputError(
            f"out.{name} is {got[0]} of {got[1]}, but {part.shape} of {part.base} is needed: give a batch that the same "
            f"call returned before"
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(f"out.{name} is read-only or not contiguous: give a batch that the same call returned before")


def _call(judge: Judge, name: str, batch: Batch, info: dict[str, Array]) -> Array:
    """What the environment says of every sample, (B,)."""
    judged = np.asarray(judge(batch.next_achieved_goal, batch.goal, info))
    if judged.shape != batch.reward.shape or judged.dtype.kind not in "fiub":
        raise GoalEnvError(
            f"{name} returned shape {judged.shape} of {judged.dtype} for {len(batch)} goals, but ({len(batch)},) numbers "
            f"are needed: vectorise it, or take that of make_goal_env, which goes row by row"
        )
    return judged
