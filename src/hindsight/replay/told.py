"""Told: hindsight goals that are drawn once, when an episode ends, instead of at every sample.

The way of older libraries (Stable Baselines 2, cpprb): every row of the timeline has k entries of its own, each a goal with
the reward and the end under it. They lie beside the rows, so that an entry lives exactly as long as its row, and nothing is
searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import FileError
from ..options.relabel import DEFAULT_N_SAMPLED_GOAL, DESIRED, Relabel
from ..records import Array, Batch
from .chance import Chance
from .goals import Strategy, check_strategy, mixed_rows, refuse_goal_rows, relabelled_share, users_rows
from .judging import Judging, Steps
from .kernels import pick_entries
from .rows import INFO_PREFIX, take_records
from .timeline import zero_rows

_WITHIN = 1 - 1e-12  # so that rounding never asks a mixture for a goal outside its shares

JudgeEntries = Callable[[Array, Array], None]


def judge_entries(judging: Judging) -> JudgeEntries:
    """How the entries of an episode are judged by compute_reward and what says where it ends.

    The function takes the T + 1 records of an episode and its (T, k) entries, whose goals are there; it fills in the rest.
    """

    def judge(rows: Array, entries: Array) -> None:
        steps, k = entries.shape
        achieved = np.repeat(rows["achieved_goal"][1:], k, axis=0)
        names = [name for name in rows.dtype.names or () if name.startswith(INFO_PREFIX)]
        info = {name.removeprefix(INFO_PREFIX): np.repeat(rows[name][:-1], k) for name in names}
        reward, terminated = (np.repeat(rows[name][:-1], k) for name in ("reward", "terminated"))
        goal = np.ascontiguousarray(entries["goal"]).reshape(achieved.shape)
        own_goal = np.repeat(rows["desired_goal"][:-1], k, axis=0) if judging.extra_reward else None
        judging.judge(Steps(achieved, goal, np.ones(steps * k, np.bool_), reward, terminated), info, own_goal)
        entries["reward"], entries["terminated"] = reward.reshape(steps, k), terminated.reshape(steps, k)

    return judge


class Told:
    """k entries per row of the timeline that `chance` draws from, made when an episode enters it.

    n_sampled_goal, strategy: as for `HindsightBuffer`; k is n_sampled_goal, 4 for a `Relabel`, and 1 where all would be the
    same, for "final". judge: see `judge_entries`. share: of the samples, which get one of the entries of their row.
    entries: (rows, k) records of goal, reward and terminated.
    """

    def __init__(
        self, chance: Chance, judge: JudgeEntries, n_sampled_goal: int | None, strategy: str | Strategy | Relabel
    ) -> None:
        self._chance, self._judge = chance, judge
        strategy = check_strategy(strategy)
        self.share = relabelled_share(strategy, n_sampled_goal)
        self._source = Relabel(**{strategy: 1.0}) if isinstance(strategy, str) else strategy
        k = DEFAULT_N_SAMPLED_GOAL if n_sampled_goal is None else n_sampled_goal
        if isinstance(self._source, Relabel) and self._source.only == "final":
            k = min(k, 1)
        row = chance.timeline.rows.dtype
        entry = [("goal", row["desired_goal"]), ("reward", row["reward"]), ("terminated", np.dtype(np.bool_))]
        record, self._k = np.dtype(entry, align=True), k if self.share else 0
        n_rows = len(chance.timeline.rows)
        self.entries = zero_rows(n_rows * self._k, record).reshape(n_rows, self._k)
        self._bytes = _as_bytes(self.entries)
        places = [(place, dtype.itemsize, record.itemsize) for dtype, place, *_ in (record.fields or {}).values()]
        self._parts = np.array(places, np.int64)

    @property
    def _row_bytes(self) -> int:
        return self._k * self.entries.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """All memory that is held."""
        return self.entries.nbytes

    def tell(self, rows: Array) -> Array:
        """Draw and judge the goals of an episode that is about to enter, T + 1 records: (T, k) entries.

        Goals of other episodes come from all that is held before it enters, and from itself. Raises what the functions of
        the user give cause for, InputError or GoalEnvError; nothing is stored then.
        """
        entries = np.zeros((len(rows) - 1, self._k), self.entries.dtype)
        if self._k:
            entries["goal"] = self._goals(rows).reshape(entries["goal"].shape)
            self._judge(rows, entries)
        return entries

    def enter(self, first: int, entries: Array) -> None:
        """Keep the entries of an episode that was written from row `first` on."""
        self.entries[first : first + len(entries)] = entries

    def pick(self, batch: Batch) -> None:
        """Put one of the entries of its row, each equally likely, into each sample with the probability `share`."""
        u = self._chance.numbers(len(batch.row))
        into = _as_bytes(batch.goal), _as_bytes(batch.reward), _as_bytes(batch.terminated)
        pick_entries(self._bytes, self._parts, self._k, self.share, u, batch.row, batch.is_relabelled, into)

    def of(self, row: Array, which: Array) -> Array:
        """A copy of one entry of each row, (B,) records. which: (B,) integers below k."""
        return take_records(self.entries.reshape(-1), row * self._k + which)

    def _goals(self, rows: Array) -> Array:
        """A goal for each of the T * k entries of an episode, whose rows are numbered from behind the ring's."""
        steps, timeline = len(rows) - 1, self._chance.timeline
        first = len(timeline.rows)
        row = np.repeat(np.arange(first, first + steps), self._k)
        counts = row - first, first + steps - row
        if isinstance(self._source, Relabel):
            reads_others = self._source.random or self._source.desired
            other_row = self._other_rows(steps, len(row)) if reads_others else row
            u = self._chance.numbers(len(row))
            goal_row, source = mixed_rows(self._source, row, *counts, u * (self._source.share * _WITHIN), other_row)
            is_asked = source == DESIRED
        else:
            goal_row = users_rows(self._source, row, *counts, self._chance.numbers(len(row)).copy())
            is_asked = np.zeros(len(row), np.bool_)
            is_own = (goal_row >= first) & (goal_row <= first + steps)
            refuse_goal_rows(goal_row, is_own | timeline.holds(goal_row))
        return _read_goals(timeline.rows, rows, goal_row, is_asked)

    def _other_rows(self, steps: int, size: int) -> Array:
        """So many rows that start a transition, of all that is held or of the episode that enters, each equally likely."""
        timeline = self._chance.timeline
        place = (self._chance.numbers(size) * (timeline.num_transitions + steps)).astype(np.int64)
        other_row, is_held = len(timeline.rows) + place, place >= steps
        if is_held.any():
            other_row[is_held] = self._chance.rows(int(is_held.sum()))
        return other_row

    def state(self, n_rows: int) -> dict[str, Array]:
        """All that `load` needs: the entries of the first `n_rows` rows as bytes, a view."""
        return {"entries": self._bytes.reshape(len(self.entries), self._row_bytes)[:n_rows]}

    def check(self, state: Mapping[str, Array], n_rows: int) -> None:
        """Raise FileError unless `state` holds as many entries, of `n_rows` rows, with finite numbers."""
        stored, shape = state["entries"], (n_rows, self._row_bytes)
        if stored.dtype != np.uint8 or stored.shape != shape:
            raise FileError(f"the entries are {stored.shape} of {stored.dtype}, but {shape} of uint8 is needed")
        entries: Any = stored.reshape(-1).view(self.entries.dtype)
        if not (np.isfinite(entries["reward"]).all() and np.isfinite(entries["goal"]).all()):
            raise FileError("the goals or rewards of the entries are not finite")
        if (entries["terminated"].view(np.uint8) > 1).any():
            raise FileError("the ends of the entries are neither true nor false")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the entries of the first rows, after `check`."""
        stored = state["entries"]
        self._bytes[: stored.size] = stored.reshape(-1)


def _as_bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _read_goals(ring: Array, rows: Array, goal_row: Array, is_asked: Array) -> Array:
    """What was achieved at each goal row, or asked there; from the ring, or behind it from the rows that are to enter."""
    goals = np.empty((len(goal_row), *ring.dtype["desired_goal"].shape), ring.dtype["desired_goal"].base)
    is_new = goal_row >= len(ring)
    for records, first, is_here in ((ring, 0, ~is_new), (rows, len(ring), is_new)):
        for name, here in (("achieved_goal", is_here & ~is_asked), ("desired_goal", is_here & is_asked)):
            goals[here] = records[name][goal_row[here] - first]
    return goals
