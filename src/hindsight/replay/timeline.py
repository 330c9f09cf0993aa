"""Timeline: the ring of rows. Whole episodes in, whole episodes out, oldest first.

An episode of T steps is T + 1 adjacent rows. A row starts a transition exactly when its `steps_left` is above 0: fence
posts, unwritten and evicted rows are 0, so there is no mask, no scan and no table of episodes.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import EpisodeTooLongError, FileError, InputError, OptionError
from ..records import OBSERVATION_KEYS, Array, Episode, GoalSpec
from .kernels import float_table, row_layout, seal
from .priorities import Rule
from .rows import INFO_PREFIX, Place, pick, put, refuse_non_finite, row_dtype, whole_number

USUAL_EPISODE_LENGTH = 20  # steps, at least, where nobody says: each episode costs one row more than it has steps
LARGEST_GOAL = 2048.0  # float32 keeps larger ones to no better than 1e-4, a hundredth of the finest threshold in use, 0.01
COUNTERS = ("cursor", "oldest", "lap_end", "high_water", "num_episodes", "num_transitions")


class Teller(Protocol):
    """What draws goals for every episode that enters, before it is written, and keeps them beside its rows; see `Told`."""

    def tell(self, rows: Array) -> Array:
        """What is to be kept of an episode of T + 1 records, (T, ...); refuses it where that cannot be made."""

    def enter(self, first: int, entries: Array) -> None:
        """Keep it, now that the episode was written from row `first` on."""


class Timeline:
    """A ring that holds up to `capacity` transitions of one task, one record per row.

    capacity: transitions. episode_length: the usual number of steps of an episode, from the time limit where there is one;
    with it, `capacity` transitions of such episodes fit exactly; without it, or with others, as many as fit are kept.
    info_keys: numbers that the reward reads from the info. dtype: the widest float that is kept.
    rows: the structured array itself. high_water: no row at or above it was ever written. priorities: what is told of every
    episode that comes or goes, where rows are not drawn alike. told: what draws goals as episodes end, if anything does.
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
        row = row_dtype(spec, info_keys, dtype)
        fence_posts = -(-self.capacity // (self.episode_length or USUAL_EPISODE_LENGTH))
        self.rows = zero_rows(self.capacity + fence_posts, row)
        self.steps_done: Array = self.rows["steps_done"]
        self.steps_left: Array = self.rows["steps_left"]
        self._bytes = self.rows.view(np.uint8).reshape(len(self.rows), row.itemsize)
        self._scratch = np.zeros(0, row)  # an episode on its way in, as long as the last one was
        self._places: tuple[Place, ...] = ()
        watched = OBSERVATION_KEYS[1:] if spec.goal.dtype == "float64" else ()
        self._layout, self._floats = row_layout(row), float_table(row, watched, LARGEST_GOAL)
        self._large_goal = 0.0  # the first that float32 keeps coarsely, until it was warned of
        self.high_water = self.num_episodes = self.num_transitions = 0
        self.cursor = 0  # where the next episode goes
        self.oldest = 0  # first row of the oldest episode
        self.lap_end = 0  # where the rows of the lap before this one end, while it has live ones
        self._live: Array | None = None
        self.priorities: Rule | None = None
        self.told: Teller | None = None

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
        steps = len(episode)
        if steps == 0:
            raise InputError("an episode without a step cannot be stored: append it once it has one")
        self.check_length(steps)
        if len(self._scratch) != steps + 1:
            self._make_scratch(steps)
        rows = self._scratch
        info = pick(episode.info, self.info_keys, "the info of the episode") if self.info_keys else ()
        seen = (episode.observation, episode.achieved_goal, episode.desired_goal)
        values = (*seen, episode.action, episode.reward, *info)
        put(self._places, values)
        rows["terminated"][steps - 1] = episode.terminated
        if not self._seal(rows):
            refuse_non_finite(self._places, values)
            self._note_large_goal(rows)
        self._write(rows, self._tell(rows))
        self.warn_of_goals()

    def append_rows(self, episodes: Sequence[Array]) -> None:
        """Take episodes, all or none: each T + 1 records of finite numbers; the step counts in them are filled in.

        `warn_of_goals` is left to the caller, for when all is in order. Raises EpisodeTooLongError, and what `told` raises.
        """
        for rows in episodes:
            self.check_length(len(rows) - 1)
            if not self._seal(rows):
                self._note_large_goal(rows)
        entries = [self._tell(rows) for rows in episodes]
        for rows, told in zip(episodes, entries, strict=True):
            self._write(rows, told)

    def holds(self, row: Array) -> Array:
        """Whether each is a row of an episode that is held, its last one included. row: (B,) integers, any."""
        is_row = (row >= 0) & (row < self.high_water)
        place = np.where(is_row, row, 0)
        is_held: Array = is_row & (self.steps_left[place] + self.steps_done[place] > 0)
        return is_held

    def _tell(self, rows: Array) -> Array | None:
        return None if self.told is None else self.told.tell(rows)

    def _seal(self, rows: Array) -> bool:
        return bool(seal(rows.view(np.int32), self._layout, self._floats))

    def _note_large_goal(self, rows: Array) -> None:
        self._large_goal = max(float(np.abs(rows[key]).max()) for key in OBSERVATION_KEYS[1:])
        self._floats = float_table(rows.dtype)

    def warn_of_goals(self) -> None:
        """Warn, once, where float64 goals came that float32 keeps coarsely."""
        if self._large_goal:
            largest, self._large_goal = np.float32(self._large_goal), 0.0
            warnings.warn(
                f"goals as large as {largest:g} are kept as float32, to within {np.spacing(largest) / 2:.1g} only: pass "
                f'dtype="float64" if the reward needs finer ones',
                stacklevel=4,
            )

    def _make_scratch(self, steps: int) -> None:
        """Rows for an episode of so many steps, and places for what is seen in all of them or done in all but the last."""
        rows = self._scratch = np.zeros(steps + 1, self.rows.dtype)
        names = ("action", "reward", *(INFO_PREFIX + key for key in self.info_keys))
        self._places = (
            *(Place.of(key, rows[key]) for key in OBSERVATION_KEYS),
            *(Place.of(name, rows[name][:-1]) for name in names),
        )

    def _write(self, rows: Array, entries: Array | None) -> None:
        """Copy sealed rows into the ring, and what was told of them beside it; the oldest episodes make room."""
        steps = len(rows) - 1
        start = self._make_room(steps)
        stop = start + steps + 1
        self._bytes[start:stop] = rows.view(np.uint8).reshape(steps + 1, -1)
        self.cursor, self.high_water = stop, max(self.high_water, stop)
        self.num_episodes += 1
        self.num_transitions += steps
        self._live = None
        if self.priorities is not None:
            self.priorities.enter(start, rows)
        if self.told is not None and entries is not None:
            self.told.enter(start, entries)

    def check_length(self, steps: int) -> None:
        """Raise EpisodeTooLongError where an episode of so many steps can never fit."""
        if steps > self.capacity:
            raise EpisodeTooLongError(
                f"an episode of {steps} steps does not fit a buffer of {self.capacity} transitions: "
                f"raise capacity, or limit the episodes"
            )

    def _make_room(self, steps: int) -> int:
        """Evict until an episode of so many steps can be written; returns its first row."""
        wraps = self.cursor + steps + 1 > len(self.rows)
        start = 0 if wraps else self.cursor
        while self.num_episodes and self._is_in_the_way(start, steps):
            self._evict_oldest()
        if not self.num_episodes:
            self.oldest = start
        elif wraps:
            self.lap_end = self.cursor
        return start

    def _is_in_the_way(self, start: int, steps: int) -> bool:
        """Whether the oldest episode must leave: for room, for the count, or because the cursor jumps over it."""
        is_jumped_over = start < self.cursor <= self.oldest
        is_overwritten = start <= self.oldest <= start + steps
        return is_jumped_over or is_overwritten or self.num_transitions + steps > self.capacity

    def _evict_oldest(self) -> None:
        steps = int(self.steps_left[self.oldest])
        if self.priorities is not None:
            self.priorities.leave(self.oldest, steps)
        stop = self.oldest + steps + 1
        self.steps_left[self.oldest : stop] = 0
        self.steps_done[self.oldest : stop] = 0
        self.oldest = stop
        self.num_episodes -= 1
        self.num_transitions -= steps
        if stop == self.lap_end or not self.num_episodes:
            self.oldest = self.lap_end = 0

    def state(self) -> dict[str, Array]:
        """All that `load` needs, without a copy: the written rows as bytes, and the counters."""
        counters = np.array([getattr(self, name) for name in COUNTERS], np.int64)
        return {"rows": self._bytes[: self.high_water], "counters": counters}

    def check(self, state: Mapping[str, Array]) -> None:
        """Raise FileError unless `state` is that of a timeline of the same rows.

        The step counts must describe whole adjacent episodes, since the compiled loops trust them.
        """
        rows, counters = state["rows"], state["counters"]
        if rows.dtype != np.uint8 or rows.shape[1:] != self._bytes.shape[1:] or len(rows) > len(self.rows):
            raise FileError(
                f"the stored rows have shape {rows.shape} of {rows.dtype}, but uint8 of at most {self._bytes.shape} is "
                f"needed"
            )
        if counters.dtype != np.int64 or counters.shape != (len(COUNTERS),):
            raise FileError(f"the counters of the stored rows have shape {counters.shape} of {counters.dtype}")
        records = np.ascontiguousarray(rows).view(self.rows.dtype).reshape(-1)
        if not _is_sound(records["steps_done"], records["steps_left"], dict(zip(COUNTERS, counters.tolist(), strict=True))):
            raise FileError("the stored rows are no whole episodes, or their counters disagree with them")

    def load(self, state: Mapping[str, Array]) -> None:
        """Take the contents of another timeline, after `check`."""
        rows = state["rows"]
        self._bytes[: len(rows)] = rows
        self.steps_done[len(rows) :] = 0
        self.steps_left[len(rows) :] = 0
        for name, value in zip(COUNTERS, state["counters"].tolist(), strict=True):
            setattr(self, name, value)
        self._live = None


def _is_sound(done: Array, left: Array, counters: Mapping[str, int]) -> bool:
    """Whether rows with these step counts are whole episodes, one after the other from the oldest to the cursor."""
    goes_on = np.append(left[:-1] > 0, False) if len(left) else np.zeros(0, np.bool_)  # the next row is of the same episode
    here, there = np.flatnonzero(goes_on), np.flatnonzero(goes_on) + 1
    is_first = np.ones(len(left), np.bool_)
    is_first[there] = False
    is_whole = (
        (left >= 0).all()
        and not left[~goes_on].any()
        and not done[is_first].any()
        and (left[there] == left[here] - 1).all()
        and (done[there] == done[here] + 1).all()
    )
    starts = np.flatnonzero(is_first & (left > 0))
    facts = (len(left), len(starts), int(np.count_nonzero(left)))
    if not is_whole or facts != (counters["high_water"], counters["num_episodes"], counters["num_transitions"]):
        return False
    if not len(starts):
        return not any(counters.values())
    place = int(np.searchsorted(starts, counters["oldest"]))
    order = np.roll(starts, -place)
    stops = order + left[order] + 1
    lap_end = int(stops.max()) if place else 0  # where the older lap ends, if the ring was gone round
    next_starts = np.where(stops == lap_end, 0, stops)
    is_in_order = order[0] == counters["oldest"] and (next_starts[:-1] == order[1:]).all()
    return bool(is_in_order and lap_end == counters["lap_end"] and stops[-1] == counters["cursor"])


def zero_rows(length: int, row: np.dtype[Any]) -> Array:
    """So many rows, unless they are larger than this machine's memory."""
    if length * row.itemsize > machine_memory():
        raise OptionError(
            f"{length} rows of {row.itemsize} bytes are {length * row.itemsize / 1e9:.1f} GB, but this machine has "
            f"{machine_memory() / 1e9:.1f} GB: lower capacity"
        )
    return np.zeros(length, row)


def machine_memory() -> int:
    """Bytes of memory in this machine, as far as the system says."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else sys.maxsize
