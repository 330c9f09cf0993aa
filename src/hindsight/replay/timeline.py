"""Timeline: a ring buffer of steps, one row per step. Whole episodes enter and leave, the oldest first.

An episode of T steps takes T + 1 adjacent rows. A row starts a transition exactly if its `steps_left` is above 0. It is 0
in the last row of an episode, which holds the last next_observation, and in unwritten and evicted rows. The ring therefore
needs no mask, no scan and no table of episodes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import EpisodeTooLongError, FileError, InputError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from .kernels import finish_rows, float_table, row_layout
from .rows import INFO_PREFIX, Field, check_stored, refuse_non_finite, row_dtype, select, whole_number, write

USUAL_EPISODE_LENGTH = 20  # steps, assumed without episode_length: each episode takes one row more than it has steps
LARGEST_GOAL = 2048.0  # above it the spacing of float32 exceeds 1e-4, a hundredth of the finest usual threshold, 0.01
ALWAYS_ALLOWED = 64 << 20  # bytes, for which the limits of memory are not read
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1
COUNTERS = ("cursor", "oldest", "wrap_end", "high_water", "num_episodes", "num_transitions", "wraps")


class RowData(Protocol):
    """Data that is kept beside the rows and lives as long as they do: priorities, or goals that are stored with a row."""

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""

    def prepare(self, rows: Array) -> Any:
        """Return what `enter` needs for an episode of T + 1 records. Nothing of the episode is stored if this raises."""

    def enter(self, first: int, rows: Array, prepared: Any) -> None:
        """Add an episode that was written from row `first` on."""

    def leave(self, first: int, steps: int) -> None:
        """Remove an evicted episode of `steps` steps, whose first row is `first`."""

    def state(self, n_rows: int) -> dict[str, Array]:
        """Return what `load` needs for the first `n_rows` rows, without a copy."""

    def check(self, state: Mapping[str, Array], steps_left: Array) -> None:
        """Raise FileError unless `state` fits rows with these steps_left."""

    def load(self, state: Mapping[str, Array]) -> None:
        """Take a checked state."""


class Timeline:
    """A ring that holds up to `capacity` transitions of one task.

    capacity: number of transitions.
    episode_length: usual number of steps of an episode. `capacity` transitions of such episodes fit exactly. With other
        lengths, as many as fit are kept.
    info_keys: numbers of the info that the reward needs.
    dtype: widest float that is stored, "float32" or "float64".

    rows: the structured array itself. high_water: no row at or above it was ever written.
    cursor: row of the next episode. oldest: first row of the oldest episode.
    wrap_end: end of the rows that were written before the cursor wrapped, while any of them is live, else 0.
    wraps: how often the cursor has wrapped.
    row_data: what is kept beside the rows. It is set while the timeline is empty.
    """

    def __init__(
        self,
        spec: GoalSpec,
        capacity: int,
        episode_length: int | None = None,
        info_keys: Sequence[str] = (),
        dtype: str = "float32",
    ) -> None:
        self.spec, self.capacity, self.info_keys = spec, whole_number("capacity", capacity, 1), tuple(info_keys)
        self.episode_length = None if episode_length is None else whole_number("episode_length", episode_length, 1)
        if len(set(self.info_keys)) < len(self.info_keys):
            raise OptionError(f"info_keys must differ from each other, got {', '.join(self.info_keys)}.")
        row = row_dtype(spec, info_keys, dtype)
        last_rows = -(-self.capacity // (self.episode_length or USUAL_EPISODE_LENGTH))
        self.rows = zero_rows(self.capacity + last_rows, row)
        self.steps_done: Array = self.rows["steps_done"]
        self.steps_left: Array = self.rows["steps_left"]
        self._bytes = self.rows.view(np.uint8).reshape(len(self.rows), row.itemsize)
        self._scratch = np.zeros(0, row)  # the episode that is being validated, reused for episodes of the same length
        self._fields: tuple[Field, ...] = ()
        watched = OBSERVATION_KEYS[1:] if spec.goal.dtype == "float64" else ()
        self._layout, self._floats = row_layout(row), float_table(row, watched, LARGEST_GOAL)
        self._large_goal = 0.0  # the first goal that float32 stores coarsely, until the warning
        self.high_water = self.num_episodes = self.num_transitions = 0
        self.cursor = self.oldest = self.wrap_end = self.wraps = 0
        self._live: Array | None = None
        self.row_data: list[RowData] = []

    def __len__(self) -> int:
        """Number of live transitions."""
        return self.num_transitions

    @property
    def nbytes(self) -> int:
        """Memory in bytes, row data included."""
        own = self.rows.nbytes + self._scratch.nbytes + (0 if self._live is None else self._live.nbytes)
        return own + sum(data.nbytes for data in self.row_data)

    def live_rows(self) -> Array:
        """Return all rows that start a transition, in order. The list is cached until the next change."""
        if self._live is None:
            self._live = np.flatnonzero(self.steps_left[: self.high_water])
        return self._live

    def append(self, episode: Episode) -> None:
        """Add a whole episode.

        Raises EpisodeTooLongError, ShapeError, NonFiniteError, CastError, MissingKeyError or InputError. Nothing is stored
        then.
        """
        steps = len(episode)
        if steps == 0:
            raise InputError("An episode must have at least 1 step, got 0.")
        self.check_length(steps)
        if len(self._scratch) != steps + 1:
            self._make_scratch(steps)
        rows = self._scratch
        info = select(episode.info, self.info_keys, "the info of the episode") if self.info_keys else ()
        observations = (episode.observation, episode.achieved_goal, episode.desired_goal)
        values = (*observations, episode.action, episode.reward, *info)
        write(self._fields, values)
        rows["terminated"][steps - 1] = episode.terminated
        if not self._finish(rows):
            refuse_non_finite(self._fields, values)
            self._note_large_goal(rows)
        self._write(rows, self._prepare(rows))
        self.warn_of_goals()

    def episodes(self) -> list[Episode]:
        """Return copies of the stored episodes, the oldest first, as far as rows hold them: without success and number."""
        first = np.flatnonzero((self.steps_done == 0) & (self.steps_left > 0))
        order = np.roll(first, -int(np.searchsorted(first, self.oldest)))
        return [self._episode(self.rows[row : row + self.steps_left[row] + 1]) for row in order]

    def _episode(self, rows: Array) -> Episode:
        return Episode(
            observation=rows["observation"].copy(),
            achieved_goal=rows["achieved_goal"].copy(),
            desired_goal=rows["desired_goal"].copy(),
            action=rows["action"][:-1].copy(),
            reward=rows["reward"][:-1].copy(),
            terminated=bool(rows["terminated"][-2]),
            info={key: rows[INFO_PREFIX + key][:-1].copy() for key in self.info_keys},
        )

    def append_rows(self, episodes: Sequence[Array]) -> None:
        """Add episodes, all or none: T + 1 records of finite numbers each. Their step counts are filled in.

        The caller calls `warn_of_goals` once its own work is done. Raises EpisodeTooLongError, and what the row data raise.
        """
        for rows in episodes:
            self.check_length(len(rows) - 1)
            if not self._finish(rows):
                self._note_large_goal(rows)
        prepared = [self._prepare(rows) for rows in episodes]
        for rows, data in zip(episodes, prepared, strict=True):
            self._write(rows, data)

    def holds(self, row: Array) -> Array:
        """Return whether each is a row of a stored episode, its last row included. row: (B,) integers, any."""
        is_row = (row >= 0) & (row < self.high_water)
        place = np.where(is_row, row, 0)
        is_held: Array = is_row & (self.steps_left[place] + self.steps_done[place] > 0)
        return is_held

    def positions(self, row: Array) -> Array:
        """Return the write positions of live rows: row + len(rows) * wraps when it was written. They never repeat."""
        return row + len(self.rows) * (self.wraps - (row >= self.cursor)) if self.wraps else row

    def live_positions(self) -> tuple[int, int]:
        """Return the range of write positions that are stored: that of the oldest episode, and that of the cursor."""
        stop = len(self.rows) * self.wraps + self.cursor
        is_before_wrap = self.num_episodes > 0 and self.oldest >= self.cursor
        oldest = len(self.rows) * (self.wraps - is_before_wrap) + self.oldest
        return (oldest if self.num_episodes else stop), stop

    def _prepare(self, rows: Array) -> list[Any]:
        return [data.prepare(rows) for data in self.row_data]

    def _finish(self, rows: Array) -> bool:
        return bool(finish_rows(rows.view(np.int32), self._layout, self._floats))

    def _note_large_goal(self, rows: Array) -> None:
        self._large_goal = max(float(np.abs(rows[key]).max()) for key in OBSERVATION_KEYS[1:])
        self._floats = float_table(rows.dtype)

    def warn_of_goals(self) -> None:
        """Warn once if float64 goals were stored that lose precision in float32."""
        if self._large_goal:
            largest, self._large_goal = np.float32(self._large_goal), 0.0
            warnings.warn(
                f"Goals up to {largest:g} lose precision in float32 (spacing {np.spacing(largest):.1g}). If the reward "
                f'threshold is finer, give the goal space finite bounds, or pass dtype="float64" to the buffer.',
                stacklevel=4,
            )

    def _make_scratch(self, steps: int) -> None:
        """Allocate rows for an episode of `steps` steps. The last row has no action, reward and info."""
        rows = self._scratch = np.zeros(steps + 1, self.rows.dtype)
        names = ("reward", *(INFO_PREFIX + key for key in self.info_keys))
        self._fields = (
            *(Field.of(key, rows[key]) for key in OBSERVATION_KEYS),
            Field.of("action", rows["action"][:-1], self.spec.action),
            *(Field.of(name, rows[name][:-1]) for name in names),
        )

    def _write(self, rows: Array, prepared: list[Any]) -> None:
        """Copy finished rows into the ring. The oldest episodes make room."""
        steps = len(rows) - 1
        start = self._make_room(steps)
        stop = start + steps + 1
        self._bytes[start:stop] = rows.view(np.uint8).reshape(steps + 1, -1)
        self.cursor, self.high_water = stop, max(self.high_water, stop)
        self.num_episodes += 1
        self.num_transitions += steps
        self._live = None
        for data, mine in zip(self.row_data, prepared, strict=True):
            data.enter(start, rows, mine)

    def check_length(self, steps: int) -> None:
        """Raise EpisodeTooLongError if an episode of `steps` steps can never fit."""
        if steps > self.capacity:
            sizes = f"Episode has {steps} steps, but capacity is {self.capacity} transitions"
            raise EpisodeTooLongError(f"{sizes}. Increase capacity, or limit the length of episodes.")

    def _make_room(self, steps: int) -> int:
        """Evict episodes until one of `steps` steps can be written. Return its first row."""
        wraps = self.cursor + steps + 1 > len(self.rows)
        start = 0 if wraps else self.cursor
        self.wraps += wraps
        while self.num_episodes and self._must_evict(start, steps):
            self._evict_oldest()
        if not self.num_episodes:
            self.oldest = start
        elif wraps:
            self.wrap_end = self.cursor
        return start

    def _must_evict(self, start: int, steps: int) -> bool:
        """Return whether the oldest episode must leave: for its rows, for capacity, or because the cursor wraps past it."""
        is_passed = start < self.cursor <= self.oldest
        is_overwritten = start <= self.oldest <= start + steps
        return is_passed or is_overwritten or self.num_transitions + steps > self.capacity

    def _evict_oldest(self) -> None:
        steps = int(self.steps_left[self.oldest])
        for data in self.row_data:
            data.leave(self.oldest, steps)
        stop = self.oldest + steps + 1
        self.steps_left[self.oldest : stop] = 0
        self.steps_done[self.oldest : stop] = 0
        self.oldest = stop
        self.num_episodes -= 1
        self.num_transitions -= steps
        if stop == self.wrap_end or not self.num_episodes:
            self.oldest = self.wrap_end = 0

    def state(self) -> dict[str, Array]:
        """Return what `load` needs, without a copy: the written rows as bytes, the counters, and the row data."""
        counters = np.array([getattr(self, name) for name in COUNTERS], np.int64)
        state: dict[str, Array] = {"rows": self._bytes[: self.high_water], "counters": counters}
        for data in self.row_data:
            state |= data.state(self.high_water)
        return state

    def check(self, state: Mapping[str, Array]) -> None:
        """Raise FileError unless `state` is that of a timeline with the same rows and row data.

        The step counts must describe whole adjacent episodes, because the compiled loops rely on them.
        """
        rows, counters = state["rows"], state["counters"]
        if rows.dtype != np.uint8 or rows.shape[1:] != self._bytes.shape[1:] or len(rows) > len(self.rows):
            got = f"{rows.shape} of {rows.dtype}"
            raise FileError(f"The stored rows must be at most {self._bytes.shape} of uint8, got {got}.")
        check_stored("counters", counters, (len(COUNTERS),), np.int64)
        records = np.ascontiguousarray(rows).view(self.rows.dtype).reshape(-1)
        if not _is_sound(records["steps_done"], records["steps_left"], dict(zip(COUNTERS, counters.tolist(), strict=True))):
            raise FileError("The stored rows are not whole episodes, or do not fit their counters. The file is damaged.")
        for data in self.row_data:
            data.check(state, records["steps_left"])

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the contents of another timeline from a checked state."""
        rows = state["rows"]
        self._bytes[: len(rows)] = rows
        self.steps_done[len(rows) :] = 0
        self.steps_left[len(rows) :] = 0
        for name, value in zip(COUNTERS, state["counters"].tolist(), strict=True):
            setattr(self, name, value)
        self._live = None
        for data in self.row_data:
            data.load(state)


def _is_sound(done: Array, left: Array, counters: Mapping[str, int]) -> bool:
    """Return whether rows with these step counts are whole episodes that are adjacent from the oldest to the cursor."""
    continues = np.append(left[:-1] > 0, False) if len(left) else np.zeros(0, np.bool_)  # next row: the same episode
    here, there = np.flatnonzero(continues), np.flatnonzero(continues) + 1
    is_first = np.ones(len(left), np.bool_)
    is_first[there] = False
    is_whole = (
        (left >= 0).all()
        and not left[~continues].any()
        and not done[is_first].any()
        and (left[there] == left[here] - 1).all()
        and (done[there] == done[here] + 1).all()
    )
    starts = np.flatnonzero(is_first & (left > 0))
    counts = (len(left), len(starts), int(np.count_nonzero(left)))
    if not is_whole or counts != (counters["high_water"], counters["num_episodes"], counters["num_transitions"]):
        return False
    if not len(starts):
        return not any(counters.values())
    return _is_in_order(starts, left, counters)


def _is_in_order(starts: Array, left: Array, counters: Mapping[str, int]) -> bool:
    """Return whether the episodes with these first rows follow each other from the oldest to the cursor."""
    place = int(np.searchsorted(starts, counters["oldest"]))
    order = np.roll(starts, -place)
    stops = order + left[order] + 1
    wrap_end = int(stops.max()) if place else 0
    next_starts = np.where(stops == wrap_end, 0, stops)
    is_in_order = order[0] == counters["oldest"] and (next_starts[:-1] == order[1:]).all()
    return bool(is_in_order and wrap_end == counters["wrap_end"] and stops[-1] == counters["cursor"])


def default_dtype(spec: GoalSpec) -> str:
    """Return "float64" if the bounds of float64 goals show that float32 would store them coarsely, else "float32"."""
    bounds = np.abs([*spec.goal.low, *spec.goal.high])
    is_large = spec.goal.dtype == "float64" and (np.isfinite(bounds) & (bounds > LARGEST_GOAL)).any()
    return "float64" if is_large else "float32"


def zero_rows(length: int, row: np.dtype[Any]) -> Array:
    """Return `length` zero rows. Raises OptionError if they exceed the memory of this machine."""
    if length * row.itemsize > ALWAYS_ALLOWED and length * row.itemsize > machine_memory():
        needed, limit = length * row.itemsize / 1e9, machine_memory() / 1e9
        raise OptionError(f"The rows take {needed:.1f} GB, but this machine has {limit:.1f} GB. Lower capacity or n_envs.")
    return np.zeros(length, row)


def machine_memory() -> int:
    """Return the memory in bytes that this process may use: of the machine, or of its cgroup, as far as it is known."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [sys.maxsize]
    for path in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no cgroup, or "max"
            limits.append(int(Path(path).read_text()))
    return min(limits)
