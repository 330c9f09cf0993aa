"""Timeline: the ring of rows. Whole episodes in, whole episodes out, oldest first.

An episode of T steps is T + 1 adjacent rows. A row starts a transition exactly when its `steps_left` is above 0: fence
posts, unwritten and evicted rows are 0, so there is no mask, no scan and no table of episodes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import EpisodeTooLongError, FileError, InputError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from .rows import INFO_PREFIX, all_finite, pick, put, refuse_non_finite, row_dtype

USUAL_EPISODE_LENGTH = 50
COUNTERS = ("cursor", "oldest", "lap_end", "high_water", "num_episodes", "num_transitions")


class Timeline:
    """A ring that holds up to `capacity` transitions of one task, one record per row.

    capacity: transitions. episode_length: the usual number of steps of an episode, from the time limit where there is one;
    with it, `capacity` transitions of such episodes fit exactly; without it, or with others, as many as fit are kept.
    info_keys: numbers that the reward reads from the info. dtype: the widest float that is kept.
    rows: the structured array itself. high_water: no row at or above it was ever written.
    """

    def __init__(
        self,
        spec: GoalSpec,
        capacity: int,
        episode_length: int | None = None,
        info_keys: Sequence[str] = (),
        dtype: str = "float32",
    ) -> None:
        for name, value in (("capacity", capacity), ("episode_length", 1 if episode_length is None else episode_length)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise OptionError(f"{name} is {value!r}, but a whole number of at least 1 is needed")
        self.spec, self.capacity, self.info_keys = spec, int(capacity), tuple(info_keys)
        row = row_dtype(spec, info_keys, dtype)
        fence_posts = -(-self.capacity // min(episode_length or USUAL_EPISODE_LENGTH, self.capacity))
        self.rows = _zeros(self.capacity + fence_posts, row)
        self.steps_done: Array = self.rows["steps_done"]
        self.steps_left: Array = self.rows["steps_left"]
        self._bytes = self.rows.view(np.uint8).reshape(len(self.rows), row.itemsize)
        self._scratch = np.zeros(0, row)
        self.high_water = self.num_episodes = self.num_transitions = 0
        self.cursor = 0  # where the next episode goes
        self.oldest = 0  # first row of the oldest episode
        self.lap_end = 0  # where the rows of the previous lap end, which the oldest episodes may belong to
        self._live: Array | None = None

    def __len__(self) -> int:
        """The number of live transitions."""
        return self.num_transitions

    @property
    def nbytes(self) -> int:
        """All memory that the timeline owns."""
        return self.rows.nbytes + self._scratch.nbytes + (0 if self._live is None else self._live.nbytes)

    def live_rows(self) -> Array:
        """Every row that starts a transition, in order: the exact list, made once after each change."""
        if self._live is None:
            self._live = np.flatnonzero(self.steps_left[: self.high_water])
        return self._live

    def append(self, episode: Episode) -> None:
        """Take a whole episode; refuses it before anything is written.

        Raises EpisodeTooLongError, ShapeError, NonFiniteError, CastError, MissingKeyError or InputError.
        """
        self.append_rows(self._pack(episode))

    def append_rows(self, rows: Array) -> None:
        """Take T + 1 records in which everything but the step counts is filled in; the oldest episodes make room."""
        steps = len(rows) - 1
        self.check_length(steps)
        start = self._make_room(steps)
        stop = start + steps + 1
        self._bytes[start:stop] = rows.view(np.uint8).reshape(steps + 1, -1)
        self.steps_done[start:stop] = np.arange(steps + 1)
        self.steps_left[start:stop] = np.arange(steps, -1, -1)
        self.cursor, self.high_water = stop, max(self.high_water, stop)
        self.num_episodes += 1
        self.num_transitions += steps
        self._live = None

    def check_length(self, steps: int) -> None:
        """Raise EpisodeTooLongError where an episode of so many steps can never fit."""
        if steps > self.capacity:
            raise EpisodeTooLongError(
                f"an episode of {steps} steps does not fit a buffer of {self.capacity} transitions: "
                f"raise capacity, or limit the episodes"
            )

    def _pack(self, episode: Episode) -> Array:
        """The episode as T + 1 records in scratch memory."""
        steps = len(episode)
        if steps == 0:
            raise InputError("an episode without a step cannot be stored: append it once it has one")
        self.check_length(steps)
        if len(self._scratch) <= steps:
            self._scratch = np.zeros(steps + 1, self.rows.dtype)
        rows = self._scratch[: steps + 1]
        rows[steps:] = np.zeros(1, rows.dtype)  # nothing is done in the last row
        info = pick(episode.info, self.info_keys, "the info of the episode")
        values = {
            **{key: getattr(episode, key) for key in OBSERVATION_KEYS},
            "action": episode.action,
            "reward": episode.reward,
            **{INFO_PREFIX + key: value for key, value in zip(self.info_keys, info, strict=True)},
        }
        fields = {name: rows[name] if name in OBSERVATION_KEYS else rows[name][:steps] for name in values}
        with np.errstate(over="ignore"):
            for name, value in values.items():
                put(fields[name], value, name)
        if not all_finite(rows, values):
            refuse_non_finite(values, fields)
        rows["terminated"] = False
        rows["terminated"][steps - 1] = episode.terminated
        return rows

    def _make_room(self, steps: int) -> int:
        """Evict until an episode of so many steps can be written; returns its first row."""
        wraps = self.cursor + steps + 1 > len(self.rows)
        start = 0 if wraps else self.cursor
        while self.num_episodes and self._is_in_the_way(start, steps):
            self._evict_oldest()
        if wraps:
            self.lap_end = self.cursor
        if not self.num_episodes:
            self.oldest = start
        return start

    def _is_in_the_way(self, start: int, steps: int) -> bool:
        """Whether the oldest episode must leave: for room, for the count, or because the cursor jumps over it."""
        is_jumped_over = start < self.cursor <= self.oldest
        is_overwritten = start <= self.oldest <= start + steps
        return is_jumped_over or is_overwritten or self.num_transitions + steps > self.capacity

    def _evict_oldest(self) -> None:
        steps = int(self.steps_left[self.oldest])
        stop = self.oldest + steps + 1
        self.steps_left[self.oldest : stop] = 0
        self.steps_done[self.oldest : stop] = 0
        self.oldest = 0 if stop == self.lap_end else stop
        self.num_episodes -= 1
        self.num_transitions -= steps

    def state(self) -> dict[str, Array]:
        """All that `load` needs, without a copy: the written rows as bytes, and the counters."""
        counters = np.array([getattr(self, name) for name in COUNTERS], np.int64)
        return {"rows": self._bytes[: self.high_water], "counters": counters}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the contents of a timeline of the same task and capacity; raises FileError, and changes nothing, if unfit."""
        rows, counters = state["rows"], dict(zip(COUNTERS, state["counters"].tolist(), strict=True))
        check_state(rows, counters, self.rows)
        self._bytes[: len(rows)] = rows
        self.steps_done[len(rows) :] = 0
        self.steps_left[len(rows) :] = 0
        for name, value in counters.items():
            setattr(self, name, value)
        self._live = None


def check_state(rows: Array, counters: Mapping[str, int], ring: Array) -> None:
    """Raise FileError unless the step counts of `rows` describe whole adjacent episodes and the counters agree with them.

    The compiled loops trust the step counts, so that a stranger's file must not bring false ones.
    """
    row = ring.dtype
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != row.itemsize or len(rows) > len(ring):
        raise FileError(
            f"the stored rows have shape {rows.shape} and dtype {rows.dtype}, but at most {len(ring)} rows of "
            f"{row.itemsize} bytes are needed: they belong to another task, capacity or version"
        )
    records = np.ascontiguousarray(rows).view(row).reshape(len(rows))
    done, left = records["steps_done"].astype(np.int64), records["steps_left"].astype(np.int64)
    goes_on = np.append(left[:-1] > 0, False)  # the row after a transition is of the same episode
    comes_from = np.append(False, goes_on[:-1])[: len(rows)]
    is_sound = (
        (done >= 0).all()
        and (left >= 0).all()
        and not (left > 0)[~goes_on].any()
        and (left[1:] == left[:-1] - 1)[goes_on[:-1]].all()
        and (done[1:] == done[:-1] + 1)[goes_on[:-1]].all()
        and not done[~comes_from].any()
        and counters["high_water"] == len(rows)
        and counters["num_transitions"] == np.count_nonzero(left)
        and _walk(done, left, counters)
    )
    if not is_sound:
        raise FileError("the stored rows are no whole episodes, or their counters disagree: the file is damaged")


def _walk(done: Array, left: Array, counters: Mapping[str, int]) -> bool:
    """Whether `num_episodes` hops from the oldest episode's first row end at the cursor, meeting every episode once."""
    row, starts = counters["oldest"], np.count_nonzero((left > 0) & (done == 0))
    if counters["num_episodes"] != starts or not 0 <= counters["cursor"] <= len(left):
        return False
    for _ in range(starts):
        if not 0 <= row < len(left) or left[row] == 0 or done[row] != 0:
            return False
        row += int(left[row]) + 1
        if row != counters["cursor"] and row == counters["lap_end"]:
            row = 0
    return row == counters["cursor"] or starts == 0


def _zeros(length: int, row: np.dtype[Any]) -> Array:
    """The ring, unless it is larger than this machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if length * row.itemsize > memory:
        raise OptionError(
            f"{length} rows of {row.itemsize} bytes are {length * row.itemsize / 1e9:.1f} GB, but this machine has "
            f"{memory / 1e9:.1f} GB: lower capacity"
        )
    return np.zeros(length, row)
