"""Sampler: draw rows, choose goals, gather, judge -> Batch. The timeline is only ever read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import GoalEnvError, InputError, NothingToSampleError, OptionError, ShapeError
from ..records import BATCH_FIELDS, Array, Batch
from .goals import STRATEGIES, Strategy, check_strategy
from .kernels import choose_goals, draw_rows, gather, merge, row_layout
from .rows import INFO_PREFIX
from .timeline import Timeline

Judge = Callable[[Array, Array, dict[str, Array]], Any]
FEWEST_LIVE = 1 / 64  # below this share of live rows none is proposed: they are taken from the exact list
ALIGNMENT = 64
GATHERED = {
    "goal": ("desired_goal", 0),
    "observation": ("observation", 0),
    "achieved_goal": ("achieved_goal", 0),
    "action": ("action", 0),
    "reward": ("reward", 0),
    "terminated": ("terminated", 0),
    "next_observation": ("observation", 1),
    "next_achieved_goal": ("achieved_goal", 1),
}  # a batch's field: the row's field that it is read from, of the sample's own row (0) or of the next (1)


@dataclass(frozen=True, eq=False)
class _Form:
    """How batches of one shape lie in one block of memory.

    record, flat_record: the block as one record whose fields have the leading axes of the batch, or all of them in one.
    plan: what `gather` copies.
    """

    shape: tuple[int, ...]
    size: int
    record: np.dtype[Any]
    flat_record: np.dtype[Any]
    plan: Array


@dataclass(eq=False, slots=True)
class _Target:
    """Memory that a batch is written into: the batch as it is handed out, and its arrays with one leading axis, by name.

    plan: what `gather` copies, where places in `block` count from its first byte, so that any memory can be reached.
    """

    batch: Batch
    flat: Any
    block: Array
    plan: Array


class Sampler:
    """Relabelled batches of a timeline, Andrychowicz et al. 2017; see `HindsightBuffer` for the arguments.

    compute_reward(next_achieved_goal, goal, info) -> (N,): judges every relabelled sample. compute_terminated, the same
    for `terminated`, which stays as stored without it. generator: the only source of chance; a checkpoint holds its state.
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
        if isinstance(n_sampled_goal, bool) or not isinstance(n_sampled_goal, int | np.integer) or n_sampled_goal < 0:
            raise OptionError(f"n_sampled_goal is {n_sampled_goal!r}, but a whole number of at least 0 is needed")
        self.timeline, self.generator = timeline, generator
        self.compute_reward, self.compute_terminated = compute_reward, compute_terminated
        self.strategy = check_strategy(strategy)
        self.her_probability = n_sampled_goal / (n_sampled_goal + 1)
        self._ring: Array = timeline.rows.view(np.uint8)
        self._counts: Array = timeline.rows.view(np.int32)
        self._layout = row_layout(timeline.rows.dtype)
        self._forms: dict[tuple[int, ...], _Form] = {}
        self._reused: dict[tuple[int, ...], _Target] = {}
        self._anchor = np.zeros(1, np.uint8)
        self._u, self._goal_at = np.zeros(0), np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """Memory of the sampler's own; the timeline's is not in it."""
        return self._u.nbytes + self._goal_at.nbytes + sum(f.plan.nbytes for f in self._forms.values())

    def sample(self, shape: tuple[int, ...], out: Batch | None = None) -> Batch:
        """A batch with the leading axes `shape`, independent draws all of them, in fresh memory or in that of `out`.

        Raises NothingToSampleError, InputError where `out` does not fit, GoalEnvError where the reward is unusable.
        """
        if not self.timeline.num_transitions:
            raise NothingToSampleError(
                "there is nothing to sample: the buffer holds 0 finished episodes; "
                "sample once an episode has ended (or call end_open_episodes)"
            )
        form = self._forms.get(shape) or self._make_form(shape)
        target = self._fresh(form) if out is None else self._reuse(out, form)
        self._choose(target.flat["row"], target.flat["is_relabelled"])
        row_bytes = self.timeline.rows.itemsize
        gather(self._ring, row_bytes, target.flat["row"], self._goal_at[: form.size], target.plan, target.block)
        self._judge(target.flat)
        return target.batch

    def _choose(self, row: Array, is_relabelled: Array) -> None:
        """Fill row, is_relabelled and the places of the goals."""
        if len(self._goal_at) < len(row):
            self._goal_at = np.zeros(len(row), np.int64)
        goal_at = self._goal_at[: len(row)]
        self._draw(row)
        if callable(self.strategy):
            self._choose_by_function(self.strategy, row, is_relabelled, goal_at)
            return
        other_row = row
        if self.strategy == "random":
            other_row = np.empty_like(row)
            self._draw(other_row)
        strategy = STRATEGIES.index(self.strategy)
        u = self._random(len(row))
        choose_goals(
            self._counts, self._layout, u, self.her_probability, strategy, row, other_row, is_relabelled, goal_at
        )

    def _draw(self, row: Array) -> None:
        """Fill `row` with live rows, each equally likely: proposed and kept if live, or else from the exact list."""
        timeline = self.timeline
        share = timeline.num_transitions / timeline.high_water
        if share > FEWEST_LIVE:
            proposals = int((len(row) + 6 * math.sqrt(len(row) * (1 - share))) / share) + 1
            found = draw_rows(self._counts, self._layout, self._random(proposals), timeline.high_water, row)
            if found == len(row):
                return
        live = timeline.live_rows()
        row[:] = live[(self._random(len(row)) * len(live)).astype(np.int64)]

    def _random(self, count: int) -> Array:
        """So many numbers in [0, 1), in memory that the next call overwrites."""
        if len(self._u) < count:
            self._u = np.zeros(count)
        return self.generator.random(out=self._u[:count])

    def _choose_by_function(self, strategy: Strategy, row: Array, is_relabelled: Array, goal_at: Array) -> None:
        """As `choose_goals`, with the goal rows of the user's own strategy."""
        timeline, u = self.timeline, self._random(len(row))
        _, _, _, row_bytes, achieved_at, desired_at = self._layout.tolist()
        is_relabelled[:] = u < self.her_probability
        goal_at[:] = row * row_bytes + desired_at
        told = np.flatnonzero(is_relabelled)
        chosen = row[told]
        rest = u[told] / max(self.her_probability, 0.5)
        goal_row = np.asarray(strategy(chosen, timeline.steps_done[chosen], timeline.steps_left[chosen], rest))
        self._check_goal_rows(goal_row, len(told))
        goal_at[told] = goal_row * row_bytes + achieved_at

    def _check_goal_rows(self, goal_row: Array, count: int) -> None:
        if goal_row.shape != (count,) or goal_row.dtype.kind not in "iu":
            raise InputError(
                f"the strategy returned shape {goal_row.shape} of {goal_row.dtype}, but ({count},) integers are needed"
            )
        is_row = (goal_row >= 0) & (goal_row < self.timeline.high_water)
        inside = np.where(is_row, goal_row, 0)
        is_live = is_row & (self.timeline.steps_left[inside] + self.timeline.steps_done[inside] > 0)
        if not is_live.all():
            raise InputError(
                f"the strategy returned row {goal_row[~is_live][0]}, which belongs to no episode in the buffer: "
                f"stay between row - steps_done and row + steps_left"
            )

    def _judge(self, flat: Any) -> None:
        """Reward, and `terminated`, of the relabelled samples under their new goals."""
        achieved, goal = flat["next_achieved_goal"], flat["goal"]
        info = {key: flat[INFO_PREFIX + key] for key in self.timeline.info_keys}
        judged = self._call(self.compute_reward, "compute_reward", achieved, goal, info)
        if not merge(judged, flat["reward"], flat["is_relabelled"]):
            raise GoalEnvError("compute_reward returned NaN or infinity for a relabelled goal: mend it, or clip it")
        if self.compute_terminated is not None:
            ended = self._call(self.compute_terminated, "compute_terminated", achieved, goal, info)
            np.copyto(flat["terminated"], ended.astype(np.bool_), where=flat["is_relabelled"])

    def _call(self, judge: Judge, name: str, achieved: Array, goal: Array, info: dict[str, Array]) -> Array:
        judged = np.asarray(judge(achieved, goal, info))
        if judged.shape != achieved.shape[:1]:
            raise GoalEnvError(
                f"{name} returned shape {judged.shape} for {len(achieved)} goals, but ({len(achieved)},) is needed: "
                f"vectorise it, or make the environment with make_goal_env, which calls it row by row"
            )
        return judged

    def _make_form(self, shape: tuple[int, ...]) -> _Form:
        row, size = self.timeline.rows.dtype, math.prod(shape)
        parts = {name: (row[source], row.fields[source][1] + after * row.itemsize) for name, (source, after) in GATHERED.items()}
        for key in self.timeline.info_keys:
            parts[INFO_PREFIX + key] = (row[INFO_PREFIX + key], row.fields[INFO_PREFIX + key][1])
        parts |= {"row": (np.dtype(np.int64), -1), "is_relabelled": (np.dtype(np.bool_), -1)}
        offsets = _places([size * part.itemsize for part, _ in parts.values()])
        plan = [[at, part.itemsize, into] for (part, at), into in zip(parts.values(), offsets, strict=False) if at >= 0]
        form = _Form(shape, size, _record(parts, shape, offsets), _record(parts, (size,), offsets), np.array(plan, np.int64))
        self._forms[shape] = form
        return form

    def _fresh(self, form: _Form) -> _Target:
        block = np.empty(form.record.itemsize, np.uint8)
        record = np.ndarray((), form.record, block)
        flat = np.ndarray((), form.flat_record, block)
        return _Target(Batch(*[record[name] for name in BATCH_FIELDS]), flat, block, form.plan)

    def _reuse(self, out: Batch, form: _Form) -> _Target:
        """The memory of `out`, looked at once: the same batch again and again costs nothing more."""
        known = self._reused.get(form.shape)
        if known is not None and known.batch is out:
            return known
        plan, flat = form.plan.copy(), {}
        for name in form.record.names or ():
            dtype, shape = form.record[name].base, form.record[name].shape
            array = np.zeros(shape, dtype) if name.startswith(INFO_PREFIX) else getattr(out, name)
            _check_out(array, name, shape, dtype)
            flat[name] = array.reshape(form.size, *shape[len(form.shape) :])
        for line, name in zip(plan, flat, strict=False):
            line[2] = flat[name].ctypes.data - self._anchor.ctypes.data
        self._reused[form.shape] = _Target(out, flat, self._anchor, plan)
        return self._reused[form.shape]


def _check_out(array: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        raise InputError(
            f"out.{name} is {getattr(array, 'shape', type(array).__name__)} of {getattr(array, 'dtype', 'no dtype')}, but "
            f"{shape} of {dtype} is needed: give a batch that the same call returned before"
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(f"out.{name} is read-only or not contiguous: give a batch that the same call returned before")


def _places(sizes: list[int]) -> list[int]:
    """Where blocks of so many bytes start, one after the other, each aligned; the last is where they end."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
    return places


def _record(parts: dict[str, tuple[np.dtype[Any], int]], shape: tuple[int, ...], offsets: list[int]) -> np.dtype[Any]:
    formats = [(part.base, shape + part.shape) for part, _ in parts.values()]
    return np.dtype({"names": list(parts), "formats": formats, "offsets": offsets[:-1], "itemsize": offsets[-1]})
